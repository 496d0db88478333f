"""Agent steps that take too long: when there are several in a short time, where they spend it.

The stacks are taken while the step is slow, by a watchdog that needs no interpreter: afterwards
they would only show that it is over.
"""

from __future__ import annotations

import faulthandler
import logging
import os
import tempfile
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

log = logging.getLogger(__name__)

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowStepLimits:
    threshold_s: float
    """An agent step that takes longer is slow."""
    window_s: float
    """Slow steps within it are counted together, and leave one trace at most."""
    count: int
    """How many of them leave a trace."""


class SlowStepJudge:
    """Decides from durations alone; no clock of its own."""

    def __init__(self, limits: SlowStepLimits) -> None:
        self._limits = limits
        self._slow_s: deque[float] = deque(maxlen=limits.count)
        """When the last slow steps ended."""
        self._traced_s: float | None = None
        self.total = 0

    def expects_trace(self, now_s: float) -> bool:
        """Whether the next step would leave a trace if it were slow."""
        if self._traced_s is not None and now_s - self._traced_s < self._limits.window_s:
            return False
        recent = sum(now_s - slow_s < self._limits.window_s for slow_s in self._slow_s)
        return recent >= self._limits.count - 1

    def note(self, took_s: float, now_s: float) -> bool:
        """A step has ended now; whether it leaves a trace."""
        if took_s <= self._limits.threshold_s:
            return False
        leaves_trace = self.expects_trace(now_s)
        self.total += 1
        self._slow_s.append(now_s)
        if leaves_trace:
            self._traced_s = now_s
        return leaves_trace


class SlowStepTrace:
    """Watches steps as they are played, and writes `slow_step_trace_TIME.log`."""

    def __init__(
        self,
        limits: SlowStepLimits,
        folder: Path,
        *,
        who: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._judge = SlowStepJudge(limits)
        self._limits = limits
        self._folder = folder
        self._who = who
        self._clock = clock
        # Without a name: it becomes a file of the run only when a step was slow.
        # Unbuffered: the watchdog writes to the descriptor.
        self._stacks = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - open until `close`

    @property
    def total(self) -> int:
        return self._judge.total

    def watch(self, play: Callable[[], Result]) -> Result:
        """Play one agent step."""
        began_s = self._clock()
        is_armed = self._judge.expects_trace(began_s)
        if is_armed:
            self._arm()
        try:
            result = play()
        finally:
            if is_armed:
                faulthandler.cancel_dump_traceback_later()
        ended_s = self._clock()
        if self._judge.note(ended_s - began_s, ended_s):
            if not is_armed:
                # The window of the last trace ended during this step: its stacks are not ours.
                self._forget()
            self._write(ended_s - began_s)
        return result

    def close(self) -> None:
        self._stacks.close()

    def _forget(self) -> None:
        self._stacks.seek(0)
        self._stacks.truncate()

    def _arm(self) -> None:
        self._forget()
        faulthandler.dump_traceback_later(self._limits.threshold_s, file=self._stacks)

    def _write(self, took_s: float) -> None:
        now = datetime.now(tz=UTC)
        path = self._folder / f"slow_step_trace_{now:%Y%m%dT%H%M%S_%f}.log"
        head = f"{self._who}: an agent step took {took_s:.3f} s, slow steps so far: {self.total}\n"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666)
            with os.fdopen(descriptor, "wb") as file:
                file.write(head.encode() + self._taken())
        except OSError as error:
            log.warning("[actor] slow steps, but no trace of them", extra={"error": str(error)})
            return
        log.warning("[actor] slow steps", extra={"took_s": round(took_s, 3), "trace": path})

    def _taken(self) -> bytes:
        """The stacks of the slow step; those of now where it was over just before the watchdog."""
        if self._stacks.seek(0, os.SEEK_END) == 0:
            faulthandler.dump_traceback(self._stacks)
        self._stacks.seek(0)
        return self._stacks.read()
