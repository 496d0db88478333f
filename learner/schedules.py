"""Values that change while a run proceeds: pure functions of its progress."""

from __future__ import annotations

from common.linear_schedule import LinearSchedule


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
