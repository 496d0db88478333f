"""The only user of stable-retro: finds it, starts its NES emulator, reads and writes the RAM.

stable-retro is no dependency of ours: its pin of pyglet contradicts that of nes-py. At run time
the two get along, for only their viewers import pyglet.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from actor.env.core import RAM_BYTES
from common.errors import ConfigError, CoreUnavailable

# The second is the name in older versions, such as 0.9.5.
_MODULES: Final = ("stable_retro", "retro")
_INSTALL: Final = "pip install --no-deps stable-retro"
_REINSTALL: Final = "reinstall it: pip install --no-deps --force-reinstall stable-retro"
_PROBED_ADDRESS: Final = 0x0700
_BYTE: Final = "|u1"


class Emulator(Protocol):
    """The part of `stable_retro.RetroEmulator` that we use."""

    def step(self) -> None: ...

    def set_button_mask(self, mask: NDArray[np.uint8], player: int = 0) -> None: ...

    def get_screen(self) -> NDArray[np.uint8]: ...

    def get_state(self) -> bytes: ...

    def set_state(self, state: bytes, /) -> bool: ...

    def configure_data(self, data: GameData, /) -> None: ...


class Memory(Protocol):
    """The console's memory: `blocks` are copies by address, `assign` writes to the console."""

    @property
    def blocks(self) -> dict[int, bytes]: ...

    def assign(self, address: int, type: str, value: int) -> None: ...


class GameData(Protocol):
    """The owner of a `Memory`; the emulator keeps a bare pointer to it, so it must outlive both."""

    @property
    def memory(self) -> Memory: ...


def start_emulator(cartridge: Path) -> tuple[Emulator, GameData]:
    """The only emulator that stable-retro allows in one process."""
    retro = load_retro()
    try:
        emulator: Emulator = retro.RetroEmulator(str(cartridge))
    except RuntimeError as exc:
        raise ConfigError(
            f"stable-retro cannot start {cartridge}: {exc}; it runs one emulator per process, "
            "so use --envs-per-actor 1, or another --core"
        ) from exc
    data: GameData = retro.data.GameData()
    emulator.configure_data(data)
    return emulator, data


def load_retro() -> Any:
    """The module of stable-retro, or the reason why there is none."""
    for name in _MODULES:
        try:
            module = import_module(name)
        except ModuleNotFoundError as exc:
            if exc.name == name:
                continue
            raise CoreUnavailable(f"{name} needs the package {exc.name}; pip install it") from exc
        except ImportError as exc:
            raise CoreUnavailable(f"cannot import {name}: {exc}; {_REINSTALL}") from exc
        if not hasattr(module, "RetroEmulator"):
            raise CoreUnavailable(f"the module {name} is not stable-retro's; {_REINSTALL}")
        return module
    raise CoreUnavailable(
        f"the core fceumm needs stable-retro, which is not installed; run: {_INSTALL} "
        "(docs/operations.md, section The core fceumm)"
    )


class MirroredRam:
    """A copy of the console's RAM in one place for ever; the owner keeps the two equal.

    stable-retro hands out copies only. Renewing this one costs a hundredth of a frame.
    """

    def __init__(self, data: GameData) -> None:
        self._data = data
        self.view = memoryview(bytearray(RAM_BYTES))
        self._of_console = b""
        self.is_writable = self._probe()
        self.pull()

    def pull(self) -> None:
        """Take over what the console did."""
        blocks = self._data.memory.blocks
        self._of_console = b"".join(blocks[address] for address in sorted(blocks))[:RAM_BYTES]
        self.view[:] = self._of_console

    def push(self) -> None:
        """Pass on to the console what was written here since the last `pull` or `push`."""
        wanted = bytes(self.view)
        if wanted == self._of_console or not self.is_writable:
            return
        memory = self._data.memory
        for address, (new, old) in enumerate(zip(wanted, self._of_console, strict=True)):
            if new != old:
                memory.assign(address, _BYTE, new)
        self._of_console = wanted

    def _probe(self) -> bool:
        """Whether the console takes what is written; all stages but the first depend on it."""
        self.pull()
        flipped = self.view[_PROBED_ADDRESS] ^ 0xFF
        try:
            self._data.memory.assign(_PROBED_ADDRESS, _BYTE, flipped)
        except (AttributeError, IndexError, ValueError):
            return False
        self.pull()
        return self.view[_PROBED_ADDRESS] == flipped
