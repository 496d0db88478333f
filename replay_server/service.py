"""What the replay server does with each message: one function per message, no sockets.

Answers are returned as values; `replay_server/server.py` sends them.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from common.blocks import StepBlock, validate_block
from common.codec import Array, Received
from common.errors import BadMessage, ReplayEmpty
from common.heartbeat import Identity
from common.ids import Incarnation, peer_id
from common.logs import RareLog
from common.messages import (
    Ack,
    BatchReply,
    BlockMessage,
    CutRequest,
    Hello,
    Identify,
    InlineBatchReply,
    Message,
    Ping,
    PriorityUpdate,
    Refused,
    Reject,
    SampleRequest,
    SetLimit,
    Stats,
    StatsRequest,
    Status,
    Welcome,
)
from common.specs import DataSpec
from common.tensor_arrays import to_numpy
from replay_server.buffer import ReplayBuffer
from replay_server.cut import take_cut
from replay_server.cut_keeper import CutKeeper
from replay_server.learner_slots import LearnerSlots
from replay_server.ledger import Ledger, Verdict
from replay_server.peers import Peer, PeerRegistry
from replay_server.rate_limit import Gate, RateLimiter
from replay_server.report import ServiceCounts, replay_metrics

log = logging.getLogger(__name__)

MAX_PENDING_REQUESTS = 64
FIRST_LEARNER = peer_id("learner", 0)
MAX_BLOCKS_UNDER_WAY = 512
"""Of all actors together, but one of each: half a gigabyte. What more is on its way only waits, and
a line on which a block takes longer than the transport's heartbeats allow is given up."""
SERVE_FAILURES = (MemoryError, OSError, RuntimeError, ReplayEmpty)
"""What ends one request; torch says with a RuntimeError that memory is short."""
ROLE_MESSAGES: Mapping[str, tuple[type[Message], ...]] = {
    "actor": (BlockMessage, Ping),
    "learner": (SampleRequest, PriorityUpdate, CutRequest, SetLimit, StatsRequest, Ping),
    "controller": (SetLimit, StatsRequest, Ping),
}


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """A message for one peer."""

    routing: bytes
    message: Message
    arrays: Mapping[str, Array] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Pending:
    routing: bytes
    peer: str
    request: SampleRequest


