"""A replay service with a tiny buffer, and peers that speak to it without sockets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from common.blocks import StepBlock
from common.codec import Array, Received, decode, encode
from common.heartbeat import Identity
from common.messages import BlockMessage, Message, SampleRequest
from replay_server.buffer import ReplayBuffer, ReplayOptions
from replay_server.rate_limit import RateLimiter, RatioLimit, StrideSizes
from replay_server.service import Answer, ReplayService
from tests.block_factory import TINY, cut_blocks, random_play
from tests.scripted_peers import hello, identity

BLOCK_ITEMS = 8
BATCH = 16
WINDOW = 4
SERVER_LIFE = 50


def make_limiter(
    *,
    ratio: float = 4.0,
    starts: int = 16,
    slack: float = 64.0,
    capacity: int = 512,
    uses: int = 1,
) -> RateLimiter:
    limit = RatioLimit(samples_per_insert=ratio, min_inserted=starts, slack_samples=slack)
    return RateLimiter(
        limit,
        StrideSizes(capacity_items=capacity, block_items=BLOCK_ITEMS, batch_samples=uses * BATCH),
    )


def make_service(
    limiter: RateLimiter | None = None, *, capacity: int = 512, life: int = SERVER_LIFE
) -> ReplayService:
    buffer = ReplayBuffer(TINY, ReplayOptions(capacity_items=capacity, block_items=BLOCK_ITEMS))
    who = identity("replay_server", incarnation=life)
    return ReplayService(TINY, buffer, limiter or make_limiter(), who, window=WINDOW)


def make_blocks(count: int, seed: int = 0) -> list[StepBlock]:
    steps = random_play(BLOCK_ITEMS * count + 60, TINY, np.random.default_rng(seed))
    return cut_blocks(steps, BLOCK_ITEMS, TINY)[:count]


def block_arrays(block: StepBlock) -> dict[str, Array]:
    return {name: getattr(block, name) for name in BlockMessage.arrays}


@dataclass
class DirectPeer:
    """Calls the service with decoded bytes, as the server would, and keeps its answers."""

    service: ReplayService
    identity: Identity
    sent_blocks: int = 0
    answers: list[Answer] = field(default_factory=list)

    @property
    def routing(self) -> bytes:
        return f"{self.identity.peer}.{self.identity.incarnation}".encode()

    def say(self, message: Message, arrays: Mapping[str, Array] | None = None) -> list[Message]:
        """The answers that come back to this peer."""
        received: Received = decode(encode(message, arrays))
        answers = self.service.handle(self.routing, received)
        self.answers += answers
        return [answer.message for answer in answers if answer.routing == self.routing]

    def say_hello(self) -> list[Message]:
        return self.say(hello(self.identity, TINY))

    def send_block(self, block: StepBlock, *, sequence: int | None = None) -> Message:
        message = BlockMessage(
            incarnation=self.identity.incarnation,
            sequence=self.sent_blocks if sequence is None else sequence,
            env_index=0,
            weight_generation=0,
            weight_version=0,
            stage="1-1",
        )
        self.sent_blocks += sequence is None
        (answer,) = self.say(message, block_arrays(block))
        return answer

    def request(self, request_id: int, *, uses: int = 1, shared_file: str = "") -> None:
        self.say(sample_request(request_id, uses=uses, shared_file=shared_file))


def sample_request(
    request_id: int, *, uses: int = 1, shared_file: str = "", slot: int = 0, size: int = BATCH
) -> SampleRequest:
    return SampleRequest(
        request_id=request_id,
        batch_size=size,
        beta=0.4,
        charge=size * uses,
        may_wait=True,
        shared_file=shared_file,
        slot=slot,
        slot_rows=size,
    )


def joined(service: ReplayService, who: Identity) -> DirectPeer:
    peer = DirectPeer(service, who)
    peer.say_hello()
    return peer


def filled_service(
    num_blocks: int = 4, limiter: RateLimiter | None = None
) -> tuple[ReplayService, DirectPeer, DirectPeer]:
    """A service that has stored some blocks, its actor and its learner."""
    service = make_service(limiter)
    actor = joined(service, identity("actor"))
    learner = joined(service, identity("learner"))
    for block in make_blocks(num_blocks):
        actor.send_block(block)
    return service, actor, learner
