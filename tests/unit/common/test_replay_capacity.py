from __future__ import annotations

import pytest
import torch

from common.errors import CapacityError, ConfigError
from common.replay_capacity import (
    DEFAULT_CAPACITY_ITEMS,
    ItemLayout,
    choose_capacity,
    fit_capacity,
    memory_bytes,
)
from common.specs import DataSpec
from replay_server.buffer import ReplayBuffer, ReplayOptions
from tests.block_factory import TINY

ATARI = ItemLayout(spec=DataSpec())
GIB = 2**30


@pytest.mark.parametrize("capacity", [20_000, 200_000, 1_000_000])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_a_transition_takes_at_most_8_kb(capacity: int, dtype: torch.dtype) -> None:
    layout = ItemLayout(spec=DataSpec(), reward_dtype=dtype)

    assert memory_bytes(capacity, layout) / capacity <= 8_000


def test_memory_is_what_a_buffer_really_allocates() -> None:
    buffer = ReplayBuffer(TINY, ReplayOptions(capacity_items=6_400))
    storage, tree = buffer.storage, buffer.priorities.tree
    columns = [getattr(storage.columns, name) for name in storage.columns.__slots__]
    allocated = sum(tensor.nbytes for tensor in [storage.frames, *columns, *tree._levels])

    assert memory_bytes(6_400, ItemLayout(spec=TINY)) == allocated


@pytest.mark.parametrize("free_bytes", [10**7, GIB, 7 * GIB + 12_345])
def test_the_fitting_capacity_is_the_largest(free_bytes: int) -> None:
    fitting = fit_capacity(free_bytes, ATARI)

    assert memory_bytes(fitting, ATARI) <= free_bytes
    assert memory_bytes(fitting + ATARI.block_items, ATARI) > free_bytes


def test_nothing_fits_in_no_memory() -> None:
    assert fit_capacity(1_000, ATARI) == 0


def test_the_default_is_cut_to_half_of_the_free_memory() -> None:
    assert choose_capacity(0, 100 * GIB, ATARI) == DEFAULT_CAPACITY_ITEMS
    assert choose_capacity(0, GIB, ATARI) == fit_capacity(GIB // 2, ATARI)


def test_a_requested_capacity_is_kept_when_it_fits() -> None:
    assert choose_capacity(100_000, 2 * GIB, ATARI) == 100_000


def test_a_requested_capacity_that_does_not_fit_names_the_largest_that_would() -> None:
    largest = fit_capacity(int(GIB * 0.9), ATARI)

    with pytest.raises(CapacityError, match=f"largest capacity that would fit is {largest}"):
        choose_capacity(1_000_000, GIB, ATARI)
    assert choose_capacity(largest, GIB, ATARI) == largest


def test_a_default_without_room_for_one_block_is_refused() -> None:
    with pytest.raises(CapacityError, match="would fit is 0"):
        choose_capacity(0, 1_000, ATARI)


def test_a_capacity_below_one_block_is_a_configuration_error() -> None:
    with pytest.raises(ConfigError, match="must hold one block"):
        memory_bytes(10, ATARI)
