"""The learner's line to one replay server: a slot per request, answers, priorities, statistics.

What is asked for, and when, is decided by `batch_source` and `sharded_source`.
"""

from __future__ import annotations

import logging
from collections import deque
from dataclasses import dataclass

from torch import Tensor

from common.batch import Batch, first_rows
from common.errors import BadMessage
from common.handshake import ServerLink
from common.messages import (
    BatchReply,
    InlineBatchReply,
    Message,
    PriorityUpdate,
    SampleRequest,
    Scalar,
    Stats,
    Status,
    Welcome,
)
from common.metrics import METRIC_NAMES
from common.shared_files import remove_shared
from common.shared_slots import SharedSlots
from common.specs import DataSpec
from common.tensor_arrays import to_numpy
from learner.batch_checks import batch_of_arrays, check_values
from learner.progress import RunProgress

log = logging.getLogger(__name__)

LEAST_PRIORITY = 1e-9
"""Less than any server keeps: each rounds up to a millionth."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """How batches are asked for."""

    batch_size: int
    prefetch_batches: int
    uses: int
    """Updates made with each batch."""
    shared_file: str = ""
    """Name of the shared-memory file; empty asks for raw frames."""
    may_wait: bool = True
    """Whether requests wait in the server for the balance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What one request asks for."""

    rows: int
    beta: float
    charge: int
    """Samples that the server's balance counts for it."""


@dataclass(frozen=True, slots=True)
class _Request:
    order: Order
    slot: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Part:
    """The answer to a request. With shared memory it is valid until its slot is freed."""

    batch: Batch
    order: Order
    slot: int
    reply: BatchReply


