from __future__ import annotations

import pytest

from common.errors import ConfigError
from tests.faults.soak import Look, SoakArgs, judge
from tests.faults.soak_rates import SETTLE_S, Part, part_beside, steadiness

ARGS = SoakArgs(minutes=30.0)


def looks(late_mb: float) -> list[Look]:
    return [
        Look(float(second), "actor", 1, 200.0 if second < 900 else late_mb, 12, 3)
        for second in range(0, 1800, 5)
    ]


def steps(rate: float, *, began: int = 0) -> list[tuple[float, int]]:
    return [(float(began + second), int(rate * second)) for second in range(0, 300, 5)]


def beside(old: float, fresh: float) -> Part:
    return Part(steps(old), steps(fresh))


def test_what_stays_flat_holds() -> None:
    parts = [beside(100.0, 100.0), beside(99.0, 100.0)]

    assert all(one.holds for one in judge(looks(205.0), parts, ARGS))


def test_a_machine_that_others_slow_down_is_not_taken_for_ours() -> None:
    assert steadiness(beside(100.0, 100.0), beside(60.0, 60.0)).holds
    assert not steadiness(beside(100.0, 100.0), beside(100.0, 120.0)).holds


def test_growth_and_slowing_down_are_noticed() -> None:
    parts = [beside(100.0, 100.0), beside(90.0, 100.0)]
    broken = [one.what for one in judge(looks(230.0), parts, ARGS) if not one.holds]

    assert broken == ["actor: rss_mb flat", "rate of the last part"]


def test_a_learner_that_went_back_does_not_count_backwards() -> None:
    gone_back = [(second, total - 2000 if second >= 100 else total) for second, total in steps(100)]

    assert steadiness(beside(100.0, 100.0), Part(gone_back, steps(100.0))).holds


def test_only_what_was_done_beside_the_settled_fresh_run_counts() -> None:
    part = part_beside(steps(100.0), steps(100.0, began=100))

    assert part.old[0][0] == part.fresh[0][0] == 100 + SETTLE_S
    assert part.old[-1][0] == 295.0
    assert part.fresh[-1][0] == 395.0


def test_a_soak_too_short_for_its_parts_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"at least .*, got 2"):
        SoakArgs(minutes=2.0)
