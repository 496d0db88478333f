"""The learner's shared memory as the replay server sees it, mapped once per file and slot size."""

from __future__ import annotations

from common.batch import Batch, first_rows
from common.errors import BadMessage
from common.messages import SampleRequest
from common.shared_slots import SharedSlots
from common.specs import DataSpec
from replay_server.report import ServiceCounts


class LearnerSlots:
    """Keeps the file that was named last."""

    def __init__(self, spec: DataSpec, counts: ServiceCounts) -> None:
        self._spec = spec
        self._counts = counts
        self._mapped: tuple[str, int, SharedSlots] | None = None

    def find(self, request: SampleRequest) -> Batch | None:
        """The slot that was named; None, when it cannot be mapped, asks for raw frames."""
        if not request.shared_file:
            return None
        key = (request.shared_file, request.slot_rows)
        try:
            if self._mapped is None or self._mapped[:2] != key:
                self._mapped = (*key, SharedSlots.attach(*key, self._spec))
            return first_rows(self._mapped[2].batches[request.slot], request.batch_size)
        except (BadMessage, IndexError, OSError, ValueError):
            self._counts.note_bad("shared_file")
            return None
