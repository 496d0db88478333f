"""The two-sided limit under random interleavings of actors and learner."""

from __future__ import annotations

import numpy as np
import pytest

from common.messages import Ack, BatchReply, Status
from replay_server.rate_limit import surplus_samples
from replay_server.service import Answer
from tests.scripted_peers import identity
from tests.service_factory import (
    BATCH,
    BLOCK_ITEMS,
    WINDOW,
    joined,
    make_blocks,
    make_limiter,
    make_service,
)

NUM_ACTORS = 3
K = 3
BLOCKS = make_blocks(8)


class Traffic:
    """Actors that obey their windows, a learner with K requests, in any order."""

    def __init__(self, ratio: float, slack: float) -> None:
        limiter = make_limiter(ratio=ratio, starts=16, slack=slack, capacity=256)
        self.service = make_service(limiter, capacity=256)
        self.actors = [joined(self.service, identity("actor", i)) for i in range(NUM_ACTORS)]
        self.learner = joined(self.service, identity("learner"))
        self.windows = {actor.routing: WINDOW for actor in self.actors}
        self.outstanding = 0
        self.requests = 0
        self.blocks = 0

    def insert(self, index: int) -> bool:
        actor = self.actors[index]
        if self.windows[actor.routing] == 0:
            return False
        answer = actor.send_block(BLOCKS[self.blocks % len(BLOCKS)])
        assert isinstance(answer, Ack)
        self.windows[actor.routing] = answer.window
        self.blocks += 1
        self._settle()
        return True

    def sample(self) -> bool:
        if self.outstanding == K:
            return False
        self.learner.request(self.requests)
        self.requests += 1
        self.outstanding += 1
        self._settle()
        return True

    def _settle(self) -> None:
        for answer in self.service.settle():
            self._take(answer)

    def _take(self, answer: Answer) -> None:
        if isinstance(answer.message, BatchReply):
            self.outstanding -= 1
        elif isinstance(answer.message, Status):
            self.windows[answer.routing] = answer.message.window

    @property
    def surplus(self) -> float:
        return surplus_samples(self.service.limiter.counts, self.service.limiter.limit)


@pytest.mark.parametrize("ratio", [0.5, 4.0, 16.0])
@pytest.mark.parametrize("learner_share", [0.05, 0.5, 0.95])
def test_neither_side_runs_ahead_by_more_than_the_slack(ratio: float, learner_share: float) -> None:
    slack = max(float(BATCH), ratio * BLOCK_ITEMS)
    traffic, rng = Traffic(ratio, slack), np.random.default_rng(int(100 * learner_share))
    # An actor that was not told yet may send one block; the learner may take one batch.
    above = slack + NUM_ACTORS * BLOCK_ITEMS * ratio
    moves = 0
    for _ in range(600):
        if rng.random() < learner_share:
            moves += traffic.sample()
        else:
            moves += traffic.insert(int(rng.integers(NUM_ACTORS)))
        if traffic.service.buffer.size >= 16:
            assert -slack - BATCH <= traffic.surplus <= above

    assert moves > 30


@pytest.mark.parametrize("ratio", [0.5, 4.0])
def test_the_two_sides_never_wait_for_each_other(ratio: float) -> None:
    traffic, rng = Traffic(ratio, max(float(BATCH), ratio * BLOCK_ITEMS)), np.random.default_rng(0)
    for _ in range(500):
        sides = list(rng.permutation([0, 1, 2, 3]))
        moved = any(traffic.sample() if side == 3 else traffic.insert(side) for side in sides)
        assert moved, "everybody waits"

    counts = traffic.service.limiter.counts
    assert counts.sampled == pytest.approx(ratio * (counts.inserted - 16), rel=0.25)
