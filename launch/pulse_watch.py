"""The launcher's end of the pulse: how long a process has been silent."""

from __future__ import annotations

import os

from launch.patience import Patience

MAX_LOOK_S = 1.0
"""Most that counts between two looks. A launcher that was itself stopped, or a machine that slept,
must not find everybody hanging when it wakes up."""
_READ_BYTES = 4096


class PulseWatch:
    """Of one life of a process; all times are on the clock of the caller."""

    def __init__(self, now_s: float) -> None:
        self.reader, self.writer = os.pipe()
        os.set_blocking(self.reader, False)
        self.has_turned = False
        self.silent_s = 0.0
        self._looked_s = now_s

    def close_writer(self) -> None:
        """The process has it now."""
        os.close(self.writer)

    def look(self, now_s: float) -> None:
        elapsed_s = min(max(now_s - self._looked_s, 0.0), MAX_LOOK_S)
        self._looked_s = now_s
        if self._has_pulse():
            self.has_turned, self.silent_s = True, 0.0
        else:
            self.silent_s += elapsed_s

    def is_over(self, patience: Patience) -> bool:
        limit_s = patience.turn_s if self.has_turned else patience.start_s
        return self.silent_s > limit_s

    def close(self) -> None:
        os.close(self.reader)

    def _has_pulse(self) -> bool:
        try:
            return len(os.read(self.reader, _READ_BYTES)) > 0
        except BlockingIOError:
            return False
