from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from launch.benchmark import Result, as_json, main, measure, show
from launch.measure import Bench, Contender, Row


def _row(name: str, *, is_rate: bool, median_s: float, ratio: float) -> Row:
    return Row(
        contender=name,
        unit="frame",
        group="",
        is_rate=is_rate,
        ratio=ratio,
        median_s=median_s,
        low_quartile_s=median_s / 2,
        high_quartile_s=median_s * 2,
    )


def _shown(*rows: Row, notes: tuple[str, ...] = ()) -> list[list[str]]:
    out = io.StringIO()
    show({"env": Result(list(rows), notes)}, Console(file=out, width=100))
    return [line.split() for line in out.getvalue().splitlines()]


def test_rates_are_per_second_with_the_lower_quartile_first() -> None:
    row = _row("core", is_rate=True, median_s=0.0005, ratio=4.0)

    assert _shown(row)[2] == ["core", "frame", "2,000", "/s", "1,000", "-", "4,000", "/s", "4.00"]


def test_times_have_a_scale_that_fits_them() -> None:
    long = _row("long", is_rate=False, median_s=0.25, ratio=1.0)
    short = _row("short", is_rate=False, median_s=2e-6, ratio=0.0123)

    lines = _shown(long, short)

    assert " ".join(lines[2]) == "long frame 250.000 ms 125.000 - 500.000 ms 1.00"
    assert " ".join(lines[3]) == "short frame 2.00 us 1.00 - 4.00 us 0.012"


def test_notes_stand_below_the_table() -> None:
    lines = _shown(_row("core", is_rate=True, median_s=1.0, ratio=1.0), notes=("no [compiler]",))

    assert lines[-1] == ["no", "[compiler]"]


def test_json_has_the_rows_of_every_benchmark_and_the_notes() -> None:
    result = Result([_row("core", is_rate=True, median_s=0.5, ratio=1.0)], ("a note",))

    document = json.loads(json.dumps(as_json({"env": result})))

    assert document["results"]["env"][0]["contender"] == "core"
    assert document["results"]["env"][0]["median_s"] == 0.5
    assert document["notes"] == ["a note"]
    assert document["machine"]["cores"] >= 1


def test_a_benchmark_is_measured_by_its_own_clock() -> None:
    now_s = 0.0

    def work() -> None:
        nonlocal now_s
        now_s += 7.0

    result = measure(
        Bench(contenders={"core": Contender(work=work)}, clock=lambda: now_s), rounds=2
    )

    assert result.rows[0].median_s == 7.0


def test_an_unknown_benchmark_is_a_configuration_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["nothing"]) == 2
    assert "env, actor, replay, learner, all; got 'nothing'" in capsys.readouterr().err
