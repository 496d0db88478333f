"""Curves for a screen: few points that keep every peak; pure functions of arrays.

A screen has a thousand columns, a long run a hundred thousand lines. Of every column the smallest
and the largest value are kept, at the places where they were measured.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indexes = NDArray[np.int64]
SECONDS_PER_MINUTE = 60.0
SMOOTH_BLOCK = 64


def newest_lineage(steps: Floats) -> NDArray[np.bool_]:
    """Rows that still count: a run that went back to a checkpoint took back what came after it."""
    if not len(steps):
        return np.zeros(0, dtype=np.bool_)
    least_later = np.minimum.accumulate(steps[::-1])[::-1]
    return steps <= least_later


def training_minutes(run_time_s: Floats) -> Floats:
    """Minutes of training over all starts of a run, without the pauses between them."""
    if not len(run_time_s):
        return run_time_s
    grown = np.diff(run_time_s, prepend=0.0)
    # A new start counts from zero again.
    grown = np.where(grown < 0, run_time_s, grown)
    return np.cumsum(grown) / SECONDS_PER_MINUTE


def smooth(values: Floats, weight: float) -> Floats:
    """Exponential mean without a bias at the beginning; gaps stay gaps and count for nothing."""
    if weight <= 0.0:
        return values
    known = ~np.isnan(values)
    total = _decayed_sum(np.where(known, values, 0.0), weight)
    count = _decayed_sum(known.astype(np.float64), weight)
    return np.where(known, total / np.where(known, count, 1.0), np.nan)


def _decayed_sum(values: Floats, weight: float) -> Floats:
    """Sum over j <= i of weight^(i - j) * values[j]; by blocks, a loop over rows would be slow."""
    padded = np.pad(values, (0, -len(values) % SMOOTH_BLOCK)).reshape(-1, SMOOTH_BLOCK)
    place = np.arange(SMOOTH_BLOCK)
    distance = place[:, None] - place[None, :]
    kernel = np.where(distance >= 0, weight ** np.maximum(distance, 0), 0.0)
    sums = padded @ kernel.T
    fade, carried = weight ** (place + 1.0), 0.0
    for number in range(len(sums)):
        sums[number] += carried * fade
        carried = float(sums[number, -1])
    return sums.reshape(-1)[: len(values)]


def pick_extremes(x: Floats, columns: Mapping[str, Floats], buckets: int) -> Indexes:
    """Places of the smallest and the largest value of each column in every bucket of `x`.

    `x` never falls. All columns share the places, so that they can be drawn over one axis; the
    first and the last row are always among them.
    """
    if len(x) <= 2 * buckets:
        return np.arange(len(x))
    span = x[-1] - x[0]
    if span <= 0:
        return np.asarray([0, len(x) - 1])
    bucket = np.minimum(((x - x[0]) * (buckets / span)).astype(np.int64), buckets - 1)
    starts = np.flatnonzero(np.diff(bucket, prepend=-1))
    chosen = [np.asarray([0, len(x) - 1])]
    for values in columns.values():
        known = np.flatnonzero(~np.isnan(values))
        chosen += [_extreme(values, known, starts, sign) for sign in (1.0, -1.0)]
    return np.unique(np.concatenate(chosen))


def _extreme(values: Floats, known: Indexes, starts: Indexes, sign: float) -> Indexes:
    """The place of the least `sign * value` in every bucket that has a value."""
    group = np.searchsorted(starts, known, side="right")
    order = np.lexsort((sign * values[known], group))
    first = np.flatnonzero(np.diff(group[order], prepend=-1))
    return known[order[first]]


def as_numbers(values: Floats) -> list[float | None]:
    """For JSON, which knows no NaN; six digits are more than a screen shows."""
    return [float(f"{one:.6g}") if np.isfinite(one) else None for one in values.tolist()]
