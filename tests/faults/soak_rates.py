"""Whether a run slowed down, told apart from a machine that did.

A fresh run of the same settings trains beside the old one in an early and in a late part. What
others take from the machine they take from both; what age takes, from the old run only.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

from common.jsonl import read_jsonl

Steps = Sequence[tuple[float, int]]
"""Lines of metrics.jsonl: seconds of the wall clock, agent steps of the run."""

MIN_RATE_RATIO: Final = 0.95
BIN_S: Final = 20.0
"""Rates are those of bins: single lines jump by the size of a block."""
SETTLE_S: Final = 45.0
"""A fresh run is not counted while it starts."""


@dataclass(frozen=True, slots=True)
class Part:
    """What both runs did while the fresh one ran beside the old one."""

    old: Steps
    fresh: Steps


@dataclass(frozen=True, slots=True)
class Steadiness:
    """The late part against the early one."""

    early_rate: float
    late_rate: float
    relative: float
    """Of the old run's rate in proportion to the fresh one's."""

    @property
    def holds(self) -> bool:
        return self.relative >= MIN_RATE_RATIO

    def __str__(self) -> str:
        plain = self.late_rate / self.early_rate if self.early_rate else 0.0
        return (
            f"{self.early_rate:.0f} to {self.late_rate:.0f} agent steps/s, {plain:.0%}; in "
            f"proportion to a fresh run beside it {self.relative:.0%}"
        )


def steps_of(run: Path) -> list[tuple[float, int]]:
    lines = read_jsonl(run / "metrics.jsonl")
    return [(float(str(line["time"])), int(str(line["global_step"]))) for line in lines]


def part_beside(old: Steps, fresh: Steps) -> Part:
    """Of the old run only what it did beside the settled fresh one."""
    began, ended = fresh[0][0] + SETTLE_S, fresh[-1][0]
    return Part(*([one for one in steps if began <= one[0] <= ended] for steps in (old, fresh)))


def steadiness(early: Part, late: Part) -> Steadiness:
    shares = [_median(_shares(part)) for part in (early, late)]
    rates = [_median(_rates(part.old).values()) for part in (early, late)]
    return Steadiness(rates[0], rates[1], shares[1] / shares[0] if shares[0] else 0.0)


def _median(values: Iterable[float]) -> float:
    found = list(values)
    return statistics.median(found) if found else 0.0


def _shares(part: Part) -> Iterator[float]:
    """The old run's rate over the fresh one's, for every bin in which both have one."""
    fresh = _rates(part.fresh)
    for place, rate in _rates(part.old).items():
        if fresh.get(place):
            yield rate / fresh[place]


def _rates(steps: Steps) -> dict[int, float]:
    """Agent steps per second of every bin of the wall clock."""
    grown: dict[int, float] = defaultdict(float)
    passed_s: dict[int, float] = defaultdict(float)
    for before, after in pairwise(steps):
        place = int(after[0] // BIN_S)
        # A learner that went back to its checkpoint counts from there.
        grown[place] += max(after[1] - before[1], 0)
        passed_s[place] += after[0] - before[0]
    return {place: grown[place] / passed_s[place] for place in grown if passed_s[place] > 0}
