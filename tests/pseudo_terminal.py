"""A terminal for programs under test: what they draw is kept, keys and signals are sent to them."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator

from tests.processes import ROOT


class PseudoTerminal:
    """One program in a terminal of its own."""

    def __init__(self, words: tuple[str, ...], columns: int, rows: int) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self._theirs = theirs
        self.before = termios.tcgetattr(theirs)
        self.output = ""
        self.process = subprocess.Popen(
            [sys.executable, *words],
            cwd=ROOT,
            env={**os.environ, "OMP_NUM_THREADS": "1", "TERM": "xterm-256color"},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )

    def settings(self) -> list[object]:
        """Of the keyboard, as `before` had them."""
        return list(termios.tcgetattr(self._theirs))

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def read_until(self, text: str, deadline_s: float = 60.0) -> None:
        end_s = time.monotonic() + deadline_s
        while text not in self.output:
            assert time.monotonic() < end_s, self.output[-2_000:]
            assert self._read() or self.process.poll() is None, self.output[-2_000:]

    def wait(self, deadline_s: float = 60.0) -> int:
        """Read until the program has ended; its exit code."""
        end_s = time.monotonic() + deadline_s
        while self.process.poll() is None:
            assert time.monotonic() < end_s, self.output[-2_000:]
            self._read()
        while self._read():
            pass
        return int(self.process.returncode)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._ours)
        os.close(self._theirs)

    def _read(self) -> bool:
        ready, _, _ = select.select([self._ours], [], [], 0.1)
        if ready:
            self.output += os.read(self._ours, 65_536).decode(errors="replace")
        return bool(ready)


@contextlib.contextmanager
def in_terminal(*words: str, columns: int = 100, rows: int = 30) -> Iterator[PseudoTerminal]:
    terminal = PseudoTerminal(words, columns, rows)
    try:
        yield terminal
    finally:
        terminal.close()