class ReplayService:
    """Owns the buffer, the ledger of stored blocks, the balance, and the requests that wait."""

    def __init__(  # noqa: PLR0913 - the parts that it is made of
        self,
        spec: DataSpec,
        buffer: ReplayBuffer,
        limiter: RateLimiter,
        identity: Identity,
        *,
        window: int,
        cuts: CutKeeper | None = None,
    ) -> None:
        self.buffer = buffer
        self.limiter = limiter
        self.counts = ServiceCounts()
        self._spec = spec
        self._window = self._full_window = window
        self.cuts = cuts
        """None where nothing is saved."""
        self._is_restored = False
        self._incarnation = identity.incarnation
        self._ledger = Ledger()
        self._peers = PeerRegistry(identity.run_id, spec)
        self._pending: deque[_Pending] = deque()
        self._slots = LearnerSlots(spec, self.counts)
        self._actors_held = False
        self._rare = RareLog()

    def handle(self, routing: bytes, received: Received) -> list[Answer]:
        """Raises `BadMessage` for what this peer may not say."""
        message = received.message
        if isinstance(message, Hello):
            return self._on_hello(routing, message)
        peer = self._peers.get(routing)
        if peer is None:
            return [Answer(routing, Identify(server_incarnation=self._incarnation))]
        if not isinstance(message, ROLE_MESSAGES[peer.role]):
            raise BadMessage("role", f"{message.tag} from a {peer.role}")
        return self._dispatch(routing, peer, received)

    def _dispatch(self, routing: bytes, peer: Peer, received: Received) -> list[Answer]:
        match received.message:
            case BlockMessage() as block:
                return [self._on_block(routing, peer, block, received.arrays)]
            case SampleRequest() as request:
                return self._on_sample_request(routing, peer, request)
            case PriorityUpdate() as update:
                self._on_priorities(update, received.arrays)
            case CutRequest() as request:
                self._on_cut_request(request.agent_steps)
            case SetLimit() as change:
                self.limiter.change_ratio(change.samples_per_insert)
                return [Answer(routing, self.status())]
            case Ping() as ping:
                return [Answer(routing, self.status(ping.question))]
            case StatsRequest():
                return [Answer(routing, Stats(values=self.metrics()))]
        return []

    def restore(self, counters: Mapping[str, Any]) -> None:
        """Go on with the balance and the ledger of a cut whose blocks are in the buffer."""
        self.limiter.restore(counters["limiter"])
        self._ledger.restore(counters["ledger"])
        self._is_restored = True

    def _on_cut_request(self, agent_steps: int) -> None:
        if self.cuts is not None:
            self.cuts.keep(lambda: take_cut(agent_steps, self.buffer, self.limiter, self._ledger))

    def serve_waiting(self) -> list[Answer]:
        """After any message: the requests that may be served now, in their order."""
        answers: list[Answer] = []
        while self._pending and self._may_serve(self._pending[0].request):
            answers += self._try_to_serve(self._pending.popleft())
        return answers

    def settle(self) -> list[Answer]:
        """After the messages of a turn: serve waiting requests, let held actors go on."""
        return self.serve_waiting() + self._release_actors()

    def status(self, question: int = 0) -> Status:
        """`question` is that of the ping that this answers, if it answers one."""
        return Status(
            server_incarnation=self._incarnation,
            question=question,
            window=self._current_window(),
            size=self.buffer.size,
            capacity=self.buffer.capacity_items,
            mass=self.buffer.mass,
            inserted_total=self.buffer.inserted_items_total,
            sampled_total=self.buffer.sampled_items_total,
            samples_per_insert=self.limiter.limit.samples_per_insert,
            credit=self.limiter.credit(),
            gate=self.limiter.gate().value,
        )

    def metrics(self) -> dict[str, Any]:
        metrics = replay_metrics(self.buffer.stats(), self.counts, self.limiter)
        saved = {} if self.cuts is None else self.cuts.metrics()
        return {**metrics, **saved, "replay_sum_drift": self.buffer.sum_drift()}

    def waits_for(self) -> str | None:
        gate = self.limiter.gate()
        if gate is Gate.WAIT_FOR_ACTORS:
            return "steps from actors"
        return "learner to catch up" if gate is Gate.WAIT_FOR_LEARNER else None

    def _current_window(self) -> int:
        held = self.limiter.gate() is Gate.WAIT_FOR_LEARNER
        self._actors_held = self._actors_held or held
        return 0 if held else self._window

    def _release_actors(self) -> list[Answer]:
        if not self._actors_held or self.limiter.gate() is Gate.WAIT_FOR_LEARNER:
            return []
        self._actors_held = False
        status = self.status()
        return [Answer(routing, status) for routing in self._peers.routings("actor")]

    def _on_hello(self, routing: bytes, hello: Hello) -> list[Answer]:
        admission = self._peers.admit(routing, hello)
        if admission.refusal is not None:
            self.counts.refused_hellos += 1
            return [Answer(routing, admission.refusal)]
        share = MAX_BLOCKS_UNDER_WAY // max(1, self._peers.count("actor"))
        self._window = max(1, min(self._full_window, share))
        if hello.role == "learner" and admission.is_new_life:
            self._drop_void_requests()
            if hello.peer == FIRST_LEARNER:
                self._begin_balance()
        welcome = Welcome(server_incarnation=self._incarnation, window=self._current_window())
        answers = [Answer(routing, welcome)]
        if admission.replaced is not None:
            what = f"a newer {hello.peer} has taken over"
            leave = Refused(what=what, expected=str(hello.incarnation), got="an older life")
            answers.append(Answer(admission.replaced, leave))
        return answers

    def _drop_void_requests(self) -> None:
        """What an earlier life asked for; other ranks of the learner go on waiting."""
        known = [pending for pending in self._pending if self._peers.get(pending.routing)]
        self._pending = deque(known)

    def _begin_balance(self) -> None:
        """The pause of the learner must not earn a burst; all its ranks come with the first."""
        if not self._is_restored:
            self.limiter.rebase()
        self._is_restored = False

    def _on_block(
        self, routing: bytes, peer: Peer, message: BlockMessage, arrays: Mapping[str, Array]
    ) -> Answer:
        incarnation, sequence = Incarnation(message.incarnation), message.sequence
        if message.incarnation != peer.incarnation:
            raise BadMessage("incarnation", "a block from another life")
        verdict = self._ledger.judge(peer.name, incarnation, sequence)
        if verdict is Verdict.NEW:
            try:
                self._store(StepBlock(**arrays))
            except BadMessage as error:
                self.counts.note_bad(error.reason)
                return self._reject(routing, sequence, str(error)[:300])
            self._ledger.record(peer.name, incarnation, sequence)
        elif verdict is Verdict.DUPLICATE:
            self.counts.duplicate_blocks += 1
        else:
            return self._reject(routing, sequence, verdict.value)
        return Answer(routing, Ack(sequence=sequence, window=self._current_window()))

    def _store(self, block: StepBlock) -> None:
        with self.buffer.shares.phase("decode"):
            validate_block(block, self._spec)
        self.buffer.insert(block)
        self.limiter.add_inserted(block.num_items)

    def _reject(self, routing: bytes, sequence: int, reason: str) -> Answer:
        self.counts.rejected_blocks += 1
        window = self._current_window()
        return Answer(routing, Reject(sequence=sequence, reason=reason, window=window))

    def _on_sample_request(
        self, routing: bytes, peer: Peer, request: SampleRequest
    ) -> list[Answer]:
        most = self.limiter.max_request_samples
        wanted = max(request.batch_size, request.charge)
        if wanted > most:
            # Loud, because a learner with another batch size would wait for ever.
            self.counts.note_bad("batch_size")
            limit = f"at most {most} samples in a batch, with all its uses"
            refusal = Refused(what="batch size", expected=limit, got=f"{wanted} samples")
            return [Answer(routing, refusal)]
        if len(self._pending) >= MAX_PENDING_REQUESTS:
            raise BadMessage("too_many_requests")
        self._pending.append(_Pending(routing, peer.name, request))
        return []

    def _may_serve(self, request: SampleRequest) -> bool:
        return not request.may_wait or self.limiter.gate() is not Gate.WAIT_FOR_ACTORS

    def _try_to_serve(self, pending: _Pending) -> list[Answer]:
        """A request that fails is counted and not answered; who asked asks again."""
        try:
            return [self._serve(pending)]
        except SERVE_FAILURES as error:
            self.counts.note_bad("serve")
            if self._rare.allows("serve", time.monotonic()):
                log.warning("request not served", extra={"error": repr(error)[:200]})
            return []

    def _serve(self, pending: _Pending) -> Answer:
        request = pending.request
        out = self._slots.find(pending.peer, request)
        batch = self.buffer.sample(request.batch_size, request.beta, out=out)
        self.limiter.add_sampled(request.charge)
        kind = BatchReply if out is not None else InlineBatchReply
        mass, least = self.buffer.mass_and_least()
        reply = kind(
            request_id=request.request_id,
            server_incarnation=self._incarnation,
            size=self.buffer.size,
            mass=mass,
            min_priority=least,
            inserted_total=self.buffer.inserted_items_total,
            sampled_total=self.buffer.sampled_items_total,
            credit=self.limiter.credit(),
            slot=request.slot,
        )
        arrays = {name: to_numpy(getattr(batch, name)) for name in reply.arrays}
        return Answer(pending.routing, reply, arrays)

    def _on_priorities(self, message: PriorityUpdate, arrays: Mapping[str, Array]) -> None:
        slots, generations, errors = (arrays[name] for name in PriorityUpdate.arrays)
        if not slots.shape == generations.shape == errors.shape or slots.ndim != 1:
            raise BadMessage("priority_shape")
        if [array.dtype.str[1:] for array in (slots, generations, errors)] != ["i8", "i8", "f4"]:
            raise BadMessage("priority_dtype")
        if message.server_incarnation != self._incarnation:
            self.buffer.stale_priorities_total += len(slots)
            return
        # Copies, because the arrays are read-only views of the received frames.
        self.buffer.update_priorities(
            torch.from_numpy(slots.copy()),
            torch.from_numpy(generations.copy()),
            torch.from_numpy(errors.copy()),
        )
