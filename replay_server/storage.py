"""Frames and steps of all stored blocks in two rings on the device, each frame once.

Owns where things are and when they are overwritten (whole blocks, oldest first). Knows nothing
of priorities, sampling or peers; blocks have been validated before they come here.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from common.blocks import U8, StepBlock
from common.errors import BadMessage
from common.replay_sizes import BYTE_COLUMNS, RingSizes, wide_column_types
from common.specs import DataSpec
from replay_server.rings import SlotRange, ring_parts, ring_write

NO_ITEM = -1
"""The generation of a slot that cannot be sampled: empty, evicted or look-ahead."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StepColumns:
    """One entry per step slot."""

    actions: Tensor
    """uint8."""
    rewards: Tensor
    """float16 or float32."""
    flags: Tensor
    """uint8, as in `common.blocks`."""
    newest_frames: Tensor
    """int32, slot in the frame ring of the newest frame that the action was chosen on."""
    older_frames: Tensor
    """uint8, how many frames of the same episode precede it, at most stack - 1."""
    prev_actions: Tensor
    """uint8, meaningful for items only."""
    scripted: Tensor
    """uint8, 1 where a script chose the action."""
    generations: Tensor
    """int64, insert number of the block that the item belongs to, or NO_ITEM."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """What an insert changed: `items` can be sampled now, `evicted` slots no longer."""

    items: SlotRange
    evicted: SlotRange
    generation: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _StoredBlock:
    items: int
    steps: int
    frames: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageLayout:
    """Where the stored blocks lie."""

    blocks: tuple[tuple[int, int, int], ...]
    """Items, steps and frames of each, oldest first."""
    next_step_slot: int
    next_frame_slot: int
    next_generation: int


class BlockStorage:
    """First in, first out by whole blocks. Not thread-safe."""

    def __init__(
        self,
        sizes: RingSizes,
        spec: DataSpec,
        *,
        device: torch.device | str = "cpu",
        reward_dtype: torch.dtype = torch.float16,
    ) -> None:
        self.sizes = sizes
        self.spec = spec
        # Frames are never read before they are written, so their pages need not be touched yet.
        self.frames = torch.empty(
            (sizes.frames, spec.frame_bytes), dtype=torch.uint8, device=device
        )
        self._byte_rows = torch.zeros(
            (len(BYTE_COLUMNS), sizes.steps), dtype=torch.uint8, device=device
        )
        wide = {
            name: torch.zeros(sizes.steps, dtype=dtype, device=device)
            for name, dtype in wide_column_types(reward_dtype).items()
        }
        rows = dict(zip(BYTE_COLUMNS, self._byte_rows.unbind(), strict=True))
        self.columns = StepColumns(**rows, **wide)
        self.columns.generations.fill_(NO_ITEM)
        self._blocks: deque[_StoredBlock] = deque()
        self._used = _StoredBlock(items=0, steps=0, frames=0)
        self._next_step_slot = 0
        self._next_frame_slot = 0
        self._generation = 0

    @property
    def num_items(self) -> int:
        return self._used.items

    @property
    def num_blocks(self) -> int:
        return len(self._blocks)

    @property
    def num_frames(self) -> int:
        return self._used.frames

    @property
    def device(self) -> torch.device:
        return self.frames.device

    @property
    def oldest_generation(self) -> int:
        """Of the block that will be evicted next; the next one to come while there is none."""
        return self._generation - len(self._blocks)

    def layout(self) -> StorageLayout:
        """Which blocks lie where; with the rings themselves, all that there is to know."""
        return StorageLayout(
            blocks=tuple((one.items, one.steps, one.frames) for one in self._blocks),
            next_step_slot=self._next_step_slot,
            next_frame_slot=self._next_frame_slot,
            next_generation=self._generation,
        )

    def set_layout(self, layout: StorageLayout) -> None:
        """Take over a layout whose blocks have been put back into the rings."""
        self._blocks = deque(_StoredBlock(items=i, steps=s, frames=f) for i, s, f in layout.blocks)
        self._used = _StoredBlock(items=0, steps=0, frames=0)
        for block in self._blocks:
            self._used = _combine(self._used, block, sign=1)
        self._next_step_slot = layout.next_step_slot
        self._next_frame_slot = layout.next_frame_slot
        self._generation = layout.next_generation
        self._mark_items()

    def ring_columns(self, byte_columns: int = len(BYTE_COLUMNS)) -> dict[str, Tensor]:
        """The rings by name, with the slot as the first dimension, for those who copy them.

        Of the byte columns only the first ones, for copies from before there were more.
        """
        return {
            "bytes": self._byte_rows[:byte_columns].t(),
            "rewards": self.columns.rewards,
            "newest_frames": self.columns.newest_frames,
        }

    def _mark_items(self) -> None:
        """Give every slot the generation that it has when its block is stored."""
        generations = self.columns.generations.fill_(NO_ITEM)
        slot = (self._next_step_slot - self._used.steps) % self.sizes.steps
        for generation, block in enumerate(self._blocks, start=self.oldest_generation):
            for part, _ in ring_parts(generations, slot, block.items):
                part.fill_(generation)
            slot = (slot + block.steps) % self.sizes.steps

    def insert(self, block: StepBlock) -> Placement:
        """Store a valid block, evicting the oldest ones until there is room for it."""
        new = _StoredBlock(items=block.num_items, steps=block.num_steps, frames=block.num_frames)
        if not self._has_room(_StoredBlock(items=0, steps=0, frames=0), new):
            raise BadMessage("block_too_large", f"{new} does not fit in {self.sizes}")
        evicted = self._evict_for(new)
        self._write(block)
        placement = Placement(
            items=SlotRange(first=self._next_step_slot, length=new.items, ring=self.sizes.steps),
            evicted=evicted,
            generation=self._generation,
        )
        self._advance(new)
        return placement

    def _has_room(self, used: _StoredBlock, new: _StoredBlock) -> bool:
        return (
            used.items + new.items <= self.sizes.items
            and used.steps + new.steps <= self.sizes.steps
            and used.frames + new.frames <= self.sizes.frames
        )

    def _evict_for(self, new: _StoredBlock) -> SlotRange:
        first = (self._next_step_slot - self._used.steps) % self.sizes.steps
        steps = 0
        while not self._has_room(self._used, new):
            oldest = self._blocks.popleft()
            steps += oldest.steps
            self._used = _combine(self._used, oldest, sign=-1)
        for part, _ in ring_parts(self.columns.generations, first, steps):
            part.fill_(NO_ITEM)
        return SlotRange(first=first, length=steps, ring=self.sizes.steps)

    def _write(self, block: StepBlock) -> None:
        columns, first = self.columns, self._next_step_slot
        newest = block.frame_index.astype(np.int32)
        generations = np.full(block.num_steps, NO_ITEM, dtype=np.int64)
        generations[: block.num_items] = self._generation
        ring_write(self._byte_rows.t(), first, self._byte_values(block).T)
        ring_write(columns.rewards, first, block.rewards)
        ring_write(
            columns.newest_frames, first, (newest + self._next_frame_slot) % self.sizes.frames
        )
        ring_write(columns.generations, first, generations)
        frames = block.frames.reshape(block.num_frames, -1)
        ring_write(self.frames, self._next_frame_slot, frames)

    def _byte_values(self, block: StepBlock) -> U8:
        older = block.frame_index - block.episode_first
        values = np.empty((len(BYTE_COLUMNS), block.num_steps), dtype=np.uint8)
        values[0] = block.actions
        values[1] = block.flags
        values[2] = np.minimum(older, self.spec.stack - 1)
        values[3, : block.num_items] = block.prev_actions
        values[3, block.num_items :] = self.spec.no_action
        values[4] = block.scripted
        return values

    def _advance(self, new: _StoredBlock) -> None:
        # First of all: a thread that writes a cut then sees the oldest block too new for a moment,
        # and gives up a page that was whole; the other way round it would believe a torn one.
        self._generation += 1
        self._blocks.append(new)
        self._used = _combine(self._used, new, sign=1)
        self._next_step_slot = (self._next_step_slot + new.steps) % self.sizes.steps
        self._next_frame_slot = (self._next_frame_slot + new.frames) % self.sizes.frames


def _combine(left: _StoredBlock, right: _StoredBlock, *, sign: int) -> _StoredBlock:
    return _StoredBlock(
        items=left.items + sign * right.items,
        steps=left.steps + sign * right.steps,
        frames=left.frames + sign * right.frames,
    )
