from __future__ import annotations

from tests.faults.soak import Look, Pace, SoakArgs, judge

ARGS = SoakArgs(minutes=30.0)


def looks(late_mb: float) -> list[Look]:
    return [
        Look(float(second), "actor", 1, 200.0 if second < 900 else late_mb, 12, 3)
        for second in range(0, 1800, 5)
    ]


def steps(late_rate: float) -> list[tuple[float, int]]:
    total, lines = 0.0, []
    for second in range(0, 1800, 5):
        total += 5 * (100.0 if second < 900 else late_rate)
        lines.append((float(second), int(total)))
    return lines


def paces(late: float = 1.0) -> list[Pace]:
    return [Pace(float(second), 1.0 if second < 900 else late) for second in range(0, 1800, 5)]


def test_what_stays_flat_holds() -> None:
    assert all(one.holds for one in judge(looks(205.0), paces(), steps(99.0), ARGS))


def test_a_machine_that_others_slow_down_is_not_taken_for_ours() -> None:
    assert all(one.holds for one in judge(looks(205.0), paces(0.8), steps(80.0), ARGS))
    assert not all(one.holds for one in judge(looks(205.0), paces(1.2), steps(100.0), ARGS))


def test_growth_and_slowing_down_are_noticed() -> None:
    broken = [one.what for one in judge(looks(230.0), paces(), steps(90.0), ARGS) if not one.holds]

    assert broken == ["actor: rss_mb flat", "rate of the last part"]
