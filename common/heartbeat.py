"""The heartbeat of a process: a JSON line in its own file, and the same to the learner.

It is beaten from the working loop, not from a thread, so a process that hangs falls silent.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

from common.channels import Pusher
from common.codec import encode
from common.host import HOST_FIELD, this_host
from common.ids import Incarnation, Role, peer_id
from common.jsonl import JsonlWriter
from common.messages import Heartbeat, Scalar

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who is speaking."""

    run_id: str
    role: Role
    index: int
    incarnation: Incarnation

    @property
    def peer(self) -> str:
        return peer_id(self.role, self.index)


def _finite(value: Scalar) -> Scalar:
    # Neither JSON nor the wire knows NaN; a heartbeat is not what should end a process.
    is_odd = isinstance(value, float) and not math.isfinite(value)
    return None if is_odd else value


class HeartbeatWriter:
    """Call `beat` when it is `due`, and at turns that should be seen at once."""

    def __init__(
        self,
        identity: Identity,
        path: Path | None,
        interval_s: float,
        *,
        pusher: Pusher | None = None,
        clock: Clock = time.monotonic,
    ) -> None:
        self._identity = identity
        self._file = JsonlWriter(path) if path is not None else None
        self._interval_s = interval_s
        self._pusher = pusher
        self._clock = clock
        self._process = psutil.Process()
        self._process.cpu_percent()
        self._started_s = clock()
        self._last_s = self._started_s
        self._last_progress = 0
        self.unsent = 0

    def due(self) -> bool:
        return self._clock() - self._last_s >= self._interval_s

    def beat(
        self, progress: int, state: str, values: Mapping[str, Scalar] | None = None
    ) -> dict[str, Scalar]:
        """Write and send one heartbeat now. `progress` only ever grows while work is done."""
        now = self._clock()
        elapsed_s = max(now - self._last_s, 1e-9)
        record: dict[str, Scalar] = {
            **self._who(),
            "uptime_s": round(now - self._started_s, 3),
            "state": state,
            "progress": progress,
            "progress_per_s": round((progress - self._last_progress) / elapsed_s, 3),
            **self._vital_signs(),
            **{name: _finite(value) for name, value in (values or {}).items()},
        }
        self._last_s, self._last_progress = now, progress
        self._emit(record)
        return record

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def _who(self) -> dict[str, Scalar]:
        who = self._identity
        return {
            "time": time.time(),
            "role": who.role,
            "index": who.index,
            "pid": os.getpid(),
            HOST_FIELD: this_host(),
            "incarnation": who.incarnation,
        }

    def _vital_signs(self) -> dict[str, Scalar]:
        with self._process.oneshot():
            return {
                "cpu_percent": self._process.cpu_percent(),
                "rss_mb": round(self._process.memory_info().rss / 2**20, 1),
                "threads": self._process.num_threads(),
                "open_files": self._process.num_fds(),
            }

    def _emit(self, record: Mapping[str, Scalar]) -> None:
        if self._file is not None:
            self._file.write(record)
        if self._pusher is not None:
            who = self._identity
            message = Heartbeat(run_id=who.run_id, peer=who.peer, record=dict(record))
            self.unsent += not self._pusher.send(encode(message))
