from __future__ import annotations

import random

import pytest

from actor.env.cartridge import find_cartridge
from actor.env.native._console import COLOUR, GRAY, NOTHING, Console
from actor.env.native_core import NativeCore
from actor.env.stage_game import StageGame
from common.game import STAGES

QUICK_FRAMES = 16_000
NIGHTLY_FRAMES = 3_000_000


def play_both(frames: int, seed: int) -> None:
    """The fast path, sometimes drawing, beside the plain path that takes no short cut."""
    dice = random.Random(seed)
    fast, plain = (Console(find_cartridge().read_bytes()) for _ in range(2))
    plain.plain = True
    start = NativeCore()
    game = StageGame(start, "1-1")
    for stage in STAGES:
        game.select(stage)
        for console in (fast, plain):
            console.load(start.snapshot())
        for frame in range(frames // len(STAGES)):
            buttons = dice.choice((0x80, 0x81, 0x82, 0x83, 0x83, 0x40, 0x41, 0x20, 0x00))
            fast.step(buttons, 1, dice.choice((NOTHING, NOTHING, GRAY, COLOUR)))
            plain.step(buttons)
            assert fast.save() == plain.save(), f"stage {stage}, frame {frame}, seed {seed}"
        assert fast.frame_hash() == plain.frame_hash()


def test_the_fast_path_leaves_the_whole_state_of_the_plain_one() -> None:
    play_both(QUICK_FRAMES, seed=1)


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_the_fast_path_leaves_the_whole_state_of_the_plain_one_for_millions_of_frames() -> None:
    play_both(NIGHTLY_FRAMES, seed=2)
