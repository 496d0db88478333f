"""Settings of the trainer's toolbox, all off by default; `common.config` is the way in."""

from __future__ import annotations

from dataclasses import dataclass

from common.config_checks import (
    flag_of,
    require,
    require_at_least_zero,
    require_between,
    require_positive,
    require_wait,
)
from common.controls import MAX_DISTANCE_WEIGHT, MAX_EXPLORATION_SCALE, MAX_LR_SCALE
from common.errors import ConfigError

RAM_BYTES = 0x800


def parse_address(text: str) -> int:
    """An address of the console's RAM, such as 0x6D or 109."""
    try:
        address = int(text, 0)
    except ValueError:
        raise ConfigError(f"expected an address such as 0x6D, got {text!r}") from None
    if not 0 <= address < RAM_BYTES:
        raise ConfigError(f"expected an address from 0 to {RAM_BYTES - 1:#x}, got {text}")
    return address


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapingSettings:
    """Reward for score and progress, added to the environment's own; off while both weights are 0.

    raw = score weight x score + distance weight x pixels; what is added is raw times the scale.
    """

    reward_score_weight: float = 0.0
    """Shaped reward per point of the score."""
    reward_distance_weight: float = 0.0
    """Shaped reward per pixel of progress."""
    reward_scale_start: float = 0.2
    """Factor on shaped rewards at the start of the run."""
    reward_scale_final: float = 0.1
    """Factor on shaped rewards at the end of its linear change."""
    reward_scale_anneal_steps: int = 50_000
    """Agent steps of the whole run over which the factor changes."""
    enable_ram_x_parse: bool = False
    """Read x from the console's RAM instead of the info of the environment."""
    ram_x_high_addr: str = "0x6D"
    """Address of the page of x."""
    ram_x_low_addr: str = "0x86"
    """Address of x within its page."""
    ram_x_parse_fail_limit: int = 50
    """Failures to read x in a row after which distance earns an environment nothing any more."""

    def __post_init__(self) -> None:
        require_between(self, -1e4, 1e4, "reward_score_weight")
        require_between(self, 0, MAX_DISTANCE_WEIGHT, "reward_distance_weight")
        require_between(self, 0, 1e4, "reward_scale_start", "reward_scale_final")
        require_at_least_zero(self, "reward_scale_anneal_steps")
        require_positive(self, "ram_x_parse_fail_limit")
        for name in ("ram_x_high_addr", "ram_x_low_addr"):
            try:
                parse_address(getattr(self, name))
            except ConfigError as error:
                raise ConfigError(f"{flag_of(name)}: {error}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptSettings:
    """Getting off the start line: actions that no policy chose."""

    forward_action_id: int = -1
    """The action that leads forward; -1: found by --probe-forward-actions, else right with B."""
    probe_forward_actions: int = 0
    """Emulator frames for which every action is tried to find the one that leads forward; 0: no."""
    scripted_sequence: str = ""
    """Buttons at the start of an episode, such as RIGHT+B:180,A:8 (buttons, emulator frames)."""
    scripted_forward_frames: int = 0
    """Without --scripted-sequence: emulator frames of the forward action at the start."""
    scripted_episodes: int = 1
    """Episodes of each environment that begin with the script; 0: all of them."""
    scripted_to_replay: bool = True
    """Store scripted agent steps too; they are marked in the data."""
    auto_bootstrap_threshold: int = 0
    """Agent steps without new ground after which an environment is led forward; 0: never."""
    auto_bootstrap_frames: int = 1024
    """Emulator frames of the forward action then."""

    def __post_init__(self) -> None:
        require_between(self, -1, 255, "forward_action_id")
        require_between(self, 0, 2_000, "probe_forward_actions")
        require_between(self, 0, 20_000, "scripted_forward_frames")
        require_at_least_zero(self, "scripted_episodes", "auto_bootstrap_threshold")
        require_between(self, 1, 20_000, "auto_bootstrap_frames")


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveSettings:
    """Adapts three values to how play goes: more help while little moves forward, less after."""

    adaptive: bool = False
    """Adapt the distance weight, the exploration scale and the learning-rate scale."""
    adaptive_window_agent_steps: int = 20_000
    """Agent steps of the run between two changes of a value: each must have time to show."""
    adaptive_ratio_low: float = 0.3
    """Share of agent steps that move forward below which play needs more help."""
    adaptive_ratio_high: float = 0.6
    """Share above which it needs less."""
    adaptive_distance_weight_min: float = 0.0
    """Least distance weight."""
    adaptive_distance_weight_max: float = 0.2
    """Greatest distance weight."""
    adaptive_distance_weight_step: float = 0.02
    """Change of the distance weight at a time."""
    adaptive_exploration_scale_min: float = 0.5
    """Least factor on the epsilon ladder."""
    adaptive_exploration_scale_max: float = 2.0
    """Greatest factor on the epsilon ladder."""
    adaptive_exploration_scale_step: float = 0.1
    """Change of that factor at a time."""
    adaptive_lr_scale_min: float = 0.25
    """Least factor on the learning rate."""
    adaptive_lr_scale_max: float = 1.0
    """Greatest factor on the learning rate."""
    adaptive_lr_scale_step: float = 0.1
    """Change of that factor at a time."""

    def __post_init__(self) -> None:
        require_positive(self, "adaptive_window_agent_steps")
        require_between(self, 0, 1, "adaptive_ratio_low", "adaptive_ratio_high")
        low, high = self.adaptive_ratio_low, self.adaptive_ratio_high
        require(low < high, "adaptive_ratio_low", f"below --adaptive-ratio-high ({high})", low)
        self._check_range("distance_weight", MAX_DISTANCE_WEIGHT)
        self._check_range("exploration_scale", MAX_EXPLORATION_SCALE)
        self._check_range("lr_scale", MAX_LR_SCALE)

    def _check_range(self, name: str, most: float) -> None:
        least, greatest, step = (f"adaptive_{name}_{end}" for end in ("min", "max", "step"))
        require_between(self, 0, most, least, greatest)
        require_positive(self, step)
        low, high = getattr(self, least), getattr(self, greatest)
        require(low <= high, least, f"at most the greatest ({high})", low)


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosisSettings:
    """What a run says about itself besides its metrics."""

    hints: bool = True
    """Print what to change when the figures show that something is wrong."""
    hint_interval_s: float = 60.0
    """Seconds before the same hint is given again; they double while it stays true."""
    slow_step_trace_threshold: float = 0.0
    """Seconds that an agent step may take before it counts as slow; 0: not watched."""
    slow_step_trace_window: float = 60.0
    """Seconds within which several slow steps leave the stacks of all threads, once."""
    slow_step_trace_count: int = 3
    """How many slow steps are several."""
    enable_tensorboard: bool = False
    """Write the metrics for TensorBoard too (extra tensorboard)."""
    parquet: bool = False
    """Refresh metrics/latest.parquet while training (extra parquet)."""

    def __post_init__(self) -> None:
        require_positive(self, "hint_interval_s", "slow_step_trace_window")
        require_wait(self, "hint_interval_s", "slow_step_trace_window")
        require_wait(self, "slow_step_trace_threshold")
        require_between(self, 1, 1_000, "slow_step_trace_count")
