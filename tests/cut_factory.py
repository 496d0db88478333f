"""Small replay buffers, filled and cut, for tests of what is saved."""

from __future__ import annotations

import numpy as np
import torch

from common.blocks import StepBlock
from common.ids import Incarnation
from replay_server.buffer import ReplayBuffer, ReplayOptions
from replay_server.cut import Cut, take_cut
from replay_server.ledger import Ledger
from replay_server.rate_limit import RateLimiter, RatioLimit, StrideSizes
from tests.block_factory import TINY, cut_block, random_play

CAPACITY, BLOCK_ITEMS = 96, 16


def make_buffer(capacity: int = CAPACITY) -> ReplayBuffer:
    options = ReplayOptions(capacity_items=capacity, block_items=BLOCK_ITEMS, seed=5)
    return ReplayBuffer(TINY, options)


def block(seed: int) -> StepBlock:
    steps = random_play(BLOCK_ITEMS + TINY.n_step, TINY, np.random.default_rng(seed))
    return cut_block(steps, 0, BLOCK_ITEMS, TINY)


def fill(buffer: ReplayBuffer, blocks: range) -> None:
    for seed in blocks:
        buffer.insert(block(seed))


def cut_of(buffer: ReplayBuffer, agent_steps: int) -> Cut:
    sizes = StrideSizes(capacity_items=CAPACITY, block_items=BLOCK_ITEMS, batch_samples=8)
    limit = RatioLimit(samples_per_insert=4.0, min_inserted=1, slack_samples=1_000.0)
    limiter, ledger = RateLimiter(limit, sizes), Ledger()
    limiter.add_inserted(70)
    limiter.add_sampled(33)
    for sequence in (0, 1, 4):
        ledger.accept("actor-0", Incarnation(7), sequence)
    return take_cut(agent_steps, buffer, limiter, ledger)


def use(buffer: ReplayBuffer, rounds: int) -> list[torch.Tensor]:
    """Sample, learn, insert: what comes out tells whether two buffers are the same."""
    seen = []
    for index in range(rounds):
        batch = buffer.sample(8, beta=0.5)
        seen += [batch.observations.clone(), batch.returns.clone(), batch.slots.clone()]
        buffer.update_priorities(batch.slots, batch.generations, torch.arange(8.0) + index)
        buffer.insert(block(1_000 + index))
    return seen
