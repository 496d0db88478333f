"""What it costs to keep rewards in half precision (`float16_scalars`, MARIO_PER_FP16_SCALARS)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from common.batch import Batch
from common.config import Settings
from common.replay_capacity import layout_of, memory_bytes
from replay_server.buffer import ReplayBuffer, ReplayOptions
from tests.block_factory import TINY, PlayedStep, cut_blocks, frame_identity, random_play
from tests.replay_reference import expected_sample

GAMMA = 0.95
HALF_ULP = 2.0**-11
"""Largest relative error of rounding to float16, of numbers from 2^-14 to 65504."""
SMALLEST = 2.0**-25
"""Half of the smallest number: the largest error of what is smaller."""
FLOAT32_ROUNDING = 1e-6


def mario_play(seed: int) -> list[PlayedStep]:
    """Rewards as the game gives them: fifteenths, now and then a flag, and a little shaping."""
    rng = np.random.default_rng(seed)
    return [
        replace(
            step,
            reward=int(rng.integers(-60, 61)) / 15
            + (10.0 if rng.random() < 0.02 else 0.0)
            + 0.12 * 0.25 * int(rng.integers(0, 13)),
        )
        for step in random_play(600, TINY, rng)
    ]


def sampled(steps: list[PlayedStep], dtype: torch.dtype) -> Batch:
    options = ReplayOptions(
        capacity_items=512, block_items=16, discount=GAMMA, seed=3, reward_dtype=dtype
    )
    buffer = ReplayBuffer(TINY, options)
    for block in cut_blocks(steps, 16, TINY):
        buffer.insert(block)
    return buffer.sample(256, beta=0.4)


def return_size(steps: list[PlayedStep], index: int) -> float:
    """The discounted sum of the sizes of the rewards: what errors of rounding grow with."""
    sizes = [replace(step, reward=abs(step.reward)) for step in steps]
    return expected_sample(sizes, index, TINY, GAMMA).reward_sum


@pytest.mark.parametrize("seed", range(5))
def test_returns_differ_from_float32_by_no_more_than_the_rounding_of_their_rewards(
    seed: int,
) -> None:
    steps = mario_play(seed)
    positions = {(step.episode, step.time): index for index, step in enumerate(steps)}

    half, full = sampled(steps, torch.float16), sampled(steps, torch.float32)

    assert torch.equal(half.slots, full.slots)
    errors = (half.returns - full.returns).abs().tolist()
    for row, error in enumerate(errors):
        index = positions[frame_identity(full.observations[row][-1].numpy())]
        bound = HALF_ULP * return_size(steps, index) + TINY.n_step * SMALLEST
        assert error <= bound + FLOAT32_ROUNDING
    # Never zero: otherwise this test compares a thing with itself. In all it is half a per mille.
    assert 0 < max(errors) < 0.02


def test_half_precision_is_the_default_and_saves_two_bytes_a_step() -> None:
    half = Settings()
    full = replace(half, replay=replace(half.replay, float16_scalars=False))

    assert half.replay.float16_scalars
    saved = memory_bytes(20_000, layout_of(full)) - memory_bytes(20_000, layout_of(half))
    assert 2 * 20_000 <= saved < 2 * 22_000
