"""A stand-in for the module stable_retro: a console whose frames only count and show the count."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

PICTURE_SHAPE = (224, 240, 3)
FRAME_COUNT_ADDRESS = 0x0009
POWER_UP_BYTE = 0xFF


class FakeEmulator:
    """Like the real one: a single one at a time, and states that hold no picture."""

    _running: weakref.ref[FakeEmulator] | None = None

    def __init__(self, cartridge: str) -> None:
        if FakeEmulator._running is not None and FakeEmulator._running() is not None:
            raise RuntimeError("Cannot create multiple emulator instances per process")
        FakeEmulator._running = weakref.ref(self)
        self.cartridge = cartridge
        self.ram = bytearray([POWER_UP_BYTE] * 0x800)
        self.held: list[tuple[int, ...]] = []
        self.picture: NDArray[np.uint8] = np.zeros(PICTURE_SHAPE, dtype=np.uint8)
        self.accepts_states = True
        self._mask: tuple[int, ...] = ()

    def configure_data(self, data: FakeGameData) -> None:
        data.emulator = weakref.ref(self)

    def set_button_mask(self, mask: NDArray[np.uint8], player: int = 0) -> None:
        assert player == 0
        self._mask = tuple(int(place) for place, bit in enumerate(mask) if bit)

    def step(self) -> None:
        self.held.append(self._mask)
        self.ram[FRAME_COUNT_ADDRESS] = (self.ram[FRAME_COUNT_ADDRESS] + 1) % 256
        self.picture = np.full_like(self.picture, self.ram[FRAME_COUNT_ADDRESS])

    def get_screen(self) -> NDArray[np.uint8]:
        return self.picture.copy()

    def get_state(self) -> bytes:
        return bytes(self.ram)

    def set_state(self, state: bytes) -> bool:
        if self.accepts_states:
            self.ram[:] = state
        return self.accepts_states


class FakeGameData:
    """Hands out copies in blocks, as the real one does, and writes single bytes."""

    def __init__(self) -> None:
        self.emulator: Callable[[], FakeEmulator | None] = lambda: None
        self.is_writable = True

    @property
    def memory(self) -> FakeGameData:
        return self

    @property
    def blocks(self) -> dict[int, bytes]:
        ram = bytes(self._console().ram)
        return {0x6000: b"\x77" * 1024, 0x400: ram[0x400:], 0: ram[:0x400]}

    def assign(self, address: int, type: str, value: int) -> None:
        assert type == "|u1"
        if self.is_writable:
            self._console().ram[address] = value

    def _console(self) -> FakeEmulator:
        emulator = self.emulator()
        assert emulator is not None, "memory read after its emulator was freed"
        return emulator


class ReadOnlyGameData(FakeGameData):
    """Takes bytes and forgets them."""

    def __init__(self) -> None:
        super().__init__()
        self.is_writable = False


def fake_module(name: str, game_data: type[FakeGameData] = FakeGameData) -> Any:
    module: Any = ModuleType(name)
    module.RetroEmulator = FakeEmulator
    module.data = SimpleNamespace(GameData=game_data)
    return module
