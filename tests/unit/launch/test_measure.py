from __future__ import annotations

from functools import partial

import pytest

from launch.measure import Contender, Timing, compare, interleave, summarise
from launch.run_curves import axis_values


def test_contenders_take_turns_and_the_first_round_does_not_count() -> None:
    calls: list[str] = []
    now_s = 0.0

    def work(name: str) -> None:
        nonlocal now_s
        calls.append(name)
        now_s += 1.0 if name in calls[:-1] else 1_000.0

    timings = interleave(
        {name: Contender(work=partial(work, name)) for name in ("a", "b")},
        rounds=3,
        clock=lambda: now_s,
    )

    assert calls == ["a", "b"] * 4
    assert timings["a"] == timings["b"] == Timing(1.0, 1.0, 1.0)


def test_slow_work_has_fewer_turns_but_at_least_one() -> None:
    calls: list[str] = []
    contenders = {
        "often": Contender(work=partial(calls.append, "o")),
        "seldom": Contender(work=partial(calls.append, "s"), every_rounds=3),
    }

    interleave(contenders, rounds=4)
    assert "".join(calls) == "os" + "os" + "o" + "o" + "os"

    calls.clear()
    interleave(contenders, rounds=1)
    assert "".join(calls) == "os" + "os"


def _nothing() -> None:
    return


def test_times_are_per_unit_and_compared_with_the_first_of_their_group() -> None:
    contenders = {
        "copy": Contender(work=_nothing, units_per_turn=10, group="a"),
        "draw": Contender(work=_nothing, units_per_turn=2, group="a"),
        "other": Contender(work=_nothing, group="b"),
    }
    timings = {name: Timing(6.0, 4.0, 8.0) for name in contenders}

    copy, draw, other = compare(contenders, timings)

    assert (copy.median_s, copy.low_quartile_s, copy.high_quartile_s) == (0.6, 0.4, 0.8)
    assert (copy.ratio, draw.ratio, other.ratio) == (1.0, 5.0, 1.0)


def test_the_ratio_of_rates_is_larger_for_the_faster_and_knows_the_frames_of_an_agent_step() -> (
    None
):
    contenders = {
        "frames": Contender(work=_nothing, units_per_turn=32, is_rate=True),
        "agent steps": Contender(
            work=_nothing, units_per_turn=8, is_rate=True, reference_units=4, unit="agent step"
        ),
    }
    timings = {"frames": Timing(0.32, 0.32, 0.32), "agent steps": Timing(0.16, 0.16, 0.16)}

    frames, agent_steps = compare(contenders, timings)

    assert 1 / frames.median_s == pytest.approx(100)
    assert 1 / agent_steps.median_s == pytest.approx(50)
    assert agent_steps.ratio == pytest.approx(2.0)


def test_quartiles() -> None:
    timing = summarise([4.0, 1.0, 3.0, 2.0, 5.0])

    assert (timing.low_quartile_s, timing.median_s, timing.high_quartile_s) == (2.0, 3.0, 4.0)


def test_minutes_go_on_over_restarts_without_the_pauses() -> None:
    lines = [{"run_time_s": value, "global_step": 0} for value in (60, 120, 30, 90)]

    assert axis_values(lines, "minutes") == [1.0, 2.0, 2.5, 3.5]
