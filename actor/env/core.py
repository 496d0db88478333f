"""The little that an emulator must offer; `nes_core.py` is the default and the reference."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

SCREEN_HEIGHT = 240
SCREEN_WIDTH = 256
RAM_BYTES = 0x800


class EmulatorCore(Protocol):
    """One console with one cartridge and one save slot.

    `ram` is a live view of the emulator's memory, the same object for the life of the core. It is
    for the environment that owns the core, which copies whatever leaves it, and must not be read
    after `close`.
    """

    @property
    def ram(self) -> memoryview[int]:
        """The 2 KiB of work RAM; reading gives plain integers, writing pokes the console."""
        ...

    def step(self, buttons: int, frames: int = 1, *, look: bool = True) -> None:
        """Run emulator frames while the first controller holds the given button byte.

        `look` tells that the screen after them will be looked at. It is a hint: a screen that is
        looked at without it is the same, only later.
        """
        ...

    def write_gray(self, out: NDArray[np.uint8], *, crop_top_pixels: int = 0) -> None:
        """Shrink the screen below the cropped rows into `out`, UInt8[height, width], contiguous.

        Every pixel is the exact mean of the gray area that it covers, rounded half up.
        """
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


@runtime_checkable
class PortableCore(Protocol):
    """A core whose whole state can be taken out and put back, at any time, again and again."""

    def snapshot(self) -> bytes: ...

    def restore(self, state: bytes) -> None: ...
