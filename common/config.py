"""Every setting of a run: one home, frozen values, checked when they are made.

Field names are unique over the sections because each is a flag in kebab-case.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal, get_args

from common.endpoints import check_connect
from common.errors import ConfigError
from common.game import ACTION_SETS, STAGES, num_actions_of, parse_stage_weights, parse_stages
from common.ids import check_run_name
from common.specs import MAX_N_STEP, MAX_QUANTILES, MAX_STACK, DataSpec

CoreName = Literal["nes_py", "native", "auto", "fceumm"]
# The height of the console's screen: frames are made smaller, never larger.
_MAX_SIZE = 240


def _require(condition: bool, name: str, expected: str, got: object) -> None:
    if not condition:
        flag = "--" + name.replace("_", "-")
        raise ConfigError(f"{flag} must be {expected}, got {got}")


def _require_positive(section: object, *names: str) -> None:
    for name in names:
        value = getattr(section, name)
        _require(0 < value < math.inf, name, "greater than 0 and finite", value)


def _require_between(section: object, low: float, high: float, *names: str) -> None:
    for name in names:
        value = getattr(section, name)
        _require(low <= value <= high, name, f"between {low} and {high}", value)


def _require_at_least_zero(section: object, *names: str) -> None:
    for name in names:
        value = getattr(section, name)
        _require(0 <= value < math.inf, name, "at least 0 and finite", value)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """Which run, on what device, and when it ends."""

    run: str = "default"
    """Name of the run; results go to RUNS_DIR/RUN."""
    runs_dir: str = "runs"
    """Folder that holds all runs."""
    seed: int = 1
    """Every random choice of every process follows from this number."""
    device: str = "auto"
    """auto, cpu, cuda or cuda:N; where the learner trains and the replay server samples."""
    max_agent_steps: int = 0
    """Stop after this many agent steps of the whole run; 0 means no limit."""
    max_minutes: float = 0.0
    """Stop after this many minutes of this start; 0 means no limit."""
    metrics_interval_s: float = 5.0
    """Seconds between two lines of metrics.jsonl and of each heartbeat."""

    def __post_init__(self) -> None:
        check_run_name(self.run)
        _require_at_least_zero(self, "seed", "max_agent_steps", "max_minutes")
        _require_positive(self, "metrics_interval_s")


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvSettings:
    """The game and how it is seen."""

    game: Literal["mario", "corridor"] = "mario"
    """mario, or corridor: a tiny game with a known optimum, for tests."""
    stage: str = "1-1"
    """World and level, 1-1 to 8-4."""
    stages: str = ""
    """Several stages for one network, such as 1-1,1-2 or all; goes over --stage."""
    core: CoreName = "nes_py"
    """nes_py, the reference; native, the same game many times faster; auto: native where it was
    built, else nes_py; fceumm: another emulator, where stable-retro is installed."""
    actions: str = "simple"
    """right_only, simple, complex or extended."""
    frame_skip: int = 4
    """Emulator frames per agent step."""
    size: int = 84
    """Height and width of a frame in pixels."""
    stack: int = 4
    """Frames in an observation."""
    noop_max: int = 30
    """Most frames without a button at the start of an episode."""
    sticky: float = 0.0
    """Probability that an agent step repeats the action before it, whatever was chosen."""
    max_episode_frames: int = 20_000
    """Emulator frames after which an episode is cut (a truncation)."""
    stagnation_seconds: float = 30.0
    """Seconds of the game without new ground after which an episode is cut; 0 means never."""
    loop_back_ends: bool = False
    """Let an episode end, as by a death, when a maze sends Mario back."""
    flag_bonus: float = 10.0
    """Added to the reward at the flag."""
    reward_scale: float = 1 / 15
    """Factor on the environment's own reward."""
    env_deadline_s: float = 0.0
    """Seconds until an environment must be built; 0 means max(180, 60 x environments)."""
    env_start_delay_s: float = 0.0
    """Pause before each environment is built, for hosts that choke on a burst."""
    env_prewarm: bool = False
    """Build and close one environment in the launcher's host before the actors start."""

    @property
    def stage_names(self) -> tuple[str, ...]:
        """All stages of the run, one or more."""
        return parse_stages(self.stages) or (self.stage,)

    def __post_init__(self) -> None:
        _require(self.stage in STAGES, "stage", "1-1 to 8-4", self.stage)
        try:
            parse_stages(self.stages)
        except ConfigError as error:
            raise ConfigError(f"--stages: {error}") from error
        cores = get_args(CoreName)
        _require(self.core in cores, "core", f"one of {', '.join(cores)}", self.core)
        names = ", ".join(ACTION_SETS)
        _require(self.actions in ACTION_SETS, "actions", f"one of {names}", self.actions)
        _require_positive(self, "frame_skip", "max_episode_frames", "reward_scale")
        _require_at_least_zero(self, "noop_max", "env_deadline_s", "env_start_delay_s")
        _require_at_least_zero(self, "stagnation_seconds")
        _require(0 <= self.sticky < 1, "sticky", "at least 0 and below 1", self.sticky)
        _require_between(self, 8, _MAX_SIZE, "size")
        _require_between(self, 1, MAX_STACK, "stack")
        _require_between(self, -1_000, 1_000, "flag_bonus")


