"""The reference of the benchmark `env`: gym-super-mario-bros with the wrappers that all write.

`JoypadSpace`, then frames skipped by a loop, gray, smaller, stacked, each by itself. The packages
are as they come but for arithmetic that overflows under NumPy 2; that is the same game as ours, and
tests/integration/test_plain_env.py holds it.
"""

from __future__ import annotations

import io
import warnings
from collections import deque
from contextlib import redirect_stderr
from importlib import import_module
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from common.game import parse_stage

Screen = NDArray[np.uint8]
Outcome = tuple[Screen, float, bool, dict[str, Any]]
"""As old Gym had it: observation, reward, whether it is over, info."""


class SkipFrames:
    """Holds an action for some frames and adds up their rewards."""

    def __init__(self, env: Any, frames: int) -> None:
        self._env = env
        self._frames = frames

    def reset(self) -> Screen:
        return np.asarray(self._env.reset())

    def step(self, action: int) -> Outcome:
        total = 0.0
        for _ in range(self._frames):
            screen, reward, is_over, info = self._env.step(action)
            total += reward
            if is_over:
                break
        return screen, total, is_over, info


class Gray:
    """Only the brightness of what the environment shows."""

    def __init__(self, env: SkipFrames) -> None:
        self._env = env

    def reset(self) -> Screen:
        return self._look(self._env.reset())

    def step(self, action: int) -> Outcome:
        screen, reward, is_over, info = self._env.step(action)
        return self._look(screen), reward, is_over, info

    def _look(self, screen: Screen) -> Screen:
        return np.asarray(cv2.cvtColor(screen, cv2.COLOR_RGB2GRAY), dtype=np.uint8)


class Resized:
    """Square pictures."""

    def __init__(self, env: Gray, size: int) -> None:
        self._env = env
        self._size = (size, size)

    def reset(self) -> Screen:
        return self._look(self._env.reset())

    def step(self, action: int) -> Outcome:
        screen, reward, is_over, info = self._env.step(action)
        return self._look(screen), reward, is_over, info

    def _look(self, screen: Screen) -> Screen:
        small = cv2.resize(screen, self._size, interpolation=cv2.INTER_AREA)
        return np.asarray(small, dtype=np.uint8)


class Stacked:
    """The newest pictures together, oldest first, UInt8[stack, size, size]."""

    def __init__(self, env: Resized, count: int) -> None:
        self._env = env
        self._frames: deque[Screen] = deque(maxlen=count)

    def reset(self) -> Screen:
        first = self._env.reset()
        for _ in range(self._frames.maxlen or 0):
            self._frames.append(first)
        return np.stack(self._frames)

    def step(self, action: int) -> Outcome:
        screen, reward, is_over, info = self._env.step(action)
        self._frames.append(screen)
        return np.stack(self._frames), reward, is_over, info


def plain_chain(stage: str, *, frame_skip: int, size: int, stack: int = 4) -> Stacked:
    """Super Mario Bros. as tutorials set it up.

    Not by `gym.make`: its time limit expects five values of `step`, and the game gives four.
    """
    # Gym says on every import that it is old; so do its deprecated calls.
    with warnings.catch_warnings(), redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        game = _repaired_game()(target=parse_stage(stage))
        actions = import_module("gym_super_mario_bros.actions").SIMPLE_MOVEMENT
        joypad = import_module("nes_py.wrappers").JoypadSpace(game, actions)
    # One core, as every contender has.
    cv2.setNumThreads(1)
    return Stacked(Resized(Gray(SkipFrames(joypad, frame_skip)), size), stack)


def _repaired_game() -> Any:
    """The game's class, with numbers of Python where its uint8 overflows under NumPy 2."""
    rom = import_module("nes_py._rom").ROM
    rom.prg_rom_size = property(lambda it: 16 * int(it.header[4]))
    rom.chr_rom_size = property(lambda it: 8 * int(it.header[5]))
    original = import_module("gym_super_mario_bros.smb_env").SuperMarioBrosEnv
    repairs = {
        "_world": _byte(0x075F, 1),
        "_stage": _byte(0x075C, 1),
        "_area": _byte(0x0760, 1),
        "_life": _byte(0x075A),
        "_x_position": property(lambda it: int(it.ram[0x6D]) * 0x100 + int(it.ram[0x86])),
        "_y_position": property(_y_position),
    }
    return type("RepairedGame", (original,), repairs)


def _byte(address: int, offset: int = 0) -> property:
    return property(lambda it: int(it.ram[address]) + offset)


def _y_position(game: Any) -> int:
    height = 255 - int(game.ram[0x03B8])
    return 255 + height if int(game.ram[0x00B5]) < 1 else height
