from __future__ import annotations

import pytest

from common.errors import ConfigError
from common.linear_schedule import LinearSchedule
from learner.schedules import importance_beta_schedule, learning_rate_schedule


@pytest.mark.parametrize(
    ("progress", "rate"), [(-5, 2.5e-4), (0, 2.5e-4), (50, 1.5e-4), (100, 5e-5), (10**9, 5e-5)]
)
def test_learning_rate_falls_linearly_and_stays(progress: int, rate: float) -> None:
    assert learning_rate_schedule(100).at(progress) == pytest.approx(rate)


def test_beta_rises_to_one() -> None:
    schedule = importance_beta_schedule(10)

    assert schedule.at(0) == 0.4
    assert schedule.at(5) == pytest.approx(0.7)
    assert schedule.at(10) == 1.0


def test_duration_of_zero_is_the_end_at_once() -> None:
    assert LinearSchedule(start=1.0, end=2.0, duration=0).at(0) == 2.0


def test_negative_duration_is_refused() -> None:
    with pytest.raises(ConfigError, match="duration"):
        LinearSchedule(start=1.0, end=2.0, duration=-1)
