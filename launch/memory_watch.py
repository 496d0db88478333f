"""Whether a process ended because memory ran out: it said so itself, or the kernel ended it."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence

from common.errors import ExitCode
from common.free_memory import free_ram_bytes, oom_kills
from common.out_of_memory import OUT_OF_DEVICE_MEMORY, OUT_OF_RAM
from launch.memory_ladder import MIB, Pool
from launch.restart import SIGNAL_BASE

LOOK_INTERVAL_S = 1.0
SHORT_BYTES = 128 * MIB
"""A process that is killed while less than this is free was killed for that, whoever did it."""
KILLED = SIGNAL_BASE + signal.SIGKILL
ABORTED = SIGNAL_BASE + signal.SIGABRT
BAD_ALLOC = "std::bad_alloc"
"""What C++ says when it gets no memory."""


class MemoryWatch:
    """Call `look` often: when a process is dead, its memory is free again."""

    def __init__(
        self,
        *,
        free_bytes: Callable[[], int] = free_ram_bytes,
        kills: Callable[[], int] = oom_kills,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._free_bytes, self._kills, self._clock = free_bytes, kills, clock
        self._known_kills = kills()
        self._was_free_bytes = free_bytes()
        self._looked_s = clock()

    def look(self) -> None:
        now = self._clock()
        if now - self._looked_s >= LOOK_INTERVAL_S:
            self._looked_s, self._was_free_bytes = now, self._free_bytes()

    def shortage(self, name: str, exit_code: int, last_lines: Sequence[str]) -> Pool | None:
        """Where memory ran out, if the process of that name ended for lack of it."""
        if exit_code == KILLED:
            kills = self._kills()
            is_ours, self._known_kills = kills > self._known_kills, kills
            return "ram" if is_ours or self._was_free_bytes < SHORT_BYTES else None
        if exit_code == ABORTED:
            return "ram" if any(BAD_ALLOC in line for line in last_lines) else None
        if exit_code == ExitCode.TEMPORARY:
            # Who ends so has spoken last: what is found is of this life.
            spoken = [line for line in last_lines if line.startswith(f"{name}: ")]
            words = spoken[-1].removeprefix(f"{name}: ") if spoken else ""
            if words.startswith(OUT_OF_DEVICE_MEMORY):
                return "device"
            return "ram" if words.startswith(OUT_OF_RAM) else None
        return None
