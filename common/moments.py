"""One moment of an episode as a person sees it: the screen, and what the agent made of it.

Made by whoever plays, in actor; shown by whoever draws, films or prints.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Picture = NDArray[np.uint8]
"""RGB, UInt8[height, width, 3]."""

SCREEN_SHAPE = (240, 256, 3)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Moment:
    """After an agent step, or at the start of an episode."""

    screen: Picture
    stage: str
    x: int
    time_left: int
    """Of the game's own clock."""
    seconds: float
    """Of the game, since the first action could be taken."""
    agent_steps: int
    action: int | None
    """The action that led here; None at the start."""
    action_labels: tuple[str, ...]
    q_values: tuple[float, ...]
    """By which it was chosen, one per action; empty where nobody asked the network."""
    cleared: bool

    @property
    def action_label(self) -> str:
        return "-" if self.action is None else self.action_labels[self.action]


def bar_lengths(values: tuple[float, ...], most: int) -> list[int]:
    """Lengths from 1 to `most` by which close values can still be told apart.

    A value that is not finite, of a network that has diverged, gets the shortest one.
    """
    finite = [value for value in values if math.isfinite(value)]
    low, high = min(finite, default=0.0), max(finite, default=0.0)

    def length(value: float) -> int:
        if not math.isfinite(value):
            return 1
        return most if high == low else 1 + round((value - low) / (high - low) * (most - 1))

    return [length(value) for value in values]
