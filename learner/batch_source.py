"""Batches from one replay server: K requests stay outstanding, a slot has one owner at a time."""

from __future__ import annotations

from torch import Tensor

from common.batch import Batch
from common.handshake import ServerLink
from common.messages import CutRequest, Scalar, SetLimit, StatsRequest
from common.specs import DataSpec
from learner.progress import RunProgress
from learner.ready_batch import ReadyBatch
from learner.replay_line import Order, ReplayLine, SourceOptions


class BatchSource:
    """Implements `learner.ready_batch.BatchFeed`."""

    def __init__(
        self, link: ServerLink, spec: DataSpec, options: SourceOptions, progress: RunProgress
    ) -> None:
        self._link = link
        self._options = options
        self.line = ReplayLine(link, spec, options, progress)
        self.beta = 0.4

    @property
    def stats(self) -> dict[str, Scalar]:
        return self.line.stats

    @property
    def unsent_priorities(self) -> int:
        return self.line.unsent_priorities

    def next(self, timeout_ms: int) -> ReadyBatch | None:
        self.listen()
        while not self.line.arrived and self.line.receive(timeout_ms):
            pass
        return self.at_hand()

    def at_hand(self) -> ReadyBatch | None:
        arrived = self.line.arrived
        return self._take(next(iter(arrived))) if arrived else None

    def listen(self) -> None:
        self._link.maintain(waiting=not self.line.arrived)
        self._request_free()
        while self.line.receive(0):
            pass

    def peek(self) -> Batch | None:
        part = next(iter(self.line.arrived.values()), None)
        return None if part is None else part.batch

    def release(self, ready: ReadyBatch) -> None:
        """Hand the slot back; it is asked for again at once."""
        self.line.free(ready.slot)
        self._request_free()

    def set_samples_per_insert(self, ratio: float) -> bool:
        return self.line.tell(SetLimit(samples_per_insert=ratio))

    def send_priorities(self, ready: ReadyBatch, errors: Tensor) -> None:
        self.line.send_priorities(ready.server_incarnation, ready.batch, errors)

    def request_cut(self, agent_steps: int) -> None:
        self.line.tell(CutRequest(agent_steps=agent_steps))

    def ask_stats(self) -> None:
        self.line.tell(StatsRequest())

    def bad_answers(self) -> dict[str, Scalar]:
        return self._link.bad_answers()

    def waits_for(self) -> str:
        if not self._link.is_welcome:
            return f"replay server at {self._link.endpoint}"
        status = self.line.status
        return "batches" if status is None else f"actors ({status.size} steps in the buffer)"

    def close(self) -> None:
        self.line.close()

    def _take(self, number: int) -> ReadyBatch:
        part = self.line.take(number)
        reply = part.reply
        return ReadyBatch(
            batch=part.batch,
            slot=part.slot,
            server_incarnation=reply.server_incarnation,
            min_priority=reply.min_priority,
            beta=part.order.beta,
        )

    def _request_free(self) -> None:
        rows = self._options.batch_size
        while self.line.can_ask:
            order = Order(rows=rows, beta=self.beta, charge=rows * self._options.uses)
            if self.line.ask(order) is None:
                return
