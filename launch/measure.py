"""Interleaved timing: every contender in turn, many times, so that noise hits all alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

Work = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of one contender over all rounds."""

    median_s: float
    low_quartile_s: float
    high_quartile_s: float


def interleave(
    contenders: Mapping[str, Work], rounds: int, clock: Callable[[], float] = time.perf_counter
) -> dict[str, Timing]:
    """Run all contenders `rounds` times in turn, after one round that does not count."""
    samples: dict[str, list[float]] = {name: [] for name in contenders}
    for round_number in range(rounds + 1):
        for name, work in contenders.items():
            began = clock()
            work()
            if round_number > 0:
                samples[name].append(clock() - began)
    return {name: summarise(values) for name, values in samples.items()}


def summarise(seconds: list[float]) -> Timing:
    if len(seconds) == 1:
        return Timing(seconds[0], seconds[0], seconds[0])
    low, median, high = statistics.quantiles(seconds, n=4, method="inclusive")
    return Timing(median, low, high)
