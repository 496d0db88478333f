"""Outlives a launcher that was killed and ends what it left, also processes that are stopped.

Whoever has nothing to save dies with the launcher by the kernel's hand; the others are told to save
and to end. One that hangs in a library, or is stopped, never hears it: this process does not ask.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from common.lifecycle import ORPHAN_GRACE_S, PARENT_PID_VARIABLE

GRACE_S: Final = ORPHAN_GRACE_S + 2.0
"""For those that save."""
DONE: Final = b"done"
PROCESSES: Final = Path("/proc")


@contextlib.contextmanager
def reaper() -> Iterator[None]:
    """While this goes on, nothing that we started outlives us for long."""
    words = [sys.executable, "-m", "launch.reaper", str(os.getpid())]
    with subprocess.Popen(
        words,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        # Ctrl-C in the terminal is not for it.
        process_group=0,
    ) as process:
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                if process.stdin is not None:
                    process.stdin.write(DONE)
                    process.stdin.close()


def main(launcher_pid: int) -> int:
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    if sys.stdin.buffer.read() == DONE:
        return 0
    end_s = time.monotonic() + GRACE_S
    family = {launcher_pid}
    while (left := children_of(*family)) and time.monotonic() < end_s:
        # The ranks of a learner are marked with the process that started them, which may go first.
        family.update(left)
        time.sleep(0.2)
    for pid in left:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    return 0


def children_of(*pids: int) -> list[int]:
    """Processes that one of these started, and theirs: all have its number in their environment."""
    marks = {f"{PARENT_PID_VARIABLE}={pid}".encode() for pid in pids}
    found = []
    for entry in PROCESSES.glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if marks & set((entry / "environ").read_bytes().split(b"\0")):
                found.append(int(entry.name))
    return found


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
