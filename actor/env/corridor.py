"""A tiny game with a known optimum, for tests of everything around the emulator.

A bright square walks along a corridor of sixteen cells and must jump over four pits to reach the
flag. Which action is right depends on the cell: no constant action and no short cycle of actions
arrives, and uniformly random play arrives in fewer than one episode of a hundred.
"""

from __future__ import annotations

import json
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from actor.env.core import SCREEN_HEIGHT, SCREEN_WIDTH
from actor.env.frame_ring import FrameRing
from actor.env.interface import Info
from common.errors import ConfigError, EnvironmentFailed

NUM_CELLS: Final = 16
FLAG_CELL: Final = NUM_CELLS - 1
PITS: Final = frozenset({3, 6, 9, 12})
STAY, WALK, JUMP = range(3)
NUM_ACTIONS: Final = 3
CELLS_MOVED: Final = (0, 1, 2)
ACTION_LABELS: Final = ("stay", "walk", "jump")

# Sums of powers of two, so that returns are exact in float16 as well.
CELL_REWARD: Final = 0.125
AGENT_STEP_COST: Final = 0.0625
FLAG_REWARD: Final = 1.0
PIT_REWARD: Final = -1.0

OPTIMAL_AGENT_STEPS: Final = 9
OPTIMAL_RETURN: Final = (
    FLAG_CELL * CELL_REWARD - OPTIMAL_AGENT_STEPS * AGENT_STEP_COST + FLAG_REWARD
)
"""Undiscounted return of the best policy, 2.3125."""
MAX_EPISODE_AGENT_STEPS: Final = 64
FAULTS_VARIABLE: Final = "WARPZONE_CORRIDOR_FAULTS"

_GROUND: Final = 96
_FLAG: Final = 160
_PLAYER: Final = 255


@dataclass(frozen=True, slots=True, kw_only=True)
class CorridorFaults:
    """Ways to misbehave at the given agent step, counted from 1 over all episodes; 0 is never."""

    hang_at_agent_step: int = 0
    raise_at_agent_step: int = 0
    segfault_at_agent_step: int = 0
    out_of_memory_at_agent_step: int = 0
    agent_step_delay_s: float = 0.0
    """Pause in every agent step, to play as slowly as an emulator."""
    fail_to_build: bool = False
    once_file: str = ""
    """Who makes this file first misbehaves; who finds it behaves. Empty: all do, always."""

    @classmethod
    def from_environment(cls) -> CorridorFaults:
        """The fields as a JSON object in `WARPZONE_CORRIDOR_FAULTS`: for tests of processes."""
        text = os.environ.get(FAULTS_VARIABLE, "")
        try:
            return cls(**json.loads(text)) if text else cls()
        except (ValueError, TypeError) as error:
            raise ConfigError(f"{FAULTS_VARIABLE}: {error}") from error

    def may_happen(self) -> bool:
        if not self.once_file:
            return True
        try:
            Path(self.once_file).touch(exist_ok=False)
        except FileExistsError:
            return False
        return True


