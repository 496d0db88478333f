"""What an observation and an action are in this run: the part of HELLO on which all must agree."""

from __future__ import annotations

from dataclasses import dataclass

from common.errors import ConfigError

MAX_ACTIONS = 64
MAX_STACK = 16
MAX_FRAME_SIDE = 256
MAX_N_STEP = 64
MAX_QUANTILES = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSpec:
    """Shapes of the data. A peer with another spec is refused at HELLO."""

    height: int = 84
    width: int = 84
    stack: int = 4
    num_actions: int = 7
    n_step: int = 5
    """Agent steps that the return of one transition sums; blocks carry this much look-ahead."""

    def __post_init__(self) -> None:
        limits = {
            "height": MAX_FRAME_SIDE,
            "width": MAX_FRAME_SIDE,
            "stack": MAX_STACK,
            "num_actions": MAX_ACTIONS,
            "n_step": MAX_N_STEP,
        }
        for name, limit in limits.items():
            value = getattr(self, name)
            if not 1 <= value <= limit:
                raise ConfigError(f"{name} must be between 1 and {limit}, got {value}")

    @property
    def frame_bytes(self) -> int:
        return self.height * self.width

    @property
    def no_action(self) -> int:
        """The previous action of an episode's first step; its one-hot encoding is all zeros."""
        return self.num_actions
