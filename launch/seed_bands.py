"""Curves of runs, and what the curves of several seeds have in common; pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final

import numpy as np

from launch.run_curves import RunLines, axis_values, axis_values_of_steps

LOW, MIDDLE, HIGH = 0.1, 0.5, 0.9
"""Quantiles over the seeds: the lower edge of the band, the line, the upper edge."""
POINTS: Final = 400
EVALUATION_BANDS: Final = {
    "clear_rate": ("clear_rate_low", "clear_rate_high"),
    "x_p50": ("x_p10", "x_p90"),
}
"""What a single run knows about the spread of its own figures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    places: list[float]
    values: list[float]
    low: list[float] | None = None
    high: list[float] | None = None


def metric_curve(run: RunLines, name: str, axis: str) -> Curve:
    """Of a figure of metrics.jsonl, where it is known."""
    places = axis_values(run.metrics, axis)
    lines = zip(places, run.metrics, strict=True)
    known = [(place, float(line[name])) for place, line in lines if _is_number(line.get(name))]
    return Curve(places=[place for place, _ in known], values=[value for _, value in known])


def evaluation_curve(run: RunLines, stage: str, name: str, axis: str) -> Curve:
    """Of a figure of eval.jsonl, with the band that its lines tell."""
    lines = run.evaluations_of(stage)
    bounds = EVALUATION_BANDS[name]
    has_band = all(_is_number(line.get(bound)) for line in lines for bound in bounds)
    low, high = ([float(line[bound]) for line in lines] if has_band else None for bound in bounds)
    places = axis_values_of_steps(run, [float(line["global_step"]) for line in lines], axis)
    return Curve(places=places, values=[float(line[name]) for line in lines], low=low, high=high)


def over_seeds(curves: Sequence[Curve]) -> Curve | None:
    """Median and band of several curves where all of them are known; None where that is nowhere."""
    if not curves or not all(curve.places for curve in curves):
        return None
    start = max(curve.places[0] for curve in curves)
    end = min(max(curve.places) for curve in curves)
    if end < start:
        return None
    places = np.linspace(start, end, POINTS)
    # A run may go back to an older checkpoint; reading between points needs places that never fall.
    values = [np.interp(places, list(accumulate(one.places, max)), one.values) for one in curves]
    low, middle, high = np.quantile(values, (LOW, MIDDLE, HIGH), axis=0).tolist()
    return Curve(places=places.tolist(), values=middle, low=low, high=high)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float)