@dataclass(frozen=True, slots=True, kw_only=True)
class ActorSettings:
    """How the actors play and send."""

    actors: int = 8
    """Number of actor processes."""
    envs_per_actor: int = 1
    """Environments in each actor, played with one batched forward pass."""
    block_steps: int = 128
    """Agent steps in a block."""
    send_window: int = 4
    """Blocks that an actor may have unacknowledged before it waits."""
    epsilon_anneal_agent_steps: int = 500_000
    """The epsilon ladder falls from 1 to 0.1 of itself over this many agent steps."""
    epsilon_warmup_agent_steps: int = 20_000
    """Until here no epsilon is below 1 - steps / this number."""
    frontier_share: float = 0.0
    """Share of training episodes that begin at moments of earlier ones, where few have been."""
    min_actors: int = 1
    """The run ends when fewer actors than this can be kept alive."""

    def __post_init__(self) -> None:
        _require_between(self, 1, 10_000, "actors")
        _require_between(self, 1, 256, "envs_per_actor")
        _require_between(self, 1, 1024, "block_steps")
        _require_between(self, 1, 64, "send_window")
        _require_positive(self, "epsilon_anneal_agent_steps", "epsilon_warmup_agent_steps")
        _require_between(self, 1, self.actors, "min_actors")
        _require_between(self, 0, 0.95, "frontier_share")

    @property
    def num_envs(self) -> int:
        return self.actors * self.envs_per_actor


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaySettings:
    """What is remembered, and the balance between playing and learning."""

    capacity: int = 0
    """Transitions to keep; 0 means up to 200,000, less where memory is short."""
    samples_per_insert: float = 4.0
    """Times that each agent step is sampled on average; the two sides wait for each other."""
    learning_starts: int = 5_000
    """Agent steps in the buffer before the first update."""
    balance_slack_agent_steps: int = 2_000
    """Agent steps by which either side may run ahead of the other."""
    per_alpha: float = 0.5
    """Exponent on priorities: 0 is uniform."""
    per_beta: float = 0.4
    """Exponent of the importance weights at the start; it rises to 1."""
    per_beta_anneal_agent_steps: int = 2_000_000
    """Agent steps over which beta rises to 1."""
    per_sample_interval: int = 1
    """Updates per sampled batch: above 1, sampling rounds are skipped and a batch is used again."""
    n_step: int = 5
    """Agent steps in a return."""
    gamma: float = 0.95
    """Discount per agent step."""
    float16_scalars: bool = True
    """Keep stored rewards in half precision; arithmetic stays in float32."""

    def __post_init__(self) -> None:
        _require_at_least_zero(self, "capacity", "balance_slack_agent_steps")
        _require_positive(self, "samples_per_insert", "per_beta_anneal_agent_steps")
        _require_positive(self, "learning_starts", "per_sample_interval")
        _require_between(self, 1, MAX_N_STEP, "n_step")
        _require_between(self, 0, 1, "per_alpha", "per_beta")
        _require(0 < self.gamma < 1, "gamma", "between 0 and 1, both excluded", self.gamma)


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnerSettings:
    """The network, how it is trained, and what is written."""

    network: Literal["small", "nature", "impala"] = "small"
    """small for CPUs, nature or impala for GPUs."""
    num_quantiles: int = 32
    """Quantiles of the value distribution."""
    batch_size: int = 64
    """Transitions per update."""
    learning_rate: float = 2.5e-4
    """Adam's step size at the start."""
    learning_rate_final: float = 5e-5
    """Adam's step size at the end of its linear fall."""
    learning_rate_anneal_agent_steps: int = 750_000
    """Agent steps over which the learning rate falls."""
    adam_epsilon: float = 1.5e-4
    """Adam's epsilon."""
    max_grad_norm: float = 10.0
    """Gradients are scaled down to this norm."""
    target_sync_interval_updates: int = 500
    """Updates between two copies to the target network."""
    publish_interval_updates: int = 100
    """Updates between two broadcasts of weights."""
    prefetch_batches: int = 3
    """Batch requests that are kept outstanding."""
    batch_transport: Literal["auto", "shared", "wire"] = "auto"
    """auto: shared memory when the replay server is reached over ipc, otherwise the wire."""
    mixed_precision: Literal["off", "bfloat16", "float16"] = "off"
    """Half-precision layers while training, on CUDA; bfloat16 also on CPUs that multiply it."""
    compile: bool = False
    """Compile the network with torch.compile; falls back with a warning."""
    learner_threads: int = 0
    """CPU threads of torch in the learner; 0 means half of the cores, at least one."""
    checkpoint_interval_s: float = 60.0
    """Seconds between two checkpoints."""
    keep_checkpoints: int = 5
    """Numbered checkpoints to keep."""

    def __post_init__(self) -> None:
        _require_between(self, 1, MAX_QUANTILES, "num_quantiles")
        _require_between(self, 1, 65_536, "batch_size")
        _require_positive(self, "learning_rate", "learning_rate_final", "adam_epsilon")
        _require_positive(self, "learning_rate_anneal_agent_steps", "max_grad_norm")
        _require_positive(self, "target_sync_interval_updates", "publish_interval_updates")
        _require_positive(self, "checkpoint_interval_s", "keep_checkpoints")
        _require_at_least_zero(self, "learner_threads")
        _require_between(self, 1, 16, "prefetch_batches")


