from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import BadMessage, ConfigError
from common.replay_sizes import RingSizes, ring_sizes, storage_bytes
from common.specs import DataSpec
from replay_server.rings import host_tensor
from replay_server.storage import NO_ITEM, BlockStorage
from tests.block_factory import TINY, cut_block, cut_blocks, frame_identity, play, random_play


def identities(storage: BlockStorage, frame_slots: list[int]) -> list[tuple[int, int]]:
    return [frame_identity(storage.frames[slot].numpy()) for slot in frame_slots]


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    block_items=st.integers(1, 12),
    capacity=st.integers(12, 40),
)
def test_stored_steps_survive_wraps_until_their_block_is_evicted(
    seed: int, block_items: int, capacity: int
) -> None:
    steps = random_play(200, TINY, np.random.default_rng(seed))
    storage = BlockStorage(ring_sizes(capacity, TINY, block_items=block_items), TINY)
    alive: dict[int, int] = {}
    first = 0
    for block in cut_blocks(steps, block_items, TINY):
        placement = storage.insert(block)
        for slot in placement.evicted.indices().tolist():
            alive.pop(slot, None)
        slots = placement.items.indices().tolist()
        assert not alive.keys() & set(slots)
        alive |= dict(zip(slots, range(first, first + block_items), strict=True))
        first += block_items

        assert storage.num_items == len(alive) <= capacity
        items = (storage.columns.generations != NO_ITEM).nonzero().squeeze(1)
        assert set(items.tolist()) == alive.keys()
        newest = storage.columns.newest_frames[items].tolist()
        expected = [(steps[alive[i]].episode, steps[alive[i]].time) for i in items.tolist()]
        assert identities(storage, newest) == expected
        assert storage.columns.rewards[items].tolist() == [
            steps[alive[i]].reward for i in items.tolist()
        ]
        assert storage.columns.scripted[items].tolist() == [
            steps[alive[i]].scripted for i in items.tolist()
        ]


def test_oldest_whole_blocks_go_first() -> None:
    steps = play([100], [0], TINY, np.random.default_rng(0))
    storage = BlockStorage(RingSizes(items=24, steps=48, frames=100), TINY)
    placements = [storage.insert(cut_block(steps, first, 8, TINY)) for first in (0, 8, 16)]

    placement = storage.insert(cut_block(steps, 24, 8, TINY))

    assert placement.evicted.first == placements[0].items.first
    assert placement.evicted.length == 8 + TINY.n_step - 1
    assert storage.num_items == 24


def test_a_shortage_of_frames_evicts_more_blocks() -> None:
    rng = np.random.default_rng(0)
    long_episode = cut_block(play([100], [0], TINY, rng), 50, 8, TINY)
    many_episodes = cut_block(play([1] * 20, [1] * 20, TINY, rng), 0, 8, TINY)
    storage = BlockStorage(
        RingSizes(items=100, steps=100, frames=2 * long_episode.num_frames + 2), TINY
    )
    storage.insert(long_episode)
    storage.insert(long_episode)

    storage.insert(many_episodes)

    assert many_episodes.num_frames == long_episode.num_frames
    assert storage.num_blocks == 2
    assert storage.num_frames == 2 * long_episode.num_frames


def test_generations_count_inserts_and_look_ahead_has_none() -> None:
    steps = play([100], [0], TINY, np.random.default_rng(0))
    storage = BlockStorage(ring_sizes(32, TINY, block_items=8), TINY)

    storage.insert(cut_block(steps, 0, 8, TINY))
    storage.insert(cut_block(steps, 8, 8, TINY))

    expected = [0] * 8 + [NO_ITEM] * 4 + [1] * 8 + [NO_ITEM] * 4
    assert storage.columns.generations[:24].tolist() == expected


def test_a_block_that_can_never_fit_is_refused_and_nothing_is_lost() -> None:
    steps = play([200], [0], TINY, np.random.default_rng(0))
    storage = BlockStorage(ring_sizes(16, TINY, block_items=8), TINY)
    storage.insert(cut_block(steps, 0, 8, TINY))

    with pytest.raises(BadMessage, match="block_too_large"):
        storage.insert(cut_block(steps, 0, 17, TINY))

    assert storage.num_items == 8


def test_a_capacity_below_one_block_is_refused() -> None:
    with pytest.raises(ConfigError, match="one block of 128 items, got 100"):
        ring_sizes(100, TINY)


def test_capacity_is_reached_by_full_blocks_of_one_episode() -> None:
    steps = play([2_000], [0], TINY, np.random.default_rng(0))
    storage = BlockStorage(ring_sizes(1_024, TINY, block_items=128), TINY)

    for block in cut_blocks(steps, 128, TINY):
        storage.insert(block)

    assert storage.num_items == 1_024


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_memory_is_known_before_allocating(dtype: torch.dtype) -> None:
    sizes = ring_sizes(512, TINY)
    storage = BlockStorage(sizes, TINY, reward_dtype=dtype)
    columns = storage.columns
    tensors = [storage.frames, *(getattr(columns, name) for name in columns.__slots__)]

    assert storage_bytes(sizes, TINY, reward_dtype=dtype) == sum(t.nbytes for t in tensors)


def test_half_precision_keeps_rewards_to_one_part_in_two_thousand() -> None:
    steps = play([20], [0], TINY, np.random.default_rng(0))
    block = cut_block(steps, 0, 8, TINY)
    block.rewards[:8] = np.array([15, -15, 1 / 15, -1 / 15, 14 / 15, 10.7, 0, 60]) / 1
    storage = BlockStorage(ring_sizes(8, TINY, block_items=8), TINY)

    storage.insert(block)

    stored = storage.columns.rewards[:8].to(torch.float32).numpy()
    np.testing.assert_allclose(stored, block.rewards[:8], rtol=2**-11)


def test_read_only_arrays_are_accepted() -> None:
    array = np.frombuffer(b"\x01\x02\x03", dtype=np.uint8)

    assert host_tensor(array).tolist() == [1, 2, 3]


def test_blocks_over_received_bytes_are_stored() -> None:
    spec = DataSpec(height=2, width=4)
    block = cut_block(play([50], [0], spec, np.random.default_rng(0)), 0, 8, spec)
    block.frames.flags.writeable = False
    storage = BlockStorage(ring_sizes(16, spec, block_items=8), spec)

    storage.insert(block)

    assert identities(storage, [0, 1, 2]) == [(0, 0), (0, 1), (0, 2)]
