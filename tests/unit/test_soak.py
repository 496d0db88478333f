from __future__ import annotations

import pytest

from common.errors import ConfigError
from tests.faults.soak import Look, SoakArgs, judge
from tests.faults.soak_rates import Part, Steadiness, Steps, part_between

ARGS = SoakArgs(minutes=30.0)


def looks(late_mb: float) -> list[Look]:
    return [
        Look(float(second), "actor", 1, 200.0 if second < 900 else late_mb, 12, 3)
        for second in range(0, 1800, 5)
    ]


def steps(rate: float) -> list[tuple[float, int]]:
    return [(float(second), int(rate * second)) for second in range(0, 301, 5)]


def part(old: Steps, fresh: Steps) -> Part:
    return part_between(0.0, 300.0, old, fresh)


def beside(old: float, fresh: float) -> Part:
    return part(steps(old), steps(fresh))


def test_what_stays_flat_holds() -> None:
    parts = [beside(100.0, 100.0), beside(99.0, 100.0)]

    assert all(one.holds for one in judge(looks(205.0), parts, ARGS))


def test_a_machine_that_others_slow_down_is_not_taken_for_ours() -> None:
    assert Steadiness(beside(100.0, 100.0), beside(60.0, 60.0)).holds
    assert not Steadiness(beside(100.0, 100.0), beside(100.0, 120.0)).holds


def test_growth_and_slowing_down_are_noticed() -> None:
    parts = [beside(100.0, 100.0), beside(90.0, 100.0)]
    broken = [one.what for one in judge(looks(230.0), parts, ARGS) if not one.holds]

    assert broken == ["actor: rss_mb flat", "rate of the last part"]


def test_a_run_that_stands_still_for_a_part_of_the_time_is_noticed() -> None:
    silent = [one for one in steps(100.0) if not 100 <= one[0] < 200]
    stood = [(second, min(total, 10_000)) for second, total in steps(100.0)]

    assert Steadiness(beside(100.0, 100.0), part(silent, steps(100.0))).holds
    assert not Steadiness(beside(100.0, 100.0), part(stood, steps(100.0))).holds
    assert not Steadiness(beside(100.0, 100.0), part(silent[:20], steps(100.0))).holds


def test_a_learner_that_went_back_does_not_count_backwards() -> None:
    gone_back = [(second, total - 2000 if second >= 100 else total) for second, total in steps(100)]
    made_good = Steadiness(beside(100.0, 100.0), part(gone_back, steps(100.0)))

    assert made_good.relative == pytest.approx(0.983, abs=0.001)


def test_a_fresh_run_that_never_ran_proves_nothing() -> None:
    assert not Steadiness(beside(100.0, 100.0), part(steps(100.0), [])).holds
    assert not Steadiness(part(steps(100.0), []), beside(100.0, 100.0)).holds


def test_only_what_both_did_in_the_part_counts() -> None:
    found = part_between(100.0, 200.0, steps(50.0), steps(100.0))

    assert (found.old[0][0], found.old[-1][0]) == (100.0, 200.0)
    assert (found.old_rate, found.share) == (50.0, 0.5)


def test_a_soak_too_short_for_its_parts_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"at least .*, got 2"):
        SoakArgs(minutes=2.0)
