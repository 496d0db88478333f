"""Figures and how they are gained: contenders in turn, many times, so that noise hits all alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TypeVar

from common.config import CoreName

Work = Callable[[], object]
One = TypeVar("One")
TIME_UNIT = "s"
"""Times are kept in seconds, or `s/frame` and the like; they are shown in ms or us."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How long to measure, and what a benchmark of whole runs should run."""

    rounds: int = 0
    """Turns of each contender; 0: the benchmark's own number."""
    quick: bool = False
    core: CoreName = "auto"
    picture: str = ""
    """Where to draw; empty: nowhere."""
    actors: int = 0
    """Most actors of a swarm; 0: the benchmark's own number."""
    rate: float = 0.0
    """Agent steps per second of each of them; 0: the benchmark's own."""

    def turns(self, full: int, quick: int) -> int:
        return self.rounds or (quick if self.quick else full)

    def seconds(self, full: float, quick: float) -> float:
        return quick if self.quick else full

    def core_name(self) -> str:
        """The emulator core that is meant, on this machine."""
        return str(import_module("actor.env.core_choice").choose_core(self.core).name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One figure. `ratio` is its median against that of the first row of its group, or None."""

    contender: str
    unit: str
    group: str = ""
    median: float
    low_quartile: float
    high_quartile: float
    ratio: float | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """What one benchmark found."""

    rows: Sequence[Row]
    notes: tuple[str, ...] = ()
    """What could not be measured and why, and where to read more."""
    lines: Sequence[Mapping[str, object]] = ()
    """The content of its CSV file, where the rows are not."""
    failed: bool = False
    """It should have found something and did not; the notes say why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """One turn of work, what it counts in, and what it is compared with."""

    work: Work
    unit: str = "call"
    units_per_turn: int = 1
    is_rate: bool = False
    """Units per second, not the time of a unit."""
    group: str = ""
    """The first contender of a group is the reference of its ratios."""
    reference_units: int = 1
    """How many units of the reference one unit stands for: an agent step is four frames."""
    every_rounds: int = 1
    """More than 1 for what takes long: it has a turn in the first of so many rounds."""
    rest_s: float = 0.0
    """After each turn, not measured: for what goes on a little after its answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """What is measured in turns, and remarks on what could not be."""

    contenders: Mapping[str, Contender]
    notes: tuple[str, ...] = ()
    clock: Callable[[], float] = time.perf_counter
    """Seconds; `time.thread_time` where short turns would slip between other programs."""


def measure(bench: Bench, rounds: int) -> Result:
    samples = interleave(bench.contenders, rounds, bench.clock)
    return Result(compare(bench.contenders, samples), bench.notes)


def interleave(
    contenders: Mapping[str, Contender],
    rounds: int,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, list[float]]:
    """Seconds of all contenders, `rounds` times in turn, after one round that does not count."""
    samples: dict[str, list[float]] = {name: [] for name in contenders}
    for round_number in range(-1, rounds):
        for name, contender in contenders.items():
            if round_number >= 0 and round_number % contender.every_rounds != 0:
                continue
            began = clock()
            contender.work()
            if round_number >= 0:
                samples[name].append(clock() - began)
            time.sleep(contender.rest_s)
    return samples


def compare(
    contenders: Mapping[str, Contender], samples: Mapping[str, Sequence[float]]
) -> list[Row]:
    """Figures per unit, and each median against that of its group's first contender."""
    reference: dict[str, float] = {}
    rows = []
    for name, one in contenders.items():
        unit = f"{one.unit}/s" if one.is_rate else f"{TIME_UNIT}/{one.unit}"
        per_unit = [seconds / one.units_per_turn for seconds in samples[name]]
        values = [1 / seconds for seconds in per_unit] if one.is_rate else per_unit
        row = figure(name, values, unit, group=one.group)
        stands_for = one.reference_units if one.is_rate else 1 / one.reference_units
        comparable = row.median * stands_for
        rows.append(replace(row, ratio=comparable / reference.setdefault(one.group, comparable)))
    return rows


def figure(contender: str, values: Sequence[float], unit: str, *, group: str = "") -> Row:
    """The median and the quartiles of what was measured, once or more often."""
    if len(values) == 1:
        low = median = high = values[0]
    else:
        low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    return Row(
        contender=contender,
        unit=unit,
        group=group,
        median=median,
        low_quartile=low,
        high_quartile=high,
    )


def in_turn(names: Iterable[One], number: int) -> list[One]:
    """Every second time the other way round: who comes later on a slower machine changes."""
    return list(names)[:: -1 if number % 2 else 1]


def turn_ratios(values: Sequence[float], references: Sequence[float]) -> list[float]:
    """Of the two turns of each round: what the machine did meanwhile hits both."""
    return [one / reference for one, reference in zip(values, references, strict=True)]


def against_first(rows: Sequence[Row]) -> list[Row]:
    """The same rows with their ratios to the first of each group; a group is of one unit."""
    reference: dict[str, float] = {}
    compared = []
    for row in rows:
        first = reference.setdefault(row.group, row.median)
        compared.append(replace(row, ratio=row.median / first if first else None))
    return compared
