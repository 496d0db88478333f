"""Two emulator cores as one: every frame is played on both and compared."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from actor.env.core import EmulatorCore

SCREEN_INTERVAL_FRAMES: Final = 3


class CoresDiffer(Exception):
    """The first difference: the frame, counted from the first power-on, and what differs."""


class TwinCore:
    """A core for `StageGame` and for bare play; see `EmulatorCore` for the contract.

    RAM is compared after every frame and load, the colour screen after a load and on every third
    frame. What a caller pokes into the reference's RAM is poked into the other's before the next
    frame.
    """

    def __init__(self, reference: EmulatorCore, other: EmulatorCore) -> None:
        self._reference = reference
        self._other = other
        self._agreed = b""
        self.frames = 0
        self._compare_ram()

    @property
    def ram(self) -> memoryview[int]:
        return self._reference.ram

    def step(self, buttons: int, frames: int = 1, *, look: bool = True) -> None:
        del look  # which screens are compared is decided here
        for _ in range(frames):
            self._hand_on_pokes()
            self.frames += 1
            is_compared = self.frames % SCREEN_INTERVAL_FRAMES == 0
            # Half of the screens are announced; the others must look the same when drawn late.
            is_announced = is_compared and self.frames % 2 == 0
            self._reference.step(buttons)
            self._other.step(buttons, look=is_announced)
            self._compare_ram()
            if is_compared:
                self._compare_screen()

    def write_gray(self, out: NDArray[np.uint8], *, crop_top_pixels: int = 0) -> None:
        self._reference.write_gray(out, crop_top_pixels=crop_top_pixels)
        grays = np.empty_like(out)
        self._other.write_gray(grays, crop_top_pixels=crop_top_pixels)
        self._compare_pictures(out, grays)

    def screen(self) -> NDArray[np.uint8]:
        self._compare_screen()
        return self._reference.screen()

    def power_on(self) -> None:
        for core in (self._reference, self._other):
            core.power_on()
        self._compare_ram()

    def save_state(self) -> None:
        self._hand_on_pokes()
        for core in (self._reference, self._other):
            core.save_state()

    def load_state(self) -> None:
        for core in (self._reference, self._other):
            core.load_state()
        self._compare_ram()
        self._compare_screen()

    def close(self) -> None:
        for core in (self._reference, self._other):
            core.close()

    def _hand_on_pokes(self) -> None:
        ram = bytes(self._reference.ram)
        if ram == self._agreed:
            return
        # Only what was poked: the rest of the other's RAM must come from its own play.
        for address, (before, now) in enumerate(zip(self._agreed, ram, strict=True)):
            if before != now:
                self._other.ram[address] = now

    def _compare_ram(self) -> None:
        ours, theirs = bytes(self._other.ram), bytes(self._reference.ram)
        self._agreed = theirs
        if ours == theirs:
            return
        places = [address for address, byte in enumerate(theirs) if byte != ours[address]]
        listed = ", ".join(
            f"${address:04X} is ${theirs[address]:02X} and ${ours[address]:02X}"
            for address in places[:8]
        )
        raise CoresDiffer(f"frame {self.frames}: {len(places)} bytes of RAM: {listed}")

    def _compare_screen(self) -> None:
        self._compare_pictures(self._reference.screen(), self._other.screen())

    def _compare_pictures(self, theirs: NDArray[np.uint8], ours: NDArray[np.uint8]) -> None:
        if np.array_equal(theirs, ours):
            return
        differs = theirs != ours
        places = np.argwhere(differs.any(axis=2) if differs.ndim == 3 else differs)
        row, column = (int(number) for number in places[0])
        values = f"{theirs[row, column]} and {ours[row, column]}"
        raise CoresDiffer(
            f"frame {self.frames}: {len(places)} pixels, the first in row {row}, column {column}: "
            f"{values}"
        )
