"""The learner's shared memory as the replay server sees it, mapped once per file and slot size."""

from __future__ import annotations

from common.batch import Batch, first_rows
from common.errors import BadMessage
from common.messages import SampleRequest
from common.ranks import MAX_RANKS
from common.shared_slots import SharedSlots
from common.specs import DataSpec
from replay_server.report import ServiceCounts


class LearnerSlots:
    """Keeps the file that each rank named last; what earlier lives mapped is let go."""

    def __init__(self, spec: DataSpec, counts: ServiceCounts) -> None:
        self._spec = spec
        self._counts = counts
        self._mapped: dict[str, tuple[tuple[str, int], SharedSlots]] = {}
        """By peer; at most as many as a learner may have ranks."""

    def find(self, peer: str, request: SampleRequest) -> Batch | None:
        """The slot that was named; None, when it cannot be mapped, asks for raw frames."""
        if not request.shared_file:
            return None
        try:
            slots = self._slots_of(peer, (request.shared_file, request.slot_rows))
            return first_rows(slots.batches[request.slot], request.batch_size)
        except (BadMessage, IndexError, OSError, ValueError):
            self._counts.note_bad("shared_file")
            return None

    def _slots_of(self, peer: str, key: tuple[str, int]) -> SharedSlots:
        known = self._mapped.get(peer)
        if known is not None and known[0] == key:
            return known[1]
        slots = SharedSlots.attach(*key, self._spec)
        self._mapped.pop(peer, None)
        while len(self._mapped) >= MAX_RANKS:
            del self._mapped[next(iter(self._mapped))]
        self._mapped[peer] = (key, slots)
        return slots