class ReplayLine:
    """A slot has one owner at a time: free, asked for, or with whoever took the answer."""

    def __init__(
        self,
        link: ServerLink,
        spec: DataSpec,
        options: SourceOptions,
        progress: RunProgress,
        *,
        shard: int = 0,
    ) -> None:
        self.link = link
        self._spec = spec
        self._options = options
        self._progress = progress
        self._shard = shard
        self.requests: dict[int, _Request] = {}
        """Those that have not been answered, by number."""
        self.arrived: dict[int, Part] = {}
        """Answers that nobody has taken yet, by the number of their request, oldest first."""
        self._abandoned: set[int] = set()
        self._due_below = 0
        """Requests below this number should have been answered before the next status."""
        self._free = deque(range(options.prefetch_batches))
        self._shared: SharedSlots | None = None
        if options.shared_file:
            self._shared = SharedSlots.create(
                options.shared_file, options.prefetch_batches, options.batch_size, spec
            )
        self.mass = 0.0
        self.credit = 0.0
        """Samples that the server said last could still be taken."""
        self.stats: dict[str, Scalar] = {}
        self.status: Status | None = None
        self.unsent_priorities = 0

    @property
    def can_ask(self) -> bool:
        return bool(self._free) and self.link.is_welcome

    @property
    def charged(self) -> int:
        """Samples of the requests that the credit does not count yet."""
        return sum(request.order.charge for request in self.requests.values())

    def ask(self, order: Order) -> int | None:
        """The number of the request; None when it cannot be sent now."""
        number = self._progress.requests
        if not self.can_ask or not self.link.send(self._message(number, order)):
            return None
        self._progress.requests += 1
        self.requests[number] = _Request(order, self._free.popleft())
        return number

    def receive(self, timeout_ms: int) -> bool:
        """Take one message; what is wrong with it is counted and does not end the learner."""
        message = self.link.receive(timeout_ms)
        if message is None:
            return False
        try:
            self._handle(message)
        except BadMessage as error:
            self.link.note_bad(error)
        return True

    def take(self, number: int) -> Part:
        """Whoever takes an answer frees its slot."""
        return self.arrived.pop(number)

    def free(self, slot: int) -> None:
        self._free.append(slot)

    def abandon(self, number: int) -> None:
        """Nobody wants this answer any more; its slot is free again as soon as it can be."""
        part = self.arrived.pop(number, None)
        if part is not None:
            self.free(part.slot)
        elif number in self.requests:
            self._abandoned.add(number)

    def send_priorities(self, server_incarnation: int, batch: Batch, errors: Tensor) -> None:
        sent = self.link.send(
            PriorityUpdate(server_incarnation=server_incarnation),
            {
                "slots": to_numpy(batch.slots),
                "generations": to_numpy(batch.generations),
                "errors": to_numpy(errors),
            },
        )
        self.unsent_priorities += not sent

    def tell(self, message: Message) -> bool:
        """False while there is no server that would hear it."""
        return self.link.is_welcome and self.link.send(message)

    def close(self) -> None:
        self.link.close()
        if self._options.shared_file:
            remove_shared(self._options.shared_file)

    def _message(self, number: int, order: Order) -> SampleRequest:
        return SampleRequest(
            request_id=number,
            batch_size=order.rows,
            beta=order.beta,
            charge=order.charge,
            may_wait=self._options.may_wait,
            shared_file=self._options.shared_file,
            slot=self._free[0],
            slot_rows=self._options.batch_size,
        )

    def _handle(self, message: Message) -> None:
        match message:
            case BatchReply():
                self._take(message)
            case Status():
                self.status = message
                self._note_state(message)
                self._give_up_lost(message)
            case Stats():
                self._note_stats(message.values)
            case Welcome():
                # A new life of the server knows nothing of what was asked before.
                self._give_up(list(self.requests))
                self.mass = self.credit = 0.0
            case _:
                log.debug("message ignored", extra={"tag": message.tag})

    def _note_state(self, told: Status | BatchReply) -> None:
        self.mass, self.credit = told.mass, told.credit
        self._progress.note_inserted(told.server_incarnation, told.inserted_total, self._shard)

    def _give_up_lost(self, status: Status) -> None:
        """Ask again for what a server that may answer has left unanswered: the line lost it.

        A request that was answered after all is harmless: the server fills the slot in the order
        of the requests, and the answer to the one given up is ignored.
        """
        if self._options.may_wait and status.gate == "wait_for_actors":
            self._due_below = 0
            return
        self._give_up([number for number in self.requests if number < self._due_below])
        self._due_below = self._progress.requests

    def _give_up(self, numbers: list[int]) -> None:
        for number in numbers:
            self.free(self.requests.pop(number).slot)
            self._abandoned.discard(number)

    def _take(self, reply: BatchReply) -> None:
        request = self.requests.pop(reply.request_id, None)
        if request is None:
            return
        is_wanted = reply.request_id not in self._abandoned
        self._abandoned.discard(reply.request_id)
        try:
            if is_wanted:
                batch = self._batch(reply, request)
                check_values(batch, self._spec)
        except BadMessage:
            # The slot is asked for again, as if nothing had come.
            self.free(request.slot)
            raise
        self._note_state(reply)
        if not is_wanted:
            self.free(request.slot)
            return
        self.arrived[reply.request_id] = Part(
            batch=batch, order=request.order, slot=request.slot, reply=reply
        )

    def _batch(self, reply: BatchReply, request: _Request) -> Batch:
        if not LEAST_PRIORITY <= reply.min_priority <= reply.mass:
            raise BadMessage("batch_mass", "nothing can be drawn without a priority")
        rows = request.order.rows
        if isinstance(reply, InlineBatchReply):
            return batch_of_arrays(self.link.arrays, rows, self._spec)
        if self._shared is None:
            raise BadMessage("batch_unasked", "shared memory was not asked for")
        return first_rows(self._shared.batches[request.slot], rows)

    def _note_stats(self, values: dict[str, Scalar]) -> None:
        if not values.keys() <= METRIC_NAMES:
            raise BadMessage("stats_names")
        self.stats = values
