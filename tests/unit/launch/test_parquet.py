from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from common.jsonl import JsonlWriter
from common.metrics import METRIC_NAMES
from launch.parquet import MetricsTable, ParquetExport
from tests.waiting import wait_until

pytest.importorskip("pyarrow")


def line(step: int, **values: object) -> dict[str, object]:
    known = {"global_step": step, "model_compiled": False, "bottleneck": "actors"}
    return {**dict.fromkeys(METRIC_NAMES), **known, **values}


def write(path: Path, *records: dict[str, object]) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(record) + "\n" for record in records)


def columns(encoded: bytes, *names: str) -> list[list[Any]]:
    import pyarrow  # noqa: PLC0415 - an extra
    from pyarrow import parquet  # noqa: PLC0415 - an extra

    table = parquet.read_table(pyarrow.BufferReader(encoded))
    return [table[name].to_pylist() for name in names]


def steps(table: MetricsTable) -> list[float]:
    (found,) = columns(table.encode(), "global_step")
    return found


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "metrics.jsonl"


def test_every_metric_is_a_column_with_its_type(path: Path) -> None:
    table = MetricsTable()
    write(path, line(5, loss_total=0.5, model_compiled=True), line(10))

    assert table.read_new(path) == 2

    step, loss, compiled, text = columns(
        table.encode(), "global_step", "loss_total", "model_compiled", "bottleneck"
    )
    assert step == [5.0, 10.0]
    assert loss == [0.5, None]
    assert compiled == [True, False]
    assert text == ["actors", "actors"]


def test_a_line_is_read_once_and_a_torn_one_when_it_is_whole(path: Path) -> None:
    table = MetricsTable()
    whole = json.dumps(line(2)) + "\n"
    write(path, line(1))
    with path.open("a", encoding="utf-8") as file:
        file.write(whole[:40])

    before = (table.read_new(path), table.read_new(path))
    with path.open("a", encoding="utf-8") as file:
        file.write(whole[40:])

    assert before == (1, 0)
    assert table.read_new(path) == 1
    assert steps(table) == [1.0, 2.0]


def test_lines_that_are_no_records_are_skipped(path: Path) -> None:
    table = MetricsTable()
    path.write_text('{"global_step": 1\nnonsense\n[1, 2]\n', encoding="utf-8")
    write(path, line(3, loss_total="high", bottleneck=4, unknown_name=1))

    table.read_new(path)

    assert columns(table.encode(), "global_step", "loss_total", "bottleneck") == [
        [3.0],
        [None],
        [None],
    ]


def test_rotation_loses_no_line(path: Path) -> None:
    table = MetricsTable()
    writer = JsonlWriter(path, rotate_bytes=20_000)
    for step in range(40):
        writer.write(line(step))
        if step % 3 == 0:
            table.read_new(path)
    table.read_new(path)
    writer.close()

    assert path.with_name("metrics.jsonl.1").exists()
    assert steps(table) == [float(step) for step in range(40)]


def test_only_the_newest_lines_are_kept(path: Path) -> None:
    table = MetricsTable(max_lines=3)
    for step in range(10):
        write(path, line(step))
        table.read_new(path)

    assert steps(table) == [7.0, 8.0, 9.0]


def test_the_file_is_refreshed_while_the_run_goes_on_and_at_its_end(path: Path) -> None:
    target = path.parent / "metrics" / "latest.parquet"
    write(path, line(1))
    export = ParquetExport(path, target, interval_s=0.01)
    wait_until("the file", target.exists, 10)
    first = target.read_bytes()

    write(path, line(2))
    export.close()

    assert columns(first, "global_step") == [[1.0]]
    assert columns(target.read_bytes(), "global_step") == [[1.0, 2.0]]
    assert [entry.name for entry in target.parent.iterdir()] == ["latest.parquet"]


def test_a_place_that_cannot_be_written_is_one_warning(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (path.parent / "metrics").write_text("a file, where a folder should be")
    write(path, line(1))
    export = ParquetExport(path, path.parent / "metrics" / "latest.parquet", interval_s=0.01)

    wait_until("a warning", lambda: bool(caplog.records), 10)
    export.close()

    (record,) = [one for one in caplog.records if one.levelno >= logging.WARNING]
    assert record.message == "metrics were not written as Parquet"


def test_a_run_without_metrics_yet_has_no_file(path: Path) -> None:
    ParquetExport(path, path.parent / "metrics" / "latest.parquet").close()

    assert not (path.parent / "metrics").exists()
