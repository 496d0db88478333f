"""The lines of metrics.jsonl as columns of numbers in bounded memory."""

from __future__ import annotations

import threading
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from common.metrics import METRICS
from launch.control_room.series import Floats, newest_lineage, training_minutes

MAX_ROWS: Final = 120_000
"""At twice that many bytes per column; beyond it every second row is dropped."""
EXACT: Final = frozenset({"time", "global_step", "run_time_s"})
"""What axes are made of; float32 would round it."""
NUMERIC: Final = tuple(metric.name for metric in METRICS if metric.kind != "text")
AXES: Final = ("steps", "minutes", "time")


@dataclass(frozen=True, slots=True)
class Columns:
    """Copies of some columns of one moment, all of one length; those of the axes are among them."""

    values: Mapping[str, Floats]

    def counted(self) -> NDArray[np.bool_]:
        return newest_lineage(self.values["global_step"])

    def axis(self, kind: str) -> Floats:
        if kind == "minutes":
            return training_minutes(np.nan_to_num(self.values["run_time_s"]))
        if kind == "time":
            # A clock that was set back must not let curves run backwards.
            return np.maximum.accumulate(self.values["time"])
        return self.values["global_step"]


class MetricTable:
    """Appends records; a name that is not registered never becomes a column.

    One thread appends while others take copies.
    """

    def __init__(self, max_rows: int = MAX_ROWS) -> None:
        self._max_rows = max_rows
        self._columns = {name: array("d" if name in EXACT else "f") for name in NUMERIC}
        self._lock = threading.Lock()
        self.rows = 0
        self.seen = 0
        """Records that ever came: it grows when there is something new."""

    def append(self, record: Mapping[str, object]) -> None:
        if not all(_is_number(record.get(name)) for name in ("time", "global_step")):
            return
        with self._lock:
            for name, column in self._columns.items():
                column.append(as_float(record.get(name)))
            self.rows += 1
            self.seen += 1
            if self.rows > self._max_rows:
                self._thin()

    def _thin(self) -> None:
        for name, column in self._columns.items():
            # The newest row stays.
            self._columns[name] = column[(self.rows - 1) % 2 :: 2]
        self.rows = len(self._columns["time"])

    def taken(self, names: Iterable[str] = ()) -> Columns:
        """Copies: the table may grow while they are used."""
        wanted = {*names, *EXACT}
        with self._lock:
            return Columns(
                {name: np.array(self._columns[name], dtype=np.float64) for name in wanted}
            )

    def newest(self, names: Iterable[str], rows: int) -> dict[str, Floats]:
        """Copies of the last rows."""
        with self._lock:
            return {name: np.array(self._columns[name][-rows:], dtype=np.float64) for name in names}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def as_float(value: object) -> float:
    """NaN for anything that is no number, and for one that no column holds."""
    if not isinstance(value, int | float):
        return float("nan")
    try:
        number = float(value)
    except OverflowError:
        return float("nan")
    return number if abs(number) < 3e38 else float("nan")  # noqa: PLR2004 - the float32 limit
