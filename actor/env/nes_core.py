"""The only user of nes_py: its compiled emulator, called directly.

The Python half of nes_py is never imported. It would import gym, which prints a notice on every
start, it overflows under NumPy 2 while reading the cartridge's header, and it hides the contiguous
screen behind a view with a negative stride.
"""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from actor.env.cartridge import find_cartridge, package_directory
from actor.env.core import RAM_BYTES, SCREEN_HEIGHT, SCREEN_WIDTH
from actor.env.preprocess import ScreenShrinker
from common.errors import ConfigError, EnvironmentFailed

_BYTES_PER_PIXEL = 4


@cache
def load_library() -> ctypes.CDLL:
    """The emulator's shared library with its signatures declared; loaded once per process."""
    candidates = sorted(package_directory("nes_py").glob("lib_nes_env*"))
    if not candidates:
        raise ConfigError(
            "nes_py has no compiled emulator; reinstall it: pip install nes-py==8.2.1"
        )
    try:
        library = ctypes.CDLL(str(candidates[0]))
        _declare(library)
    except (OSError, AttributeError) as exc:
        raise ConfigError(f"cannot use the emulator {candidates[0]}: {exc}") from exc
    if (library.Width(), library.Height()) != (SCREEN_WIDTH, SCREEN_HEIGHT):
        raise ConfigError(f"{candidates[0]} has another screen size than {SCREEN_WIDTH} x 240")
    return library


def _declare(library: ctypes.CDLL) -> None:
    """Handles are pointers: without these types ctypes would cut them to 32 bits."""
    handle = ctypes.c_void_p
    for name in ("Width", "Height"):
        getattr(library, name).restype = ctypes.c_uint
    library.Initialize.argtypes = [ctypes.c_wchar_p]
    library.Initialize.restype = handle
    library.Controller.argtypes = [handle, ctypes.c_uint]
    library.Controller.restype = handle
    for name in ("Screen", "Memory"):
        getattr(library, name).argtypes = [handle]
        getattr(library, name).restype = handle
    for name in ("Reset", "Step", "Backup", "Restore", "Close"):
        getattr(library, name).argtypes = [handle]
        getattr(library, name).restype = None


class NesPyCore:
    """One nes_py emulator; see `EmulatorCore` for the contract.

    The library releases the interpreter lock while it runs, so a watchdog thread sees a hang.
    """

    def __init__(self, cartridge: Path | None = None) -> None:
        path = cartridge or find_cartridge()
        self._library = load_library()
        self._handle: int | None = self._library.Initialize(str(path))
        if not self._handle:
            raise EnvironmentFailed(f"nes_py could not start the cartridge {path}")
        self._ram = _memory_at(self._library.Memory(self._handle), RAM_BYTES)
        self._controller = _memory_at(self._library.Controller(self._handle, 0), 1)
        screen_bytes = SCREEN_HEIGHT * SCREEN_WIDTH * _BYTES_PER_PIXEL
        flat = np.frombuffer(
            _memory_at(self._library.Screen(self._handle), screen_bytes), dtype=np.uint8
        )
        self._bgrx = flat.reshape(SCREEN_HEIGHT, SCREEN_WIDTH, _BYTES_PER_PIXEL)
        # Only our own `step` may change the console.
        self._bgrx.flags.writeable = False
        self._has_saved_state = False
        self._shrinker: ScreenShrinker | None = None
        self._library.Reset(self._handle)

    @property
    def ram(self) -> memoryview[int]:
        return self._ram

    def step(self, buttons: int, frames: int = 1, *, look: bool = True) -> None:
        del look  # this emulator draws every frame anyway
        handle = self._handle or self._refuse_closed()
        self._controller[0] = buttons
        for _ in range(frames):
            self._library.Step(handle)

    def write_gray(self, out: NDArray[np.uint8], *, crop_top_pixels: int = 0) -> None:
        if self._handle is None:
            self._refuse_closed()
        shape = (*out.shape, crop_top_pixels)
        if self._shrinker is None or self._shrinker.shape != shape:
            self._shrinker = ScreenShrinker(*out.shape, crop_top_pixels=crop_top_pixels)
        self._shrinker.write(self._bgrx, out)

    def screen(self) -> NDArray[np.uint8]:
        if self._handle is None:
            self._refuse_closed()
        return np.ascontiguousarray(self._bgrx[:, :, 2::-1])

    def power_on(self) -> None:
        handle = self._handle or self._refuse_closed()
        # A reset alone is a warm start: the game keeps its top score and world selection.
        self._ram[:] = bytes(RAM_BYTES)
        self._controller[0] = 0
        self._library.Reset(handle)

    def save_state(self) -> None:
        self._library.Backup(self._handle or self._refuse_closed())
        self._has_saved_state = True

    def load_state(self) -> None:
        handle = self._handle or self._refuse_closed()
        if not self._has_saved_state:
            # The emulator would happily restore uninitialised memory.
            raise EnvironmentFailed("no state was saved that could be loaded")
        self._library.Restore(handle)
        self._controller[0] = 0

    def close(self) -> None:
        if self._handle is not None:
            self._library.Close(self._handle)
            self._handle = None

    def _refuse_closed(self) -> NoReturn:
        raise EnvironmentFailed("the emulator is closed; build a new environment")


def _memory_at(address: int, size_bytes: int) -> memoryview[int]:
    return memoryview((ctypes.c_ubyte * size_bytes).from_address(address)).cast("B")
