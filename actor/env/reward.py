"""The reward of one emulator frame, equal to that of gym-super-mario-bros 7.4; pure."""

from __future__ import annotations

from typing import Final, NamedTuple

from actor.env import ram as memory
from actor.env.ram import Ram

FRAME_REWARD_LIMIT: Final = 15.0
DEATH_PENALTY: Final = -25
_MAX_FRAME_DX: Final = 5


class Progress(NamedTuple):
    """What the next frame's reward is measured against."""

    x: int
    time: int

    @classmethod
    def of(cls, ram: Ram) -> Progress:
        return cls(memory.x_position(ram), memory.time_left(ram))


def frame_reward(before: Progress, after: Progress, *, is_dying_or_dead: bool) -> float:
    """Pixels moved, minus ticks of the clock, minus a death; clipped to +-15."""
    dx = after.x - before.x
    # Larger jumps are pipes, loops and resets, not movement.
    moved = dx if abs(dx) <= _MAX_FRAME_DX else 0
    # A clock that went up was reset by a new area.
    ticked = min(after.time - before.time, 0)
    died = DEATH_PENALTY if is_dying_or_dead else 0
    return max(-FRAME_REWARD_LIMIT, min(FRAME_REWARD_LIMIT, float(moved + ticked + died)))
