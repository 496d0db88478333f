"""`metrics/latest.parquet`: metrics.jsonl as columns, refreshed beside the run.

A thread of the launcher does it, so training never waits for it. Each line is read once, memory
is bounded by a number of lines, and readers see the old file or the new one, never a part.
"""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from common.atomic_files import write_atomic
from common.metrics import METRICS, Metric

log = logging.getLogger(__name__)

REFRESH_INTERVAL_S = 15.0
CLOSE_DEADLINE_S = 10.0
MAX_LINES = 20_000
"""About a day of lines; some 20 MB in memory."""
CHUNK_BYTES = 1 << 20
Record = dict[str, object]


class MetricsTable:
    """The newest lines of a metrics.jsonl that grows and is rotated."""

    def __init__(self, max_lines: int = MAX_LINES) -> None:
        import pyarrow  # noqa: PLC0415 - an extra

        self._arrow: Any = pyarrow
        self._max_lines = max_lines
        self._table: Any = pyarrow.schema(
            [(metric.name, _type_of(metric, pyarrow)) for metric in METRICS]
        ).empty_table()
        self._read_bytes: dict[int, int] = {}
        """By inode: a file that is rotated away is read to its end under its new name."""

    def read_new(self, path: Path) -> int:
        """Take over whole lines that were written since the last call; how many."""
        known, self._read_bytes, count = self._read_bytes, {}, 0
        for part in (path.with_name(f"{path.name}.1"), path):
            if not part.exists():
                continue
            with part.open("rb") as file:
                stat = os.fstat(file.fileno())
                begin = known.get(stat.st_ino, 0)
                # A smaller file has only inherited the number of one that is gone.
                file.seek(begin if begin <= stat.st_size else 0)
                for records in _chunks(file):
                    self._append(records)
                    count += len(records)
                self._read_bytes[stat.st_ino] = file.tell()
        return count

    def encode(self) -> bytes:
        from pyarrow import parquet  # noqa: PLC0415 - an extra

        sink = self._arrow.BufferOutputStream()
        parquet.write_table(self._table, sink)
        return bytes(sink.getvalue())

    def _append(self, records: Sequence[Record]) -> None:
        columns = {
            metric.name: [_cell(record.get(metric.name), metric) for record in records]
            for metric in METRICS
        }
        new = self._arrow.table(columns, schema=self._table.schema)
        both = self._arrow.concat_tables([self._table, new])
        surplus = max(both.num_rows - self._max_lines, 0)
        self._table = both.slice(surplus).combine_chunks()


def _chunks(file: BinaryIO) -> Iterator[list[Record]]:
    """Records of about a megabyte at a time; the file then stands at the first torn line."""
    while lines := file.readlines(CHUNK_BYTES):
        if not lines[-1].endswith(b"\n"):
            file.seek(-len(lines.pop()), os.SEEK_CUR)
            yield _records(lines)
            return
        yield _records(lines)


def _records(lines: Sequence[bytes]) -> list[Record]:
    found = []
    for line in lines:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(record, dict):
            found.append(record)
    return found


def _type_of(metric: Metric, arrow: Any) -> Any:
    if metric.kind == "text":
        return arrow.string()
    return arrow.bool_() if metric.unit == "bool" else arrow.float64()


def _cell(value: object, metric: Metric) -> str | bool | float | None:
    """Null for what does not belong into the column: lines may be of another version."""
    if metric.kind == "text":
        return value if isinstance(value, str) else None
    if not isinstance(value, int | float):
        return None
    return bool(value) if metric.unit == "bool" else float(value)


class ParquetExport:
    """Refreshes the file until it is closed, and once more then."""

    def __init__(
        self, source: Path, target: Path, *, interval_s: float = REFRESH_INTERVAL_S
    ) -> None:
        self._table = MetricsTable()
        self._source = source
        self._target = target
        self._interval_s = interval_s
        self._has_failed = False
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="parquet", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        self._thread.join(CLOSE_DEADLINE_S)

    def _run(self) -> None:
        while not self._stop.wait(self._interval_s):
            self._refresh()
        self._refresh()

    def _refresh(self) -> None:
        try:
            if self._table.read_new(self._source) or self._has_failed:
                self._target.parent.mkdir(exist_ok=True)
                write_atomic(self._target, self._table.encode())
        except Exception as error:  # of the disk, or whatever a version of pyarrow raises
            if not self._has_failed:
                extra = {"path": self._target, "error": f"{type(error).__name__}: {error}"[:300]}
                log.warning("metrics were not written as Parquet", extra=extra)
            self._has_failed = True
        else:
            self._has_failed = False
