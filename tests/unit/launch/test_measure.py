from __future__ import annotations

from launch.measure import interleave, summarise
from launch.plot import axis_values


def test_contenders_take_turns_and_the_first_round_does_not_count() -> None:
    calls: list[str] = []
    ticks = iter(range(1_000))

    timings = interleave(
        {"a": lambda: calls.append("a"), "b": lambda: calls.append("b")},
        rounds=3,
        clock=lambda: float(next(ticks)),
    )

    assert calls == ["a", "b"] * 4
    assert timings["a"].median_s == 1.0


def test_quartiles() -> None:
    timing = summarise([4.0, 1.0, 3.0, 2.0, 5.0])

    assert (timing.low_quartile_s, timing.median_s, timing.high_quartile_s) == (2.0, 3.0, 4.0)


def test_minutes_go_on_over_restarts_without_the_pauses() -> None:
    lines = [{"run_time_s": value, "global_step": 0} for value in (60, 120, 30, 90)]

    assert axis_values(lines, "minutes") == [1.0, 2.0, 2.5, 3.5]
