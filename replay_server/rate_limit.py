"""The balance between playing and learning: who must wait, as a function of two counters.

Surplus = samples that the inserted steps have earned, minus samples taken. Above the slack the
actors wait for the learner, below minus the slack the learner waits for the actors; never both.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from common.checkpoint_files import JsonValue
from common.errors import ConfigError
from common.messages import MAX_CREDIT_SAMPLES


class Gate(Enum):
    """The values are those of `Status.gate` on the wire."""

    OPEN = "open"
    WAIT_FOR_ACTORS = "wait_for_actors"
    WAIT_FOR_LEARNER = "wait_for_learner"


@dataclass(frozen=True, slots=True, kw_only=True)
class RatioLimit:
    samples_per_insert: float
    min_inserted: int
    """Items before the first sample; the ratio counts from there."""
    slack_samples: float
    """How far either side may run ahead of the other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayCounts:
    """Items inserted and samples taken since the balance was last rebased."""

    inserted: int = 0
    sampled: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StrideSizes:
    """The smallest moves that the two sides can make."""

    capacity_items: int
    block_items: int
    batch_samples: int
    """Batch size times the updates made with it."""


def gate(counts: ReplayCounts, limit: RatioLimit) -> Gate:
    """Decide who must wait; no clock, no socket, no state."""
    if counts.inserted < limit.min_inserted:
        return Gate.WAIT_FOR_ACTORS
    surplus = surplus_samples(counts, limit)
    if surplus > limit.slack_samples:
        return Gate.WAIT_FOR_LEARNER
    return Gate.WAIT_FOR_ACTORS if surplus < -limit.slack_samples else Gate.OPEN


def surplus_samples(counts: ReplayCounts, limit: RatioLimit) -> float:
    return (counts.inserted - limit.min_inserted) * limit.samples_per_insert - counts.sampled


def credit_samples(counts: ReplayCounts, limit: RatioLimit) -> float:
    """What may still be taken before actors must store more; 0 before learning starts."""
    if counts.inserted < limit.min_inserted:
        return 0.0
    return surplus_samples(counts, limit) + limit.slack_samples


def min_slack_samples(samples_per_insert: float, sizes: StrideSizes) -> float:
    """Below this a single block or batch would close the gate that it came through."""
    return max(float(sizes.batch_samples), sizes.block_items * samples_per_insert)


def check_limit(limit: RatioLimit, sizes: StrideSizes) -> None:
    """Refuse a limit under which one side would wait for ever or for every single message."""
    if not (math.isfinite(limit.samples_per_insert) and limit.samples_per_insert > 0):
        raise ConfigError(
            f"samples per insert must be a number above 0, got {limit.samples_per_insert}"
        )
    if not 1 <= limit.min_inserted <= sizes.capacity_items:
        raise ConfigError(
            f"learning must start between 1 and {sizes.capacity_items} items (the replay "
            f"capacity), got {limit.min_inserted}; lower it or raise the capacity"
        )
    needed = min_slack_samples(limit.samples_per_insert, sizes)
    if not limit.slack_samples >= needed:
        raise ConfigError(
            f"slack of {limit.slack_samples:g} samples is less than one block or batch; "
            f"at least {needed:g} are needed"
        )


def rebased(available_items: int, limit: RatioLimit) -> ReplayCounts:
    """Counters under which nobody owes anything: the past earns no burst of updates or steps."""
    earned = max(0, available_items - limit.min_inserted) * limit.samples_per_insert
    return ReplayCounts(inserted=available_items, sampled=round(earned))


def with_ratio(limit: RatioLimit, samples_per_insert: float, sizes: StrideSizes) -> RatioLimit:
    """The same slack in agent steps at another ratio, widened where one block or batch needs it."""
    scaled = limit.slack_samples * samples_per_insert / limit.samples_per_insert
    return replace(
        limit,
        samples_per_insert=samples_per_insert,
        slack_samples=max(scaled, min_slack_samples(samples_per_insert, sizes)),
    )


class RateLimiter:
    """The counters and the limit in force."""

    def __init__(self, limit: RatioLimit, sizes: StrideSizes, *, available_items: int = 0) -> None:
        """`available_items` is what the buffer holds already, after a resume."""
        check_limit(limit, sizes)
        self._sizes = sizes
        self.limit = limit
        self.counts = rebased(available_items, limit)

    @property
    def max_request_samples(self) -> int:
        """What one request may ask for: more would upset the balance by more than its slack."""
        return self._sizes.batch_samples

    def gate(self) -> Gate:
        return gate(self.counts, self.limit)

    def credit(self) -> float:
        """Cut to what a message may carry."""
        credit = credit_samples(self.counts, self.limit)
        return min(max(credit, -MAX_CREDIT_SAMPLES), MAX_CREDIT_SAMPLES)

    def add_inserted(self, items: int) -> None:
        self.counts = replace(self.counts, inserted=self.counts.inserted + items)

    def add_sampled(self, samples: int) -> None:
        self.counts = replace(self.counts, sampled=self.counts.sampled + samples)

    def change_ratio(self, samples_per_insert: float) -> None:
        """From now on; a refused ratio leaves everything as it was."""
        limit = with_ratio(self.limit, samples_per_insert, self._sizes)
        check_limit(limit, self._sizes)
        self.limit = limit
        self.rebase()

    def to_state(self) -> dict[str, JsonValue]:
        return {"inserted": self.counts.inserted, "sampled": self.counts.sampled}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on as if nothing had happened."""
        self.counts = ReplayCounts(inserted=int(state["inserted"]), sampled=int(state["sampled"]))

    def rebase(self) -> None:
        """Forget what either side is ahead, after a pause of one of them."""
        self.counts = rebased(self.counts.inserted, self.limit)
