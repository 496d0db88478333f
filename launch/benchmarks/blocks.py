"""The block that the benchmarks send and store: what an actor sends most of the time."""

from __future__ import annotations

import numpy as np

from common.blocks import StepBlock
from common.specs import DataSpec

BLOCK_ITEMS = 128


def random_block(spec: DataSpec, items: int = BLOCK_ITEMS, seed: int = 1) -> StepBlock:
    """A piece of one long episode."""
    rng = np.random.default_rng(seed)
    steps = items + spec.n_step - 1
    frames = (steps + spec.stack, spec.height, spec.width)
    return StepBlock(
        frames=rng.integers(256, size=frames, dtype=np.uint8),
        actions=rng.integers(spec.num_actions, size=steps, dtype=np.uint8),
        rewards=rng.random(steps, dtype=np.float32),
        flags=np.zeros(steps, dtype=np.uint8),
        frame_index=np.arange(steps, dtype=np.uint16) + np.uint16(spec.stack - 1),
        episode_first=np.zeros(steps, dtype=np.uint16),
        prev_actions=rng.integers(spec.num_actions, size=items, dtype=np.uint8),
        priorities=rng.random(items, dtype=np.float32),
        scripted=np.zeros(steps, dtype=np.uint8),
    )