@dataclass(frozen=True, slots=True, kw_only=True)
class CurriculumSettings:
    """How often each of several stages is played."""

    curriculum: Literal["uniform", "progress", "manual"] = "progress"
    """uniform; progress: more where the agent is learning, less where it has mastered; manual."""
    stage_floor: float = 0.25
    """With progress: share of all play that is spread evenly, so that nothing is forgotten."""
    stage_weights: str = ""
    """With manual: weights such as 1-1:1,1-2:3; a stage that is not named has 1."""
    unlock_clear_rate: float = 0.0
    """Clear rate of the newest stage in training that unlocks the next; 0: all at once."""

    def __post_init__(self) -> None:
        _require_between(self, 0, 1, "stage_floor", "unlock_clear_rate")
        try:
            parse_stage_weights(self.stage_weights)
        except ConfigError as error:
            raise ConfigError(f"--stage-weights: {error}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationSettings:
    """The greedy episodes that tell how well the agent plays."""

    evaluators: int = 1
    """Evaluator processes: 1, or 0 for none."""
    eval_interval_agent_steps: int = 50_000
    """Agent steps between two evaluations; a checkpoint is written for each."""
    eval_episodes: int = 100
    """Episodes of an evaluation, per stage."""
    eval_noop_max: int = 30
    """Most frames without a button at the start of an evaluated episode."""

    def __post_init__(self) -> None:
        _require_between(self, 0, 1, "evaluators")
        _require_positive(self, "eval_interval_agent_steps")
        _require_between(self, 1, 100_000, "eval_episodes")
        _require_between(self, 0, 10_000, "eval_noop_max")


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointSettings:
    """Where the processes meet: ipc:///path or tcp://host:port."""

    replay_endpoint: str = "tcp://127.0.0.1:5601"
    """Bound by the replay server."""
    weights_endpoint: str = "tcp://127.0.0.1:5602"
    """Bound by the learner: weights for the actors."""
    telemetry_endpoint: str = "tcp://127.0.0.1:5603"
    """Bound by the learner: heartbeats and episodes of all processes."""

    def __post_init__(self) -> None:
        for name in self.__slots__:
            flag = "--" + name.replace("_", "-")
            try:
                check_connect(getattr(self, name))
            except ConfigError as error:
                raise ConfigError(f"{flag}: {error}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All of it."""

    run: RunSettings = field(default_factory=RunSettings)
    env: EnvSettings = field(default_factory=EnvSettings)
    actor: ActorSettings = field(default_factory=ActorSettings)
    replay: ReplaySettings = field(default_factory=ReplaySettings)
    learner: LearnerSettings = field(default_factory=LearnerSettings)
    curriculum: CurriculumSettings = field(default_factory=CurriculumSettings)
    evaluation: EvaluationSettings = field(default_factory=EvaluationSettings)
    endpoints: EndpointSettings = field(default_factory=EndpointSettings)

    def __post_init__(self) -> None:
        capacity = self.replay.capacity
        starts = self.replay.learning_starts
        fits = capacity == 0 or capacity >= starts
        _require(fits, "capacity", f"at least --learning-starts ({starts})", capacity)
        batch_size = self.learner.batch_size
        fits = capacity == 0 or capacity >= batch_size
        _require(fits, "batch_size", f"at most --capacity ({capacity})", batch_size)

    @property
    def spec(self) -> DataSpec:
        """The shapes that all processes of this run must agree on."""
        return DataSpec(
            height=self.env.size,
            width=self.env.size,
            stack=self.env.stack,
            num_actions=count_actions(self.env),
            n_step=self.replay.n_step,
        )


def count_actions(env: EnvSettings) -> int:
    """The corridor has its own three actions, whatever set is chosen for Mario."""
    return 3 if env.game == "corridor" else num_actions_of(env.actions)
