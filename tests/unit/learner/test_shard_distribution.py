"""Batches from shards beside those of one buffer that holds the same transitions."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from common.blocks import StepBlock
from learner.ready_batch import ReadyBatch
from replay_server.sampler import importance_weights
from tests.service_factory import BATCH, BLOCK_ITEMS, make_blocks, make_limiter, make_service
from tests.shard_scene import ShardScene

NUM_BATCHES = 1_500
ERRORS = ([0.2, 3.0, 40.0, 0.0], [9.0])
"""Of the blocks of each shard: other numbers, other masses."""
BETA = 0.6


def blocks_of(shard: int) -> list[StepBlock]:
    blocks = make_blocks(len(ERRORS[shard]), seed=shard)
    for block, error in zip(blocks, ERRORS[shard], strict=True):
        block.priorities[:] = error + np.arange(BLOCK_ITEMS) / BLOCK_ITEMS
    return blocks


def scene_of_two() -> ShardScene:
    endless = [make_limiter(starts=1, slack=1e9) for _ in ERRORS]
    scene = ShardScene(*endless)
    for shard, server in enumerate(scene.shards):
        server.store(blocks_of(shard))
    scene.source.beta = BETA
    scene.join()
    return scene


def one_big_buffer() -> npt.NDArray[np.float64]:
    """The priorities of all items, those of the first shard first."""
    buffer = make_service().buffer
    for shard in range(len(ERRORS)):
        for block in blocks_of(shard):
            buffer.insert(block)
    leaves = buffer.priorities.tree.leaves().numpy()
    return leaves[leaves > 0]


def items_of(scene: ShardScene, ready: ReadyBatch) -> list[int]:
    """Rows as positions in the one big buffer."""
    items, first = [], 0
    for origin in scene.source._origins[ready.slot]:
        shard = scene.lines.index(origin.line)
        leaves = scene.shards[shard].service.buffer.priorities.tree.leaves().numpy()
        place = np.cumsum(leaves > 0) - 1 + shard * len(ERRORS[0]) * BLOCK_ITEMS
        slots = ready.batch.slots[first : first + origin.rows]
        items += [int(place[slot]) for slot in slots]
        first += origin.rows
    return items


def draw(scene: ShardScene, count: int) -> list[tuple[list[int], torch.Tensor]]:
    drawn: list[tuple[list[int], torch.Tensor]] = []
    while len(drawn) < count:
        ready = scene.turn()
        if ready is not None:
            drawn.append((items_of(scene, ready), ready.batch.weights.clone()))
            scene.source.release(ready)
    return drawn


def test_every_item_is_drawn_as_often_as_from_one_big_buffer() -> None:
    priorities = one_big_buffer()
    expected = priorities / priorities.sum()

    items = [item for items, _ in draw(scene_of_two(), NUM_BATCHES) for item in items]

    assert len(items) == NUM_BATCHES * BATCH
    found = np.bincount(items, minlength=len(expected)) / len(items)
    deviation = np.sqrt(expected * (1 - expected) / len(items))
    assert np.all(np.abs(found - expected) < 4.5 * deviation)
    statistic = len(items) * np.sum((found - expected) ** 2 / expected)
    # Chi-square with one degree of freedom less than items, five deviations above its mean.
    freedom = len(expected) - 1
    assert statistic < freedom + 5 * np.sqrt(2 * freedom)


def test_the_weights_are_those_of_one_big_buffer() -> None:
    priorities = torch.from_numpy(one_big_buffer())

    for items, weights in draw(scene_of_two(), 50):
        expected = importance_weights(priorities[items], BETA)
        torch.testing.assert_close(weights, expected, rtol=1e-5, atol=0)


def test_the_least_priority_of_a_joined_batch_is_that_of_all_its_parts() -> None:
    priorities, scene = one_big_buffer(), scene_of_two()
    ready = scene.turn()

    assert ready is not None
    np.testing.assert_allclose(ready.min_priority, priorities[items_of(scene, ready)].min())
    assert ready.beta == BETA
