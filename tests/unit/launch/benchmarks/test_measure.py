from __future__ import annotations

import time
from functools import partial

import pytest

from launch.benchmarks.measure import (
    Bench,
    Contender,
    Effort,
    against_first,
    compare,
    figure,
    interleave,
    measure,
)
from launch.run_curves import axis_values


def test_contenders_take_turns_and_the_first_round_does_not_count() -> None:
    calls: list[str] = []
    now_s = 0.0

    def work(name: str) -> None:
        nonlocal now_s
        calls.append(name)
        now_s += 1.0 if name in calls[:-1] else 1_000.0

    samples = interleave(
        {name: Contender(work=partial(work, name)) for name in ("a", "b")},
        rounds=3,
        clock=lambda: now_s,
    )

    assert calls == ["a", "b"] * 4
    assert samples["a"] == samples["b"] == [1.0, 1.0, 1.0]


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
    samples = {name: [4.0, 6.0, 8.0] for name in contenders}

    copy, draw, other = compare(contenders, samples)

    assert (copy.median, copy.low_quartile, copy.high_quartile) == (0.6, 0.5, 0.7)
    assert copy.unit == "s/call"
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
    samples = {"frames": [0.32], "agent steps": [0.16]}

    frames, agent_steps = compare(contenders, samples)

    assert (frames.unit, agent_steps.unit) == ("call/s", "agent step/s")
    assert frames.median == pytest.approx(100)
    assert agent_steps.median == pytest.approx(50)
    assert agent_steps.ratio == pytest.approx(2.0)


def test_quartiles() -> None:
    row = figure("x", [4.0, 1.0, 3.0, 2.0, 5.0], "s")

    assert (row.low_quartile, row.median, row.high_quartile) == (2.0, 3.0, 4.0)


def test_a_single_value_is_its_own_quartiles() -> None:
    row = figure("x", [4.0], "bytes")

    assert (row.low_quartile, row.median, row.high_quartile, row.ratio) == (4.0, 4.0, 4.0, None)


def test_rows_are_compared_with_the_first_of_their_group() -> None:
    rows = [
        figure(name, [value], "s", group=name[0])
        for name, value in (("a1", 2.0), ("b1", 0.0), ("a2", 3.0), ("b2", 1.0))
    ]

    assert [row.ratio for row in against_first(rows)] == [1.0, None, 1.5, None]


def test_a_benchmark_is_measured_by_its_own_clock() -> None:
    now_s = 0.0

    def work() -> None:
        nonlocal now_s
        now_s += 7.0

    bench = Bench(contenders={"core": Contender(work=work)}, notes=("n",), clock=lambda: now_s)
    result = measure(bench, rounds=2)

    assert result.rows[0].median == 7.0
    assert result.notes == ("n",)


def test_rounds_that_were_asked_for_go_over_those_of_the_benchmark() -> None:
    assert Effort().turns(200, 20) == 200
    assert Effort(quick=True).turns(200, 20) == 20
    assert Effort(quick=True, rounds=7).turns(200, 20) == 7
    assert Effort(quick=True).seconds(10.0, 2.0) == 2.0


def test_minutes_go_on_over_restarts_without_the_pauses() -> None:
    lines = [{"run_time_s": value, "global_step": 0} for value in (60, 120, 30, 90)]

    assert axis_values(lines, "minutes") == [1.0, 2.0, 2.5, 3.5]


def test_a_rest_after_a_turn_is_not_measured() -> None:
    rested = Contender(work=lambda: None, rest_s=0.02)

    began_s = time.monotonic()
    samples = interleave({"rested": rested}, rounds=2)

    assert time.monotonic() - began_s >= 0.06
    assert max(samples["rested"]) < 0.02
