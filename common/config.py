"""Every setting of a run: frozen values, checked when they are made.

Field names are unique over the sections because each is a flag in kebab-case.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from common.button_script import parse_script
from common.config_checks import (
    flag_of,
    is_plain,
    require,
    require_at_least_zero,
    require_between,
    require_positive,
    require_wait,
)
from common.config_learning import LearnerSettings, ReplaySettings
from common.config_play import (
    ActorSettings,
    CoreName,
    CurriculumSettings,
    EnvSettings,
    EvaluationSettings,
    count_actions,
)
from common.config_tools import (
    AdaptiveSettings,
    DiagnosisSettings,
    ScriptSettings,
    ShapingSettings,
)
from common.endpoints import check_endpoint, split_endpoints
from common.errors import ConfigError
from common.game import parse_stage_weights
from common.ids import check_run_name
from common.specs import DataSpec

__all__ = [
    "ActorSettings",
    "AdaptiveSettings",
    "CoreName",
    "CurriculumSettings",
    "DiagnosisSettings",
    "EndpointSettings",
    "EnvSettings",
    "EvaluationSettings",
    "LearnerSettings",
    "ReplaySettings",
    "RunSettings",
    "ScriptSettings",
    "Settings",
    "ShapingSettings",
    "count_actions",
]


MAX_SEED = 2**63 - 1
"""As large as the seed of torch and a number of most languages may be."""


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
    max_updates: int = 0
    """Stop after this many updates of the whole run; 0 means no limit."""
    max_minutes: float = 0.0
    """Stop after this many minutes of this start; 0 means no limit."""
    metrics_interval_s: float = 5.0
    """Seconds between two lines of metrics.jsonl and of each heartbeat."""
    patience: float = 1.0
    """Factor on the times after which a process that hangs is replaced; 0 means never."""

    def __post_init__(self) -> None:
        check_run_name(self.run)
        usable = bool(self.runs_dir) and is_plain(self.runs_dir)
        require(usable, "runs_dir", "a folder", ascii(self.runs_dir))
        require_between(self, 0, MAX_SEED, "seed")
        require_at_least_zero(self, "max_agent_steps", "max_updates", "max_minutes", "patience")
        require_positive(self, "metrics_interval_s")
        require_wait(self, "metrics_interval_s")


ENDPOINT_NAMES = ("replay_endpoint", "weights_endpoint", "telemetry_endpoint", "control_endpoint")


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointSettings:
    """Where the processes meet: ipc:///path or tcp://host:port."""

    replay_endpoint: str = "tcp://127.0.0.1:5601"
    """Bound by the replay server; one for each of --replay-shards, separated by commas."""
    weights_endpoint: str = "tcp://127.0.0.1:5602"
    """Bound by the learner: weights for the actors."""
    telemetry_endpoint: str = "tcp://127.0.0.1:5603"
    """Bound by the learner: heartbeats and episodes of all processes."""
    control_endpoint: str = "tcp://127.0.0.1:5604"
    """Bound by the learner: what people ask of a running run."""
    keys_dir: str = ""
    """Folder of keys made by launch/keys.py: encrypts tcp and lets only known keys in."""

    def __post_init__(self) -> None:
        require(is_plain(self.keys_dir), "keys_dir", "a folder", ascii(self.keys_dir))
        for name, endpoint in self.each():
            try:
                check_endpoint(endpoint, has_keys=bool(self.keys_dir))
            except ConfigError as error:
                raise ConfigError(f"{flag_of(name)}: {error}") from error

    def each(self) -> list[tuple[str, str]]:
        """Every endpoint with the name of its setting; there may be several replay servers."""
        others = [(name, getattr(self, name)) for name in ENDPOINT_NAMES[1:]]
        replay = split_endpoints(self.replay_endpoint)
        return [*((ENDPOINT_NAMES[0], endpoint) for endpoint in replay), *others]


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
    shaping: ShapingSettings = field(default_factory=ShapingSettings)
    scripts: ScriptSettings = field(default_factory=ScriptSettings)
    adaptive: AdaptiveSettings = field(default_factory=AdaptiveSettings)
    diagnosis: DiagnosisSettings = field(default_factory=DiagnosisSettings)
    endpoints: EndpointSettings = field(default_factory=EndpointSettings)

    def __post_init__(self) -> None:
        capacity = self.replay.capacity
        starts = self.replay.learning_starts
        fits = capacity == 0 or capacity >= starts
        require(fits, "capacity", f"at least --learning-starts ({starts})", capacity)
        self._check_play()
        self._check_scripts()
        batch_size = self.learner.batch_size
        fits = capacity == 0 or capacity >= batch_size
        require(fits, "batch_size", f"at most --capacity ({capacity})", batch_size)

    def _check_play(self) -> None:
        """What one section asks of another."""
        chosen = self.curriculum
        weights = parse_stage_weights(chosen.stage_weights)
        is_used = not weights or chosen.curriculum == "manual"
        require(is_used, "curriculum", "manual with --stage-weights", chosen.curriculum)
        unknown = sorted(weights.keys() - set(self.env.stage_names))
        stages = ",".join(self.env.stage_names)
        require(not unknown, "stage_weights", f"of the stages {stages}", ",".join(unknown))

    def _check_scripts(self) -> None:
        """Scripts name actions of the set that is played."""
        scripts, count = self.scripts, count_actions(self.env)
        fits = scripts.forward_action_id < count
        expected = f"below the number of actions ({count})"
        require(fits, "forward_action_id", expected, scripts.forward_action_id)
        is_played = not scripts.scripted_sequence or self.env.game == "mario"
        require(is_played, "scripted_sequence", "used with --game mario", self.env.game)
        try:
            parse_script(scripts.scripted_sequence, self.env.actions)
        except ConfigError as error:
            raise ConfigError(f"--scripted-sequence: {error}") from error

    @property
    def practice_share(self) -> float:
        """Share of the episodes that begin at an earlier moment; only the native core can."""
        return self.actor.frontier_share if self.env.core in ("native", "auto") else 0.0

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
