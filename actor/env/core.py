"""The little that an emulator must offer; `nes_core.py` is the default and the reference."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

SCREEN_HEIGHT = 240
SCREEN_WIDTH = 256
RAM_BYTES = 0x800


class EmulatorCore(Protocol):
    """One console with one cartridge and one save slot.

    `ram` and `bgrx` are live views of the emulator's memory, the same objects for the life of the
    core. They are for the environment that owns the core, which copies whatever leaves it, and
    must not be read after `close`.
    """

    @property
    def ram(self) -> memoryview[int]:
        """The 2 KiB of work RAM; reading gives plain integers, writing pokes the console."""
        ...

    @property
    def bgrx(self) -> NDArray[np.uint8]:
        """The screen as the emulator keeps it: UInt8[240, 256, 4], contiguous, last byte unused."""
        ...

    def step(self, buttons: int, frames: int = 1) -> None:
        """Run emulator frames while the first controller holds the given button byte."""
        ...

    def screen(self) -> NDArray[np.uint8]:
        """A contiguous copy of the screen, RGB UInt8[240, 256, 3]."""
        ...

    def power_on(self) -> None:
        """Start the cartridge afresh with cleared RAM; the save slot stays."""
        ...

    def save_state(self) -> None:
        """Overwrite the save slot with the present state."""
        ...

    def load_state(self) -> None:
        """Return to the state of the save slot, which must have been written."""
        ...

    def close(self) -> None:
        """Free the emulator; a second call does nothing."""
        ...
