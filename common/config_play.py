"""Settings of the game and of those who play it; `common.config` is the way in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from common.config_checks import (
    require,
    require_at_least_zero,
    require_between,
    require_positive,
    require_wait,
)
from common.errors import ConfigError
from common.game import ACTION_SETS, STAGES, num_actions_of, parse_stage_weights, parse_stages
from common.specs import MAX_STACK

CoreName = Literal["nes_py", "native", "auto", "fceumm"]
MAX_ACTORS = 10_000
"""As many as the learner keeps heartbeats of; more environments than that are several in each."""
# The height of the console's screen: frames are made smaller, never larger.
_MAX_SIZE = 240


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
    loop_back_ends: bool = True
    """Let an episode end, without a penalty, when a maze sends Mario back: otherwise walking in
    circles would earn rewards without end."""
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
        require(self.stage in STAGES, "stage", "1-1 to 8-4", self.stage)
        try:
            parse_stages(self.stages)
        except ConfigError as error:
            raise ConfigError(f"--stages: {error}") from error
        cores = get_args(CoreName)
        require(self.core in cores, "core", f"one of {', '.join(cores)}", self.core)
        names = ", ".join(ACTION_SETS)
        require(self.actions in ACTION_SETS, "actions", f"one of {names}", self.actions)
        require_positive(self, "frame_skip", "max_episode_frames", "reward_scale")
        require_at_least_zero(self, "noop_max", "stagnation_seconds")
        require_wait(self, "env_deadline_s", "env_start_delay_s")
        require(0 <= self.sticky < 1, "sticky", "at least 0 and below 1", self.sticky)
        require_between(self, 8, _MAX_SIZE, "size")
        require_between(self, 1, MAX_STACK, "stack")
        require_between(self, -1_000, 1_000, "flag_bonus")


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
    """Share of training episodes that begin at moments of earlier ones, if the core can go back."""
    frontier_starts: Literal["losses", "far"] = "losses"
    """losses: shortly before places where episodes were lost lately; far: where few have been."""
    max_weight_age_s: float = 0.0
    """Seconds without a word from the learner after which an actor pauses; 0 means never."""
    min_actors: int = 1
    """The run ends when fewer actors than this can be kept alive."""

    def __post_init__(self) -> None:
        require_between(self, 1, MAX_ACTORS, "actors")
        require_between(self, 1, 256, "envs_per_actor")
        require_between(self, 1, 1024, "block_steps")
        require_between(self, 1, 64, "send_window")
        require_positive(self, "epsilon_anneal_agent_steps", "epsilon_warmup_agent_steps")
        require_between(self, 1, self.actors, "min_actors")
        require_wait(self, "max_weight_age_s")
        require_between(self, 0, 0.95, "frontier_share")

    @property
    def num_envs(self) -> int:
        return self.actors * self.envs_per_actor


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
        require_between(self, 0, 1, "stage_floor", "unlock_clear_rate")
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
    eval_films: int = 3
    """Evaluations whose films are kept, of the best and the worst episode; 0: none is filmed, and
    no level is drawn. Needs the extra video."""

    def __post_init__(self) -> None:
        require_between(self, 0, 1, "evaluators")
        require_between(self, 0, 10_000, "eval_films")
        require_positive(self, "eval_interval_agent_steps")
        require_between(self, 1, 100_000, "eval_episodes")
        require_between(self, 0, 10_000, "eval_noop_max")


def count_actions(env: EnvSettings) -> int:
    """The corridor has its own three actions, whatever set is chosen for Mario."""
    return 3 if env.game == "corridor" else num_actions_of(env.actions)
