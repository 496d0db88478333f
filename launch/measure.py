"""Interleaved timing: every contender in turn, many times, so that noise hits all alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

Work = Callable[[], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """One turn of work, what it counts in, and what it is compared with."""

    work: Work
    unit: str = "call"
    units_per_turn: int = 1
    is_rate: bool = False
    """Shown as units per second, not as the time of a unit."""
    group: str = ""
    """The first contender of a group is the reference of its ratios."""
    reference_units: int = 1
    """How many units of the reference one unit stands for: an agent step is four frames."""
    every_rounds: int = 1
    """More than 1 for what takes long: it has a turn in the first of so many rounds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """What is measured in one run, and remarks on what could not be."""

    contenders: Mapping[str, Contender]
    notes: tuple[str, ...] = ()
    clock: Callable[[], float] = time.perf_counter
    """Seconds; `time.thread_time` where short turns would slip between other programs."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of one contender over all rounds."""

    median_s: float
    low_quartile_s: float
    high_quartile_s: float

    def per(self, units: int) -> Timing:
        return Timing(
            self.median_s / units, self.low_quartile_s / units, self.high_quartile_s / units
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The result of one contender; `ratio` is that of the shown medians, time or rate."""

    contender: str
    unit: str
    group: str
    is_rate: bool
    ratio: float
    median_s: float
    low_quartile_s: float
    high_quartile_s: float


def interleave(
    contenders: Mapping[str, Contender],
    rounds: int,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, Timing]:
    """Run all contenders `rounds` times in turn, after one round that does not count."""
    samples: dict[str, list[float]] = {name: [] for name in contenders}
    for round_number in range(-1, rounds):
        for name, contender in contenders.items():
            if round_number >= 0 and round_number % contender.every_rounds != 0:
                continue
            began = clock()
            contender.work()
            if round_number >= 0:
                samples[name].append(clock() - began)
    return {name: summarise(values) for name, values in samples.items()}


def summarise(seconds: list[float]) -> Timing:
    if len(seconds) == 1:
        return Timing(seconds[0], seconds[0], seconds[0])
    low, median, high = statistics.quantiles(seconds, n=4, method="inclusive")
    return Timing(median, low, high)


def compare(contenders: Mapping[str, Contender], timings: Mapping[str, Timing]) -> list[Row]:
    """Times per unit, and each median against that of its group's first contender."""
    reference_s: dict[str, float] = {}
    rows = []
    for name, contender in contenders.items():
        timing = timings[name].per(contender.units_per_turn)
        comparable_s = timing.median_s / contender.reference_units
        slowness = comparable_s / reference_s.setdefault(contender.group, comparable_s)
        rows.append(
            Row(
                contender=name,
                unit=contender.unit,
                group=contender.group,
                is_rate=contender.is_rate,
                ratio=1 / slowness if contender.is_rate else slowness,
                median_s=timing.median_s,
                low_quartile_s=timing.low_quartile_s,
                high_quartile_s=timing.high_quartile_s,
            )
        )
    return rows
