from __future__ import annotations

import numpy as np
import pytest
import torch

from common.batch import allocate_batch
from common.errors import ReplayEmpty
from replay_server.buffer import ReplayBuffer, ReplayOptions
from replay_server.storage import NO_ITEM
from tests.block_factory import TINY, cut_blocks, play, random_play
from tests.scripted_peers import FakeClock


def filled_buffer(num_blocks: int, *, capacity: int = 64) -> ReplayBuffer:
    buffer = ReplayBuffer(TINY, ReplayOptions(capacity_items=capacity, block_items=16))
    steps = play([16 * num_blocks + 10], [0], TINY, np.random.default_rng(0))
    for block in cut_blocks(steps, 16, TINY):
        buffer.insert(block)
    return buffer


def test_only_items_of_stored_blocks_are_ever_drawn() -> None:
    buffer = ReplayBuffer(TINY, ReplayOptions(capacity_items=64, block_items=16))
    for block in cut_blocks(random_play(600, TINY, np.random.default_rng(4)), 16, TINY):
        buffer.insert(block)
        batch = buffer.sample(128, 0.4)
        stored = buffer.storage.columns.generations
        assert bool((batch.generations != NO_ITEM).all())
        assert torch.equal(batch.generations, stored[batch.slots])
        oldest = buffer.inserted_blocks_total - buffer.storage.num_blocks
        assert int(batch.generations.min()) >= oldest

    assert buffer.check_sums() == 0.0


def test_mass_is_the_sum_over_stored_items_only() -> None:
    buffer = filled_buffer(20)

    assert buffer.size == 64
    assert buffer.mass == pytest.approx(64 * (1 + 1e-3) ** 0.5, rel=1e-5)


def test_priorities_of_overwritten_items_are_ignored_and_counted() -> None:
    buffer = filled_buffer(4)
    old = buffer.sample(64, 0.4)
    steps = play([60], [0], TINY, np.random.default_rng(1))
    for block in cut_blocks(steps, 16, TINY)[:2]:
        buffer.insert(block)
    mass = buffer.mass

    stale = buffer.update_priorities(old.slots, old.generations, torch.full((64,), 1e5))

    assert stale == 32
    assert buffer.mass == pytest.approx(mass / 2 + 32 * (1e5 + 1e-3) ** 0.5, rel=1e-5)
    assert buffer.stats().stale_priorities_total == 32


def test_an_update_makes_an_item_as_likely_as_its_error_says() -> None:
    buffer = filled_buffer(4)
    batch = buffer.sample(64, 0.4)
    errors = torch.zeros(64)
    errors[10] = 1e6

    buffer.update_priorities(batch.slots, batch.generations, errors)

    drawn = buffer.sample(1_000, 0.4)
    assert float((drawn.slots == batch.slots[10]).float().mean()) > 0.99
    assert float(drawn.weights[drawn.slots == batch.slots[10]].max()) < 0.05


def test_sampling_an_empty_buffer_is_refused() -> None:
    with pytest.raises(ReplayEmpty):
        filled_buffer(0).sample(4, 0.4)


def test_a_batch_of_another_size_is_refused() -> None:
    with pytest.raises(ValueError, match="room for 8 items, expected 4"):
        filled_buffer(2).sample(4, 0.4, allocate_batch(8, TINY))


def test_statistics_count_what_happened() -> None:
    buffer = filled_buffer(2)
    batch = buffer.sample(8, 0.4)
    buffer.update_priorities(batch.slots, batch.generations, torch.full((8,), -1.0))

    stats = buffer.stats()

    assert (stats.size_items, stats.capacity_items, stats.fill) == (32, 64, 0.5)
    assert (stats.inserted_items_total, stats.inserted_blocks_total) == (32, 2)
    assert (stats.sampled_items_total, stats.num_blocks) == (8, 2)
    assert (stats.stale_priorities_total, stats.refused_priorities_total) == (0, 8)
    assert stats.unique_ratio == stats.unique_ratio_mean == 1.0
    assert stats.priorities.p50 == pytest.approx((1 + 1e-3) ** 0.5, rel=1e-5)
    assert stats.phase_ms.keys() == {"insert", "tree", "window", "gather", "update"}


def test_broken_sums_are_found_and_repaired() -> None:
    buffer = ReplayBuffer(TINY, ReplayOptions(capacity_items=64_000, block_items=16))
    buffer.priorities.tree._levels[-1][0] += 2**20

    assert buffer.check_sums() == 1.0
    assert buffer.check_sums() == 0.0


def test_the_sums_are_checked_once_in_ten_seconds_and_all_who_ask_are_told_the_same() -> None:
    clock = FakeClock()
    options = ReplayOptions(capacity_items=64_000, block_items=16)
    buffer = ReplayBuffer(TINY, options, clock=clock)
    assert buffer.sum_drift() == 0.0
    buffer.priorities.tree._levels[-1][0] += 2**20

    clock.advance(9.0)
    early = buffer.sum_drift()
    clock.advance(1.0)
    told = [buffer.sum_drift() for _ in range(2)]
    clock.advance(10.0)

    assert (early, *told, buffer.sum_drift()) == (0.0, 1.0, 1.0, 0.0)


def test_mass_and_least_priority_are_read_together() -> None:
    buffer = filled_buffer(2)
    batch = buffer.sample(8, 0.4)

    mass, least = buffer.mass_and_least()

    assert mass == buffer.mass
    assert least == float(buffer.priorities.tree.get(batch.slots).min())
