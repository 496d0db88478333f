"""A terminal to draw on and to read keys from; whatever happens, it is given back as it was."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import termios
import tty
from collections.abc import Iterator
from typing import Final

from common.errors import ConfigError, ExitCode
from launch.half_blocks import Area

ENTER: Final = "\x1b[?1049h\x1b[?25l\x1b[2J"
LEAVE: Final = "\x1b[0m\x1b[?25h\x1b[?1049l"
CLEAR: Final = "\x1b[2J"
LEAST: Final = Area(40, 16)
_MAX_KEY_BYTES: Final = 1024


class Terminal:
    """Draws lines of text at their places; only those that have changed are sent."""

    def __init__(self, keyboard: int | None) -> None:
        """`keyboard` is the descriptor that keys are read from; None reads none."""
        self._keyboard = keyboard
        self._shown: list[str] = []
        self._area = self.area

    @property
    def area(self) -> Area:
        size = os.get_terminal_size(sys.stdout.fileno())
        return Area(size.columns, size.lines)

    def draw(self, lines: list[str]) -> None:
        """The whole screen, from its first line; more lines than it has are left out."""
        parts = []
        if self.area != self._area:
            self._area, self._shown = self.area, []
            parts.append(CLEAR)
        lines = lines[: self._area.rows]
        for row, line in enumerate(lines):
            if row >= len(self._shown) or self._shown[row] != line:
                parts.append(f"\x1b[{row + 1};1H{line}\x1b[K")
        self._shown = lines
        sys.stdout.write("".join(parts))
        sys.stdout.flush()

    def keys(self, wait_s: float = 0.0) -> str:
        """What was typed since the last call, waiting a while for the first of it."""
        if self._keyboard is None:
            return ""
        ready, _, _ = select.select([self._keyboard], [], [], wait_s)
        return os.read(self._keyboard, _MAX_KEY_BYTES).decode(errors="replace") if ready else ""


def require_terminal(*, with_keyboard: bool) -> None:
    is_fit = sys.stdout.isatty() and (sys.stdin.isatty() or not with_keyboard)
    if not is_fit or os.environ.get("TERM", "dumb") == "dumb":
        raise ConfigError("this is no terminal that could show pictures; use --video FILE.mp4")
    area = Terminal(None).area
    if area.columns < LEAST.columns or area.rows < LEAST.rows:
        raise ConfigError(
            f"the terminal must have at least {LEAST.columns} x {LEAST.rows} characters, "
            f"got {area.columns} x {area.rows}; enlarge it, or use --video FILE.mp4"
        )


@contextlib.contextmanager
def opened_terminal() -> Iterator[Terminal]:
    """Another screen without a cursor, and keys one by one, until the end of the block."""
    keyboard = sys.stdin.fileno() if sys.stdin.isatty() else None
    before = None if keyboard is None else termios.tcgetattr(keyboard)
    # Without this a SIGTERM would leave the terminal as it is now.
    handler = signal.signal(signal.SIGTERM, lambda *_: sys.exit(ExitCode.TERMINATED))
    try:
        if keyboard is not None:
            tty.setcbreak(keyboard)
            _forbid_suspending(keyboard)
        sys.stdout.write(ENTER)
        yield Terminal(keyboard)
    finally:
        with contextlib.suppress(OSError):
            sys.stdout.write(LEAVE)
            sys.stdout.flush()
        if keyboard is not None and before is not None:
            with contextlib.suppress(termios.error):
                termios.tcsetattr(keyboard, termios.TCSADRAIN, before)
        signal.signal(signal.SIGTERM, handler)


def _forbid_suspending(keyboard: int) -> None:
    """A suspended program would leave its screen and its keyboard to the shell."""
    settings = termios.tcgetattr(keyboard)
    settings[6][termios.VSUSP] = b"\0"
    termios.tcsetattr(keyboard, termios.TCSADRAIN, settings)
