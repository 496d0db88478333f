"""Whether a run slowed down, told apart from a machine that did.

A fresh run of the same settings trains beside the old one in an early and in a late part. What
others take from the machine they take from both; what age takes, from the old run only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

from common.jsonl import read_jsonl

Steps = Sequence[tuple[float, int]]
"""Lines of metrics.jsonl: seconds of the wall clock, agent steps of the run."""

MIN_RATE_RATIO: Final = 0.95
SETTLE_S: Final = 45.0
"""A fresh run is not counted while it starts."""


@dataclass(frozen=True, slots=True)
class Part:
    """What both runs did between two moments."""

    began: float
    ended: float
    old: Steps
    fresh: Steps

    @property
    def old_rate(self) -> float:
        return _rate(self.old, self.ended - self.began)

    @property
    def share(self) -> float:
        """The old run's rate over the fresh one's."""
        fresh = _rate(self.fresh, self.ended - self.began)
        return self.old_rate / fresh if fresh else 0.0


@dataclass(frozen=True, slots=True)
class Steadiness:
    """The late part against the early one."""

    early: Part
    late: Part

    @property
    def relative(self) -> float:
        """Of the old run's rate in proportion to the fresh one's."""
        return self.late.share / self.early.share if self.early.share else 0.0

    @property
    def holds(self) -> bool:
        return self.relative >= MIN_RATE_RATIO

    def __str__(self) -> str:
        early, late = self.early, self.late
        plain = late.old_rate / early.old_rate if early.old_rate else 0.0
        return (
            f"{early.old_rate:.0f} to {late.old_rate:.0f} agent steps/s, {plain:.0%}; of a fresh "
            f"run's rate beside it {early.share:.0%} to {late.share:.0%}: {self.relative:.0%}"
        )


def steps_of(run: Path) -> list[tuple[float, int]]:
    lines = read_jsonl(run / "metrics.jsonl")
    return [(float(str(line["time"])), int(str(line["global_step"]))) for line in lines]


def part_between(began: float, ended: float, old: Steps, fresh: Steps) -> Part:
    kept = [[one for one in steps if began <= one[0] <= ended] for steps in (old, fresh)]
    return Part(began, ended, kept[0], kept[1])


def _rate(steps: Steps, duration_s: float) -> float:
    """Over all of the time, so that one that stands still counts with what it did not do."""
    # A learner that went back to its checkpoint counts from there.
    grown = sum(max(after[1] - before[1], 0) for before, after in pairwise(steps))
    return grown / duration_s if duration_s > 0 else 0.0
