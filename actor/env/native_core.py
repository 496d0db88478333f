"""The only user of the native extension: the same game as nes_py, bit for bit, much faster.

Nothing is drawn that nobody looks at. A picture that is asked for anyway is drawn then, by playing
its frame once more.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import numpy as np
from numpy.typing import NDArray

from actor.env.cartridge import find_cartridge
from actor.env.core import SCREEN_HEIGHT, SCREEN_WIDTH
from common.errors import ConfigError, CoreUnavailable, EnvironmentFailed

if TYPE_CHECKING:
    from actor.env.native._console import Console


def load_console() -> type[Console]:
    """The extension's console, or the reason why this installation has none."""
    try:
        # Here, because the extension is built only where there is a compiler.
        from actor.env.native._console import Console  # noqa: PLC0415
    except ImportError as exc:
        raise CoreUnavailable(
            f"the native core was not built for this Python ({exc}); install a C++ compiler "
            "and the headers of Python, then this package again: pip install --no-deps -e ."
        ) from exc
    return Console


class NativeCore:
    """One native console; see `EmulatorCore` for the contract.

    It releases the interpreter lock while it runs, so a watchdog thread sees a hang.
    """

    def __init__(self, cartridge: Path | None = None) -> None:
        path = cartridge or find_cartridge()
        try:
            self._console: Console | None = load_console()(path.read_bytes())
        except OSError as exc:
            raise ConfigError(f"cannot read the cartridge {path}: {exc.strerror}") from exc
        except ValueError as exc:
            raise ConfigError(f"the native core cannot play the cartridge {path}: {exc}") from exc
        self._ram = self._console.ram
        self._saved: bytes | None = None
        self._console.power_on()

    @property
    def ram(self) -> memoryview[int]:
        return self._ram

    def step(self, buttons: int, frames: int = 1, *, look: bool = True) -> None:
        console = self._console or self._refuse_closed()
        # False and True are the extension's NOTHING and GRAY.
        console.step(buttons, frames, look)

    def write_gray(self, out: NDArray[np.uint8], *, crop_top_pixels: int = 0) -> None:
        console = self._console or self._refuse_closed()
        console.gray(out, out.shape[0], out.shape[1], crop_top_pixels)

    def screen(self) -> NDArray[np.uint8]:
        console = self._console or self._refuse_closed()
        picture = np.empty((SCREEN_HEIGHT, SCREEN_WIDTH, 3), dtype=np.uint8)
        console.rgb(picture)
        return picture

    def power_on(self) -> None:
        console = self._console or self._refuse_closed()
        console.power_on()

    def save_state(self) -> None:
        console = self._console or self._refuse_closed()
        self._saved = console.save()

    def load_state(self) -> None:
        console = self._console or self._refuse_closed()
        if self._saved is None:
            raise EnvironmentFailed("no state was saved that could be loaded")
        # nes_py's slot does not hold the controllers either; buttons come with the next step.
        console.load(self._saved, True)

    def snapshot(self) -> bytes:
        """The whole console as bytes that any native core with this cartridge can `restore`."""
        return (self._console or self._refuse_closed()).save()

    def restore(self, state: bytes) -> None:
        """Become the console of a snapshot, controllers included."""
        try:
            (self._console or self._refuse_closed()).load(state)
        except ValueError as exc:
            raise EnvironmentFailed(f"the snapshot cannot be restored: {exc}") from exc

    def close(self) -> None:
        self._console = None

    def _refuse_closed(self) -> NoReturn:
        raise EnvironmentFailed("the emulator is closed; build a new environment")
