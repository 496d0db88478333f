"""A learner's source over several real replay services, in memory, and actors that fill them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from common.blocks import StepBlock
from common.codec import decode, encode
from common.handshake import ServerLink
from common.memory_transport import MemoryNetwork
from common.messages import Ack
from learner.progress import RunProgress
from learner.ready_batch import ReadyBatch
from learner.replay_line import ReplayLine, SourceOptions
from learner.sharded_source import ShardedSource
from replay_server.rate_limit import RateLimiter
from replay_server.service import ReplayService
from tests.block_factory import TINY
from tests.scripted_peers import FakeClock, identity
from tests.service_factory import BATCH, DirectPeer, joined, make_blocks, make_service

K = 3
TURN_S = 0.06
"""Longer than the pause between two questions of a learner that waits."""


class Shard:
    """A replay service behind a router; stopped, it hears nothing."""

    def __init__(self, network: MemoryNetwork, endpoint: str, limiter: RateLimiter | None) -> None:
        self.router = network.router(endpoint)
        self.lives = 0
        self.is_stopped = False
        self.restart(limiter)

    def restart(self, limiter: RateLimiter | None = None) -> None:
        """An empty service that knows nobody."""
        self.lives += 1
        self.service: ReplayService = make_service(limiter, life=self.lives)
        self.actor: DirectPeer = joined(self.service, identity("actor"))

    def tick(self) -> None:
        if self.is_stopped:
            return
        answers = []
        while (arrival := self.router.receive(0)) is not None:
            answers += self.service.handle(arrival[0], decode(arrival[1]))
        for answer in answers + self.service.settle():
            self.router.send(answer.routing, encode(answer.message, answer.arrays))

    def store(self, blocks: Sequence[StepBlock]) -> int:
        """The window that the actor has then."""
        answers = [self.actor.send_block(block) for block in blocks]
        assert isinstance(answers[-1], Ack)
        return answers[-1].window


class ShardScene:
    def __init__(self, *limiters: RateLimiter | None, seed: int = 0) -> None:
        self.clock = FakeClock()
        self.progress = RunProgress()
        network = MemoryNetwork()
        endpoints = [f"ipc:///replay-{shard}" for shard in range(len(limiters))]
        self.shards = [
            Shard(network, endpoint, limiter)
            for endpoint, limiter in zip(endpoints, limiters, strict=True)
        ]
        options = SourceOptions(batch_size=BATCH, prefetch_batches=K, uses=1, may_wait=False)
        self.lines = []
        for shard, endpoint in enumerate(endpoints):
            dealer = network.dealer(endpoint, "learner-0.1")
            link = ServerLink(dealer, endpoint, identity("learner"), TINY, clock=self.clock)
            self.lines.append(ReplayLine(link, TINY, options, self.progress, shard=shard))
        self.source = ShardedSource(self.lines, options, np.random.default_rng(seed).random)

    def turn(self, seconds: float = TURN_S) -> ReadyBatch | None:
        """A while passes, the learner looks for a batch, then the servers answer."""
        self.clock.advance(seconds)
        ready = self.source.next(0)
        for shard in self.shards:
            shard.tick()
        return ready

    def join(self) -> None:
        """Hello, welcome, the first question, and what its answer lets the learner ask for."""
        for _ in range(4):
            assert self.turn() is None

    def batches(self, count: int, *, turns: int = 1_000) -> list[ReadyBatch]:
        """The next ones, released."""
        found: list[ReadyBatch] = []
        for _ in range(turns):
            ready = self.turn()
            if ready is not None:
                found.append(ready)
                self.source.release(ready)
            if len(found) == count:
                return found
        raise AssertionError(f"{len(found)} batches in {turns} turns, expected {count}")


def blocks_of_error(count: int, error: float, seed: int = 0) -> list[StepBlock]:
    blocks = make_blocks(count, seed)
    for block in blocks:
        block.priorities[:] = error
    return blocks
