"""Moments of a game for tests, without a game."""

from __future__ import annotations

import numpy as np

from common.moments import SCREEN_SHAPE, Moment


def make_moment(number: int = 0, *, action: int | None = 1, cleared: bool = False) -> Moment:
    """The screen is filled with the number, so that it can be recognised."""
    return Moment(
        screen=np.full(SCREEN_SHAPE, number % 256, dtype=np.uint8),
        stage="1-1",
        x=number,
        time_left=400 - number,
        seconds=number / 15,
        agent_steps=number,
        action=action,
        action_labels=("NOOP", "right", "right+A"),
        q_values=(1.0, 3.0, 2.0),
        cleared=cleared,
    )
