"""Values that change while a run proceeds: pure functions of its progress."""

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


def learning_rate_schedule(
    duration: int, *, start: float = 2.5e-4, end: float = 5e-5
) -> LinearSchedule:
    """Falls so that late updates refine: a constant rate left greedy play unstable."""
    return LinearSchedule(start=start, end=end, duration=duration)


def importance_beta_schedule(
    duration: int, *, start: float = 0.4, end: float = 1.0
) -> LinearSchedule:
    """The exponent of the importance weights; 1 corrects the sampling bias in full."""
    return LinearSchedule(start=start, end=end, duration=duration)
