"""Answers to "which curves, over which axis, from where to where": panels as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from launch.control_room.metric_table import AXES, as_float
from launch.control_room.panels import Panel, panels_named
from launch.control_room.run_reader import RunReader
from launch.control_room.series import Floats, as_numbers, pick_extremes, smooth

MAX_BUCKETS: Final = 1_000
MAX_SMOOTHING: Final = 0.999


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveQuery:
    """What a viewer wants to see; everything is brought into its range."""

    keys: tuple[str, ...]
    axis: str = "steps"
    buckets: int = 300
    smoothing: float = 0.0
    begin: float | None = None
    end: float | None = None

    @classmethod
    def of(cls, words: dict[str, str]) -> CurveQuery:
        axis = words.get("axis", "steps")
        return cls(
            keys=tuple(sorted({word for word in words.get("panels", "").split(",") if word})),
            axis=axis if axis in AXES else "steps",
            buckets=int(min(max(_number(words.get("buckets"), 300.0), 10.0), MAX_BUCKETS)),
            smoothing=min(max(_number(words.get("smooth"), 0.0), 0.0), MAX_SMOOTHING),
            begin=_bound(words.get("from")),
            end=_bound(words.get("to")),
        )


def _number(word: str | None, default: float) -> float:
    try:
        value = float(word) if word else default
    except ValueError:
        return default
    return value if np.isfinite(value) else default


def _bound(word: str | None) -> float | None:
    value = _number(word, float("nan")) if word else float("nan")
    return value if np.isfinite(value) else None


def draw(reader: RunReader, query: CurveQuery) -> dict[str, object]:
    """Per panel: the axis, and a list of values per name."""
    return {
        panel.key: (
            _draw_evaluations(reader, panel, query)
            if panel.source == "eval"
            else _draw_metrics(reader, panel, query)
        )
        for panel in panels_named(query.keys)
    }


def _draw_metrics(reader: RunReader, panel: Panel, query: CurveQuery) -> dict[str, object]:
    table = reader.metrics.taken(panel.names)
    x = table.axis(query.axis)
    counted = table.counted() if query.axis == "steps" else np.ones(len(x), dtype=np.bool_)
    columns = {name: smooth(table.values[name][counted], query.smoothing) for name in panel.names}
    return _cut(x[counted], columns, query)


def _draw_evaluations(reader: RunReader, panel: Panel, query: CurveQuery) -> dict[str, object]:
    """The stage that was evaluated last, where there are several."""
    records = reader.scores()
    stages = sorted({str(record.get("stage")) for record in records})
    drawn = {}
    for stage in stages[:8]:
        own = [record for record in records if str(record.get("stage")) == stage]
        x = _evaluation_axis(reader, own, query.axis)
        order = np.argsort(x, kind="stable")
        names = (*panel.names, *(panel.band or ()))
        columns = {
            name: np.asarray([as_float(record.get(name)) for record in own])[order]
            for name in names
        }
        drawn[stage] = _cut(x[order], columns, query)
    return {"stages": drawn}


def _evaluation_axis(reader: RunReader, records: Sequence[dict[str, object]], axis: str) -> Floats:
    steps = np.asarray([as_float(record.get("global_step")) for record in records])
    if axis == "steps":
        return steps
    if axis == "time":
        return np.asarray([as_float(record.get("time")) for record in records])
    metrics = reader.metrics.taken()
    known = np.maximum.accumulate(metrics.axis("steps"))
    if not len(known):
        return steps * 0.0
    places = np.minimum(np.searchsorted(known, steps), len(known) - 1)
    return metrics.axis("minutes")[places]


def _cut(x: Floats, columns: dict[str, Floats], query: CurveQuery) -> dict[str, object]:
    """The part that is asked for, with a row on each side so that lines reach the edges."""
    begin = 0 if query.begin is None else max(0, int(np.searchsorted(x, query.begin)) - 1)
    end = len(x) if query.end is None else int(np.searchsorted(x, query.end, side="right")) + 1
    x = x[begin:end]
    columns = {name: values[begin:end] for name, values in columns.items()}
    chosen = pick_extremes(x, columns, query.buckets)
    return {
        "x": [float(one) for one in x[chosen].tolist()],
        "y": {name: as_numbers(values[chosen]) for name, values in columns.items()},
        "rows": len(x),
    }
