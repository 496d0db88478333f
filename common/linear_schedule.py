"""A value that changes in a straight line while a run proceeds: a pure function of its progress."""

from __future__ import annotations

from dataclasses import dataclass

from common.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearSchedule:
    """From `start` to `end` over `duration`, constant afterwards; one unit for both times.

    The unit (agent steps or updates) is the caller's. A duration of 0 means `end` at once.
    """

    start: float
    end: float
    duration: int

    def __post_init__(self) -> None:
        if self.duration < 0:
            raise ConfigError(f"a schedule's duration must be >= 0, got {self.duration}")

    def at(self, progress: int) -> float:
        if progress >= self.duration:
            return self.end
        fraction = max(progress, 0) / self.duration
        return self.start + (self.end - self.start) * fraction
