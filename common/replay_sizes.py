"""How large the arrays of a replay buffer are: known before they are allocated.

The replay server allocates them so; the launcher asks what would fit.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from common.blocks import max_block_frames
from common.errors import ConfigError
from common.specs import DataSpec

DEFAULT_BLOCK_ITEMS = 128
BYTE_COLUMNS = ("actions", "flags", "older_frames", "prev_actions", "scripted")
"""Rows of one tensor, in this order: written by one copy. New ones are added at the end."""
FAN_OUT_BITS = 4
FAN_OUT = 1 << FAN_OUT_BITS
"""Children of a node of the sum tree."""
MAX_ROOT_NODES = 8192
"""The top level is searched as one array; below it each level narrows the choice to 16.

Twice 4,096, so that a buffer of 1,048,576 items, which has some leaves more, needs no level more.
"""
_FRAMES_PER_MILLE = 1040
"""Room for frames beyond one endless episode: each episode end in a block costs one more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RingSizes:
    items: int
    steps: int
    frames: int


def ring_sizes(
    capacity_items: int, spec: DataSpec, *, block_items: int = DEFAULT_BLOCK_ITEMS
) -> RingSizes:
    """Rings that hold `capacity_items` in full blocks; smaller blocks waste more of them."""
    if not 1 <= block_items <= capacity_items:
        raise ConfigError(
            f"replay capacity must hold one block of {block_items} items, got {capacity_items}"
        )
    blocks = -(-capacity_items // block_items)
    block_steps = block_items + spec.n_step - 1
    block_frames = -(-(block_steps + spec.stack) * _FRAMES_PER_MILLE // 1000)
    return RingSizes(
        items=capacity_items,
        steps=blocks * block_steps,
        frames=max(blocks * block_frames, max_block_frames(block_steps, spec)),
    )


def wide_column_types(reward_dtype: torch.dtype) -> dict[str, torch.dtype]:
    """The columns of a step that need more than a byte."""
    return {"rewards": reward_dtype, "newest_frames": torch.int32, "generations": torch.int64}


def storage_bytes(
    sizes: RingSizes, spec: DataSpec, *, reward_dtype: torch.dtype = torch.float16
) -> int:
    """Memory of the rings."""
    wide_bytes = sum(dtype.itemsize for dtype in wide_column_types(reward_dtype).values())
    step_bytes = len(BYTE_COLUMNS) + wide_bytes
    return sizes.frames * spec.frame_bytes + sizes.steps * step_bytes


def tree_bytes(num_leaves: int) -> int:
    """Memory of the sum tree."""
    return 8 * sum(tree_level_sizes(num_leaves))


def tree_level_sizes(num_leaves: int) -> list[int]:
    """Leaves first. All but the root are padded to whole groups of 16."""
    sizes = []
    size = num_leaves
    while size > MAX_ROOT_NODES:
        padded = -(-size // FAN_OUT) * FAN_OUT
        sizes.append(padded)
        size = padded // FAN_OUT
    return [*sizes, size]
