from __future__ import annotations

import pytest

from actor.env.reward import Progress, frame_reward


@pytest.mark.parametrize(
    ("dx", "expected"), [(0, 0), (3, 3), (5, 5), (6, 0), (-5, -5), (-6, 0), (-1024, 0)]
)
def test_movement_counts_up_to_five_pixels(dx: int, expected: float) -> None:
    before, after = Progress(2000, 300), Progress(2000 + dx, 300)

    assert frame_reward(before, after, is_dying_or_dead=False) == expected


@pytest.mark.parametrize(("ticks", "expected"), [(-1, -1), (0, 0), (100, 0)])
def test_the_clock_only_costs(ticks: int, expected: float) -> None:
    before, after = Progress(10, 300), Progress(10, 300 + ticks)

    assert frame_reward(before, after, is_dying_or_dead=False) == expected


def test_a_death_is_clipped() -> None:
    before, after = Progress(10, 300), Progress(15, 300)

    assert frame_reward(before, after, is_dying_or_dead=True) == -15.0


def test_a_clock_run_down_at_once_is_clipped() -> None:
    before, after = Progress(10, 300), Progress(10, 0)

    assert frame_reward(before, after, is_dying_or_dead=False) == -15.0
