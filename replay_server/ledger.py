"""Which blocks have been stored, so that a resent block is stored once.

Sequence numbers of one actor life start at 0 and go up by one; a number that is passed over (a
dropped block) is remembered as missing and may still arrive. Memory is bounded per actor and in
the number of actors. It outlives the server only
in a cut, together with the blocks it tells of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from common.checkpoint_files import JsonValue
from common.ids import Incarnation

MAX_MISSING_PER_ACTOR = 1024
"""Far above the send window: numbers that fall out of it can no longer be in flight."""
MAX_ACTORS = 65_536


class Verdict(Enum):
    NEW = "new"
    DUPLICATE = "duplicate"
    """Stored before: acknowledge again, store nothing."""
    STALE_INCARNATION = "stale_incarnation"
    """From a life of the actor that a newer one has replaced."""
    EXPIRED = "expired"
    """Passed over so long ago that it is not known whether it was stored: refuse it."""
    TOO_MANY_ACTORS = "too_many_actors"


@dataclass(slots=True)
class _ActorRecord:
    incarnation: Incarnation
    next_sequence: int = 0
    expired_below: int = 0
    """Missing numbers below this are forgotten."""
    missing: dict[int, None] = field(default_factory=dict)
    """Passed over and at least `expired_below`, in increasing order."""


class Ledger:
    """`judge` a block, store it if it is new, then `record` it; or `accept` to do both at once."""

    def __init__(
        self,
        *,
        max_missing_per_actor: int = MAX_MISSING_PER_ACTOR,
        max_actors: int = MAX_ACTORS,
    ) -> None:
        self._max_missing = max_missing_per_actor
        self._max_actors = max_actors
        self._records: dict[str, _ActorRecord] = {}
        self.missing_total = 0
        """Numbers passed over and not seen since, over all actors and their lives."""

    def judge(self, actor: str, incarnation: Incarnation, sequence: int) -> Verdict:
        """Decide without remembering."""
        record = self._records.get(actor)
        if record is None:
            full = len(self._records) >= self._max_actors
            return Verdict.TOO_MANY_ACTORS if full else Verdict.NEW
        if incarnation != record.incarnation:
            is_older = incarnation < record.incarnation
            return Verdict.STALE_INCARNATION if is_older else Verdict.NEW
        if sequence >= record.next_sequence or sequence in record.missing:
            return Verdict.NEW
        return Verdict.EXPIRED if sequence < record.expired_below else Verdict.DUPLICATE

    def record(self, actor: str, incarnation: Incarnation, sequence: int) -> None:
        """Remember a block that was judged new and has been stored."""
        record = self._records.get(actor)
        if record is None or record.incarnation != incarnation:
            record = self._records[actor] = _ActorRecord(incarnation)
        if sequence in record.missing:
            del record.missing[sequence]
            self.missing_total -= 1
            return
        self._pass_over(record, sequence)
        record.next_sequence = sequence + 1

    def accept(self, actor: str, incarnation: Incarnation, sequence: int) -> Verdict:
        verdict = self.judge(actor, incarnation, sequence)
        if verdict is Verdict.NEW:
            self.record(actor, incarnation, sequence)
        return verdict

    def forget(self, actor: str) -> None:
        """For an actor that was told to leave for good; makes room for others."""
        self._records.pop(actor, None)

    def to_state(self) -> dict[str, JsonValue]:
        """By actor: incarnation, next sequence number, lowest number still known, those missing."""
        return {
            actor: [one.incarnation, one.next_sequence, one.expired_below, *one.missing]
            for actor, one in self._records.items()
        }

    def restore(self, state: Mapping[str, Sequence[int]]) -> None:
        for actor, (incarnation, following, expired_below, *missing) in state.items():
            self._records[actor] = _ActorRecord(
                Incarnation(incarnation),
                next_sequence=following,
                expired_below=expired_below,
                missing=dict.fromkeys(missing),
            )
            self.missing_total += len(missing)

    def _pass_over(self, record: _ActorRecord, sequence: int) -> None:
        gap = sequence - record.next_sequence
        self.missing_total += gap
        # A peer chooses the numbers: only the newest are kept, whatever the size of the gap.
        kept = min(gap, self._max_missing)
        if kept < gap:
            record.missing.clear()
            record.expired_below = sequence - kept
        record.missing.update(dict.fromkeys(range(sequence - kept, sequence)))
        while len(record.missing) > self._max_missing:
            oldest = next(iter(record.missing))
            del record.missing[oldest]
            record.expired_below = oldest + 1
