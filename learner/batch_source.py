"""Batches from the replay server: K requests stay outstanding, a slot has one owner at a time."""

from __future__ import annotations

import logging
from collections import deque
from dataclasses import dataclass

from torch import Tensor

from common.batch import Batch
from common.errors import BadMessage
from common.handshake import ServerLink
from common.messages import (
    BatchReply,
    CutRequest,
    InlineBatchReply,
    Message,
    PriorityUpdate,
    SampleRequest,
    Scalar,
    SetLimit,
    Stats,
    StatsRequest,
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


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """How batches are asked for."""

    batch_size: int
    prefetch_batches: int
    uses: int
    """Updates made with each batch."""
    shared_file: str = ""
    """Name of the shared-memory file; empty asks for raw frames."""


@dataclass(frozen=True, slots=True, eq=False)
class ReadyBatch:
    """A batch in CPU memory. With shared memory it is valid until it is released."""

    batch: Batch
    slot: int
    server_incarnation: int


class BatchSource:
    """Call `next`, train, `send_priorities`, `release`; in that order."""

    def __init__(
        self, link: ServerLink, spec: DataSpec, options: SourceOptions, progress: RunProgress
    ) -> None:
        self._link = link
        self._spec = spec
        self._options = options
        self._progress = progress
        self._outstanding: dict[int, int] = {}
        """Slot of each request that has not been answered."""
        self._due_below = 0
        """Requests below this number should have been answered before the next status."""
        self._free = deque(range(options.prefetch_batches))
        self._ready: deque[ReadyBatch] = deque()
        self._shared: SharedSlots | None = None
        if options.shared_file:
            self._shared = SharedSlots.create(
                options.shared_file, options.prefetch_batches, options.batch_size, spec
            )
        self.beta = 0.4
        self.stats: dict[str, Scalar] = {}
        self.status: Status | None = None
        self.unsent_priorities = 0

    def next(self, timeout_ms: int) -> ReadyBatch | None:
        """The next batch, waiting at most this long. Keeps the requests going."""
        self._link.maintain(waiting=not self._ready)
        self._request_free()
        while not self._ready and (message := self._link.receive(timeout_ms)) is not None:
            self._judge(message)
        while (message := self._link.receive(0)) is not None:
            self._judge(message)
        return self._ready.popleft() if self._ready else None

    def release(self, ready: ReadyBatch) -> None:
        """Hand the slot back; it is asked for again at once."""
        self._free.append(ready.slot)
        self._request_free()

    def set_samples_per_insert(self, ratio: float) -> bool:
        """Change the balance; False while there is no server that would hear it."""
        is_welcome = self._link.is_welcome
        return is_welcome and self._link.send(SetLimit(samples_per_insert=ratio))

    def send_priorities(self, ready: ReadyBatch, errors: Tensor) -> None:
        sent = self._link.send(
            PriorityUpdate(server_incarnation=ready.server_incarnation),
            {
                "slots": to_numpy(ready.batch.slots),
                "generations": to_numpy(ready.batch.generations),
                "errors": to_numpy(errors),
            },
        )
        self.unsent_priorities += not sent

    def request_cut(self, agent_steps: int) -> None:
        """Let the server save what it holds, for the checkpoint of these agent steps."""
        if self._link.is_welcome:
            self._link.send(CutRequest(agent_steps=agent_steps))

    def ask_stats(self) -> None:
        """The answer arrives in `stats` later."""
        if self._link.is_welcome:
            self._link.send(StatsRequest())

    def bad_answers(self) -> dict[str, Scalar]:
        """For the heartbeat."""
        return self._link.bad_answers()

    def waits_for(self) -> str:
        if not self._link.is_welcome:
            return f"replay server at {self._link.endpoint}"
        status = self.status
        return "batches" if status is None else f"actors ({status.size} steps in the buffer)"

    def close(self) -> None:
        self._link.close()
        if self._options.shared_file:
            remove_shared(self._options.shared_file)

    def _request_free(self) -> None:
        while self._free and self._link.is_welcome:
            request_id = self._progress.requests
            if not self._link.send(self._request(request_id, self._free[0])):
                return
            self._progress.requests += 1
            self._outstanding[request_id] = self._free.popleft()

    def _request(self, request_id: int, slot: int) -> SampleRequest:
        return SampleRequest(
            request_id=request_id,
            batch_size=self._options.batch_size,
            beta=self.beta,
            uses=self._options.uses,
            shared_file=self._options.shared_file,
            slot=slot,
        )

    def _judge(self, message: Message) -> None:
        """What is wrong with an answer is counted and does not end the learner."""
        try:
            self._handle(message)
        except BadMessage as error:
            self._link.note_bad(error)

    def _handle(self, message: Message) -> None:
        match message:
            case BatchReply():
                self._take(message)
            case Status():
                self.status = message
                self._progress.note_inserted(message.server_incarnation, message.inserted_total)
                self._give_up_lost(message)
            case Stats():
                self._note_stats(message.values)
            case Welcome():
                # A new life of the server knows nothing of what was asked before.
                self._free.extend(self._outstanding.values())
                self._outstanding.clear()
            case _:
                log.debug("message ignored", extra={"tag": message.tag})

    def _give_up_lost(self, status: Status) -> None:
        """Ask again for what a server that may answer has left unanswered: the line lost it.

        A request that was answered after all is harmless: the server fills the slot in the order
        of the requests, and the answer to the one given up is ignored.
        """
        if status.gate == "wait_for_actors":
            self._due_below = 0
            return
        lost = [request_id for request_id in self._outstanding if request_id < self._due_below]
        self._free.extend(self._outstanding.pop(request_id) for request_id in lost)
        self._due_below = self._progress.requests

    def _take(self, reply: BatchReply) -> None:
        slot = self._outstanding.pop(reply.request_id, None)
        if slot is None:
            return
        try:
            batch = self._batch(reply, slot)
            check_values(batch, self._spec)
        except BadMessage:
            # The slot is asked for again, as if nothing had come.
            self._free.append(slot)
            raise
        self._progress.note_inserted(reply.server_incarnation, reply.inserted_total)
        self._ready.append(ReadyBatch(batch, slot, reply.server_incarnation))

    def _batch(self, reply: BatchReply, slot: int) -> Batch:
        if isinstance(reply, InlineBatchReply):
            return batch_of_arrays(self._link.arrays, self._options.batch_size, self._spec)
        if self._shared is None:
            raise BadMessage("batch_unasked", "shared memory was not asked for")
        return self._shared.batches[slot]

    def _note_stats(self, values: dict[str, Scalar]) -> None:
        if not values.keys() <= METRIC_NAMES:
            raise BadMessage("stats_names")
        self.stats = values