class CorridorEnv:
    """Offers what `MarioEnv` offers to an actor; deterministic, whatever the seed."""

    def __init__(
        self, *, size: int = 16, stack: int = 4, faults: CorridorFaults | None = None
    ) -> None:
        if size < NUM_CELLS:
            raise ConfigError(f"the corridor needs size >= {NUM_CELLS}, got {size}")
        self._size = size
        self._faults = faults or CorridorFaults.from_environment()
        if self._faults.fail_to_build:
            raise EnvironmentFailed("told to fail to build")
        self._ring = FrameRing(stack, size, size)
        self._stack = stack
        self._cell = 0
        self._episode_agent_steps = 0
        self._total_agent_steps = 0
        self._is_playing = False

    @property
    def height(self) -> int:
        return self._size

    @property
    def width(self) -> int:
        return self._size

    @property
    def stack(self) -> int:
        return self._stack

    @property
    def num_actions(self) -> int:
        return NUM_ACTIONS

    @property
    def action_labels(self) -> tuple[str, ...]:
        return ACTION_LABELS

    @property
    def frame(self) -> NDArray[np.uint8]:
        return self._ring.newest()

    def screen(self) -> NDArray[np.uint8]:
        """As large as the screen of the console, so that all that shows one shows this game too."""
        rows = np.arange(SCREEN_HEIGHT) * self._size // SCREEN_HEIGHT
        columns = np.arange(SCREEN_WIDTH) * self._size // SCREEN_WIDTH
        return np.repeat(self._ring.newest()[rows][:, columns, np.newaxis], 3, axis=2)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.uint8], Info]:
        del seed, options  # nothing here is random, and there is one stage
        self._cell = 0
        self._episode_agent_steps = 0
        self._is_playing = True
        self._ring.next_slot()[:] = draw(self._cell, self._size)
        self._ring.repeat_newest()
        return self._ring.observation(), self._info(0.0)

    def step(self, action: int) -> tuple[NDArray[np.uint8], float, bool, bool, Info]:
        if not self._is_playing:
            raise EnvironmentFailed("no episode is running; call reset() before step()")
        if not 0 <= action < NUM_ACTIONS:
            raise ValueError(f"action must be 0 to {NUM_ACTIONS - 1}, got {action}")
        self._total_agent_steps += 1
        self._misbehave()
        before, self._cell = self._cell, next_cell(self._cell, action)
        self._episode_agent_steps += 1
        reward = step_reward(before, self._cell)
        is_terminal = self._cell in PITS or self._cell == FLAG_CELL
        is_truncated = not is_terminal and self._episode_agent_steps >= MAX_EPISODE_AGENT_STEPS
        self._is_playing = not (is_terminal or is_truncated)
        self._ring.next_slot()[:] = draw(self._cell, self._size)
        return self._ring.observation(), reward, is_terminal, is_truncated, self._info(reward)

    def trace(self) -> None:
        """There is no console whose memory could be compared."""

    def close(self) -> None:
        self._is_playing = False

    def _info(self, reward: float) -> Info:
        return {
            "coins": 0,
            "flag_get": self._cell == FLAG_CELL,
            "life": 0,
            "score": 0,
            "stage": 1,
            "status": "small",
            "time": MAX_EPISODE_AGENT_STEPS - self._episode_agent_steps,
            "world": 1,
            "x_pos": self._cell,
            "y_pos": 0,
            "raw_reward": reward,
            "frames": self._episode_agent_steps,
            "distance": self._cell,
            "loop_backs": 0,
            "noop_frames": 0,
        }

    def _misbehave(self) -> None:
        faults, now = self._faults, self._total_agent_steps
        if faults.agent_step_delay_s:
            time.sleep(faults.agent_step_delay_s)
        moments = (
            faults.raise_at_agent_step,
            faults.segfault_at_agent_step,
            faults.hang_at_agent_step,
            faults.out_of_memory_at_agent_step,
        )
        if now not in moments or not faults.may_happen():
            return
        if now == faults.raise_at_agent_step:
            raise EnvironmentFailed(f"told to fail at agent step {now}")
        if now == faults.out_of_memory_at_agent_step:
            raise MemoryError(f"told to run out of memory at agent step {now}")
        if now == faults.segfault_at_agent_step:
            os.kill(os.getpid(), signal.SIGSEGV)
        while now == faults.hang_at_agent_step:
            time.sleep(1.0)


def next_cell(cell: int, action: int) -> int:
    return min(cell + CELLS_MOVED[action], FLAG_CELL)


def step_reward(before: int, after: int) -> float:
    ending = FLAG_REWARD if after == FLAG_CELL else PIT_REWARD if after in PITS else 0.0
    return (after - before) * CELL_REWARD - AGENT_STEP_COST + ending


def draw(cell: int, size: int) -> NDArray[np.uint8]:
    """The corridor from the side: ground with gaps below, the flag at its end, the player on it."""
    picture = np.zeros((size, size), dtype=np.uint8)
    pixels = size // NUM_CELLS
    ground_top = size - size // 4
    for column in range(NUM_CELLS):
        if column not in PITS:
            picture[ground_top:, column * pixels : (column + 1) * pixels] = _GROUND
    picture[size // 4 : ground_top, FLAG_CELL * pixels : (FLAG_CELL + 1) * pixels] = _FLAG
    # A player in a pit is seen to have fallen.
    bottom = size if cell in PITS else ground_top
    top = bottom - max(2, 2 * pixels)
    picture[top:bottom, cell * pixels : (cell + 1) * pixels] = _PLAYER
    return picture
