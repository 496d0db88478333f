"""A console in C++; `actor/env/native_core.py` is its user. Pictures are those of the last step."""

from collections.abc import Sequence
from typing import Final, final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

# Before Python 3.12 type checkers do not know that arrays are buffers.
_Picture = Buffer | NDArray[np.uint8]

NOTHING: Final = 0
"""Draw nothing while stepping; a picture that is asked for anyway costs one more frame."""
GRAY: Final = 1
COLOUR: Final = 2
FRAME_CYCLES: Final = 29781
STATE_BYTES: Final[int]

@final
class Console:
    """Refuses anything but an NTSC cartridge without a mapper: ValueError with the reason.

    Threads may share a console; one that another thread is using raises RuntimeError.
    """

    plain: bool
    """Whether every short cut is off; the result is the same."""

    def __init__(self, cartridge: Buffer, /) -> None: ...
    @property
    def ram(self) -> memoryview[int]:
        """2,048 bytes, live and writable; keeps the console alive."""
    def power_on(self) -> None: ...
    def step(self, buttons: int, frames: int = 1, look: int = ...) -> None:
        """Play frames while the first controller holds the buttons; the last one is looked at."""
    def colours(self, out: _Picture, /) -> None:
        """Write 240 x 256 colour numbers from 0 to 63."""
    def rgb(self, out: _Picture, /) -> None:
        """Write 240 x 256 x 3 bytes."""
    def gray(self, out: _Picture, height: int, width: int, crop_top: int = 0) -> None:
        """Write the exact area means of the gray picture below the cropped rows."""
    def save(self) -> bytes: ...
    def load(self, state: Buffer, keep_controllers: bool = False) -> None:
        """Return to a saved state of the same cartridge; ValueError leaves all as it was."""
    def frame_hash(self) -> int:
        """64 bits, of the picture in colour and the work RAM."""
    def registers(self) -> tuple[int, int, int, int, int, int, int]:
        """pc, a, x, y, s, p, and the cycle from now (1 is the next) of the next instruction."""
    def run_cycles(self, cycles: int, /) -> None: ...
    def run_ppu(self, dots: int, /) -> None:
        """The PPU alone, drawing in colour."""
    def write_ppu(self, register: int, value: int) -> None: ...
    def read_ppu(self, register: int, /) -> int: ...
    def ppu_state(self) -> tuple[int, ...]:
        """Line, next dot and registers.

        In order: line, dot, v, t, fine_x, is_first_write, vblank, sprite0_hit, is_even_frame,
        control, mask, oam_address, data_buffer.
        """
    def video_memory(self) -> bytes:
        """2,048 bytes of name tables, 32 of the palette, 256 of the sprites."""

def step_all(consoles: Sequence[Console], buttons: Buffer, frames: int, look: int = ...) -> None:
    """Step many consoles, one byte of buttons each, in one call."""
