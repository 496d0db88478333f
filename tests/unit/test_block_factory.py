from __future__ import annotations

import numpy as np
import pytest

from common.blocks import validate_block
from common.specs import DataSpec
from tests.block_factory import TINY, cut_blocks, frame_identity, frame_of, random_play


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("num_items", [1, 7, 32])
def test_every_made_block_is_valid(seed: int, num_items: int) -> None:
    spec = DataSpec(height=2, width=4, stack=1 + seed % 4, num_actions=7, n_step=1 + seed)
    steps = random_play(200, spec, np.random.default_rng(seed))

    blocks = cut_blocks(steps, num_items, spec)

    assert len(blocks) >= 4
    for block in blocks:
        validate_block(block, spec)


def test_a_frame_tells_where_it_belongs() -> None:
    assert frame_identity(frame_of(300, 70, TINY)) == (300, 70)
