"""FCEUmm, the NES emulator of stable-retro, as an emulator core.

Another emulator than nes_py, so the same buttons give another game: results compare only within a
core. Its picture lacks the outer eight pixels on every side, which stay black here, and its
palette differs. Scores and positions come from the same addresses of the RAM.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NoReturn

import cv2
import numpy as np
from numpy.typing import NDArray

from actor.env.cartridge import find_cartridge
from actor.env.core import RAM_BYTES, SCREEN_HEIGHT, SCREEN_WIDTH
from actor.env.preprocess import ScreenShrinker
from actor.env.retro_library import Emulator, MirroredRam, start_emulator
from common.errors import ConfigError, EnvironmentFailed
from common.game import BUTTON_BITS

log = logging.getLogger(__name__)

STRICT_STAGE_VARIABLE: Final = "MARIO_FC_STRICT_STAGE"
SUPPRESS_WARNING_VARIABLE: Final = "MARIO_SUPPRESS_FC_STAGE_WARN"
_BORDER_PIXELS: Final = 8
_PICTURE_SHAPE: Final = (
    SCREEN_HEIGHT - 2 * _BORDER_PIXELS,
    SCREEN_WIDTH - 2 * _BORDER_PIXELS,
    3,
)
# FCEUmm's RAM is not zero at power-up; the game itself clears it within its first few frames.
_BOOT_FRAMES: Final = 10
# libretro's order of a controller's buttons; the NES has none at the second place.
_JOYPAD: Final = ("B", "", "select", "start", "up", "down", "left", "right", "A")


def button_masks() -> NDArray[np.uint8]:
    """What stable-retro wants to hear for every button byte: UInt8[256, 9]."""
    held = np.arange(256)[:, None] & np.array([BUTTON_BITS.get(name, 0) for name in _JOYPAD])
    masks: NDArray[np.uint8] = (held != 0).astype(np.uint8)
    return masks


def report_stage_limit(environment: Mapping[str, str]) -> None:
    """Without writing to the RAM no stage can be chosen: say so once, or refuse."""
    if environment.get(STRICT_STAGE_VARIABLE) == "1":
        raise ConfigError(
            "this stable-retro lets nobody write to the console's RAM, so FCEUmm starts only "
            f"stage 1-1, and {STRICT_STAGE_VARIABLE}=1 forbids that; use --core nes_py"
        )
    if environment.get(SUPPRESS_WARNING_VARIABLE) != "1":
        log.warning(
            "FCEUmm starts only stage 1-1: the RAM cannot be written",
            extra={"silence_with": f"{SUPPRESS_WARNING_VARIABLE}=1"},
        )


class FceummCore:
    """The one FCEUmm emulator of this process; see `EmulatorCore` for the contract.

    `ram` is a copy that takes over every change and passes on what is written to it before the
    console runs again. stable-retro holds the interpreter lock while it runs, so a thread that
    watches for hangs sees none.
    """

    def __init__(self, cartridge: Path | None = None) -> None:
        emulator, data = start_emulator(cartridge or find_cartridge())
        self._emulator: Emulator | None = emulator
        # stable-retro has no reset: the state before the first frame takes its place.
        self._unplayed_state = emulator.get_state()
        self._ram = MirroredRam(data)
        self._masks = button_masks()
        self._picture: NDArray[np.uint8] | None = None
        self._saved: tuple[bytes, NDArray[np.uint8]] | None = None
        self._bgrx = np.zeros((SCREEN_HEIGHT, SCREEN_WIDTH, 4), dtype=np.uint8)
        inner = slice(_BORDER_PIXELS, -_BORDER_PIXELS)
        self._inner_bgrx = self._bgrx[inner, inner]
        self._shrinker: ScreenShrinker | None = None
        if not self._ram.is_writable:
            report_stage_limit(os.environ)
        self.power_on()

    @property
    def ram(self) -> memoryview[int]:
        return self._ram.view

    def step(self, buttons: int, frames: int = 1, *, look: bool = True) -> None:
        del look  # FCEUmm draws every frame
        emulator = self._emulator or self._refuse_closed()
        self._ram.push()
        emulator.set_button_mask(self._masks[buttons])
        for _ in range(frames):
            emulator.step()
        self._picture = None
        self._ram.pull()

    def write_gray(self, out: NDArray[np.uint8], *, crop_top_pixels: int = 0) -> None:
        self._compose()
        shape = (*out.shape, crop_top_pixels)
        if self._shrinker is None or self._shrinker.shape != shape:
            self._shrinker = ScreenShrinker(*out.shape, crop_top_pixels=crop_top_pixels)
        self._shrinker.write(self._bgrx, out)

    def screen(self) -> NDArray[np.uint8]:
        self._compose()
        return np.ascontiguousarray(self._bgrx[:, :, 2::-1])

    def power_on(self) -> None:
        self._restore(self._unplayed_state, np.zeros(_PICTURE_SHAPE, dtype=np.uint8))
        if self._ram.is_writable:
            self.ram[:] = bytes(RAM_BYTES)
        else:
            self.step(0, _BOOT_FRAMES)

    def save_state(self) -> None:
        emulator = self._emulator or self._refuse_closed()
        self._ram.push()
        # FCEUmm's states hold no picture, and an episode begins with one.
        self._saved = (emulator.get_state(), self._present_picture(emulator))

    def load_state(self) -> None:
        if self._saved is None:
            raise EnvironmentFailed("no state was saved that could be loaded")
        self._restore(*self._saved)

    def close(self) -> None:
        self._emulator = None

    def _restore(self, state: bytes, picture: NDArray[np.uint8]) -> None:
        emulator = self._emulator or self._refuse_closed()
        if not emulator.set_state(state):
            raise EnvironmentFailed("FCEUmm refused a state that it had saved itself")
        self._picture = picture
        self._ram.pull()

    def _present_picture(self, emulator: Emulator) -> NDArray[np.uint8]:
        if self._picture is None:
            picture = emulator.get_screen()
            if picture.shape != _PICTURE_SHAPE:
                raise EnvironmentFailed(
                    f"expected a picture of {_PICTURE_SHAPE}, FCEUmm drew {picture.shape}"
                )
            self._picture = picture
        return self._picture

    def _compose(self) -> None:
        """Draw the whole screen with its black border."""
        picture = self._present_picture(self._emulator or self._refuse_closed())
        cv2.cvtColor(picture, cv2.COLOR_RGB2BGRA, dst=self._inner_bgrx)

    def _refuse_closed(self) -> NoReturn:
        raise EnvironmentFailed("the emulator is closed; build a new environment")
