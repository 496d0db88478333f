"""How many transitions fit in given memory, decided before allocating."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from common.config import Settings
from common.errors import CapacityError
from common.replay_sizes import DEFAULT_BLOCK_ITEMS, ring_sizes, storage_bytes, tree_bytes
from common.specs import DataSpec

DEFAULT_CAPACITY_ITEMS = 200_000
DEFAULT_SHARE = 0.5
"""Of the free memory, when the user leaves the capacity to us."""
EXPLICIT_SHARE = 0.9
"""Of the free memory, when the user asks for a capacity: the rest is for batches and the like."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemLayout:
    """All that the memory per item depends on."""

    spec: DataSpec
    block_items: int = DEFAULT_BLOCK_ITEMS
    reward_dtype: torch.dtype = torch.float16


def layout_of(settings: Settings) -> ItemLayout:
    return ItemLayout(
        spec=settings.spec,
        block_items=settings.actor.block_steps,
        reward_dtype=torch.float16 if settings.replay.float16_scalars else torch.float32,
    )


def memory_bytes(capacity_items: int, layout: ItemLayout) -> int:
    """Everything that a buffer of this capacity allocates on its device."""
    sizes = ring_sizes(capacity_items, layout.spec, block_items=layout.block_items)
    rings = storage_bytes(sizes, layout.spec, reward_dtype=layout.reward_dtype)
    return rings + tree_bytes(sizes.steps + 1)


def fit_capacity(free_bytes: int, layout: ItemLayout) -> int:
    """The largest capacity, in whole blocks, whose memory is at most `free_bytes`; 0 if none."""
    fits, too_many = 0, 1
    while _block_bytes(too_many, layout) <= free_bytes:
        fits, too_many = too_many, 2 * too_many
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        if _block_bytes(middle, layout) <= free_bytes:
            fits = middle
        else:
            too_many = middle
    return fits * layout.block_items


def largest_capacity(free_bytes: int, layout: ItemLayout) -> int:
    """Of a buffer that somebody asks for by number."""
    return fit_capacity(int(free_bytes * EXPLICIT_SHARE), layout)


def choose_capacity(requested_items: int, free_bytes: int, layout: ItemLayout) -> int:
    """The requested capacity if it fits; 0 asks for the default or what half the memory holds."""
    is_default = requested_items == 0
    wanted = DEFAULT_CAPACITY_ITEMS if is_default else requested_items
    share = DEFAULT_SHARE if is_default else EXPLICIT_SHARE
    largest = fit_capacity(int(free_bytes * share), layout)
    if largest > 0 and (is_default or wanted <= largest):
        return min(wanted, largest)
    raise CapacityError(
        f"a replay capacity of {wanted} transitions needs {memory_bytes(wanted, layout)} bytes, "
        f"but {free_bytes} are free, of which {share:.0%} may be used; "
        f"the largest capacity that would fit is {largest}"
    )


def _block_bytes(num_blocks: int, layout: ItemLayout) -> int:
    return memory_bytes(num_blocks * layout.block_items, layout)
