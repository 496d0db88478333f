"""The stacks of a process that hangs: asked for by a signal, found in its log, kept apart."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from common.atomic_files import write_atomic

log = logging.getLogger(__name__)

ANSWER_DEADLINE_S = 1.0
MAX_BYTES = 1 << 20
_MARK = "(most recent call first)"


@dataclass(slots=True)
class StackRequest:
    """Made just before the signal is sent; `is_settled` until the answer is whole or overdue."""

    log_file: Path
    asked_s: float
    _begin: int = field(init=False)
    _seen: int = field(init=False)

    def __post_init__(self) -> None:
        self._begin = self._seen = _size(self.log_file)

    def is_settled(self, now_s: float) -> bool:
        """Whole, when it is there and has not grown since the last look."""
        size, before = _size(self.log_file), self._seen
        self._seen = size
        if now_s - self.asked_s >= ANSWER_DEADLINE_S:
            return True
        return size == before and bool(self.stacks())

    def stacks(self) -> str:
        """What the process has answered; empty when it cannot."""
        try:
            with self.log_file.open("rb") as file:
                file.seek(self._begin)
                text = file.read(MAX_BYTES).decode(errors="replace")
        except OSError:
            return ""
        return text if _MARK in text else ""


def keep_stacks(path: Path, words: str, stacks: str) -> Path | None:
    """Where they are now; None when the disk does not take them."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        text = f"{words}\n\n{stacks or 'It did not answer: no stacks.'}\n"
        write_atomic(path, text.encode(errors="replace"))
    except OSError as error:
        log.warning("stacks not written", extra={"path": path, "error": str(error)})
        return None
    return path


def kernel_state(pid: int) -> str:
    """What the kernel says that the process does: stopped, disk-sleep, running, ..."""
    try:
        return str(psutil.Process(pid).status())
    except psutil.Error:
        return "gone"


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
