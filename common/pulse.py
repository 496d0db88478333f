"""The pulse of a process: a byte to its launcher while its working loop turns.

It is written from the loop, never from a thread, so a process whose loop hangs falls silent
whatever its threads do. It goes through a pipe: neither a full disk nor a clock that jumps can look
like a hang.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

PULSE_VARIABLE = "WARPZONE_PULSE_FD"
"""Set by the launcher: the number of the pipe's end that the process writes to."""
PULSE_INTERVAL_S = 0.25


class Pulse:
    """Call `turn` as often as the loop turns; without a launcher it does nothing."""

    def __init__(self, pipe: int | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._pipe = pipe
        self._clock = clock
        self._last_s = -PULSE_INTERVAL_S
        if pipe is not None:
            os.set_blocking(pipe, False)
            os.set_inheritable(pipe, False)

    @classmethod
    def from_environment(cls) -> Pulse:
        """The variable is taken out: processes that we start have no part in it."""
        number = os.environ.pop(PULSE_VARIABLE, "")
        try:
            return cls(int(number) if number else None)
        except (ValueError, OSError):
            return cls(None)

    def turn(self) -> None:
        now = self._clock()
        if self._pipe is None or now - self._last_s < PULSE_INTERVAL_S:
            return
        self._last_s = now
        try:
            os.write(self._pipe, b".")
        except OSError:
            # Full, because the launcher sleeps, or broken, because it is gone: not our concern.
            return
