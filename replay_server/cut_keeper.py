"""Writes cuts beside the server's work, one at a time, and remembers how it went."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from common.messages import Scalar
from replay_server.cut import Cut
from replay_server.pages import PageOverwritten

log = logging.getLogger(__name__)


class CutWriter(Protocol):
    def write(self, cut: Cut) -> object: ...


@dataclass(slots=True)
class CutCounts:
    written: int = 0
    failed: int = 0
    """The disk refused, or the buffer turned over faster than the disk could take it."""
    passed_over: int = 0
    """Asked for while another was being written."""
    newest_agent_steps: int = 0
    last_write_s: float = 0.0
    longest_pause_s: float = 0.0
    """That the server could not serve because a cut was taken."""
    last_error: str | None = None


class CutKeeper:
    """`keep` returns at once; with `in_background=False` when the cut is on the disk."""

    def __init__(self, writer: CutWriter, *, in_background: bool = True) -> None:
        self._writer = writer
        self._in_background = in_background
        self._thread: threading.Thread | None = None
        self.counts = CutCounts()

    @property
    def is_busy(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def keep(self, take: Callable[[], Cut]) -> None:
        """`take` is called only when the cut will be written."""
        if self.is_busy:
            self.counts.passed_over += 1
            log.warning("no cut of the replay: the last one is still being written")
            return
        began_s = time.monotonic()
        cut = take()
        pause_s = time.monotonic() - began_s
        self.counts.longest_pause_s = max(self.counts.longest_pause_s, pause_s)
        if not self._in_background:
            self._write(cut)
            return
        self._thread = threading.Thread(target=self._write, args=(cut,), name="cut", daemon=True)
        self._thread.start()

    def finish(self, deadline_s: float) -> None:
        """Let the cut that is being written come to its end."""
        if self._thread is not None:
            self._thread.join(deadline_s)
            if self._thread.is_alive():
                log.error("the last cut of the replay was not finished in time")

    def metrics(self) -> dict[str, Scalar]:
        counts = self.counts
        return {
            "replay_cuts_total": counts.written,
            "replay_cuts_failed_total": counts.failed + counts.passed_over,
            "replay_cut_agent_steps": counts.newest_agent_steps,
            "replay_cut_time_s": round(counts.last_write_s, 3),
            "replay_cut_pause_ms": round(1000 * counts.longest_pause_s, 3),
        }

    def _write(self, cut: Cut) -> None:
        began_s = time.monotonic()
        try:
            self._writer.write(cut)
        except (OSError, PageOverwritten) as error:
            self.counts.failed += 1
            self.counts.last_error = str(error)
            log.error("cut of the replay not written", extra={"error": str(error)})
            return
        self.counts.written += 1
        self.counts.last_error = None
        self.counts.newest_agent_steps = cut.agent_steps
        self.counts.last_write_s = time.monotonic() - began_s
        log.info("cut of the replay written", extra={"agent_steps": cut.agent_steps})
