"""Does jobs in forked children that are about to be killed; torch is loaded once.

A JSON line on standard input is a job: `folder`, `steps`, and perhaps `stopped` (the child stops
itself, so that it can be traced) or `kill_at` (it kills itself at that call that changes the disk).
Answers: `pid N`, `saved STEPS` after each of several, `calls N`, `ended CODE`.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

CALLS = ("mkdir", "open", "fsync", "rename", "replace", "unlink", "rmdir")
NOT_SAVED = 3

Save = Callable[[int], bool]
"""Writes what belongs to these agent steps; whether it was written."""
OpenFolder = Callable[[Path], Save]


def serve(open_folder: OpenFolder) -> None:
    say("ready")
    for line in sys.stdin:
        job = json.loads(line)
        child = os.fork()
        if child == 0:
            os._exit(work(open_folder, job))
        say(f"pid {child}")
        _, status = os.waitpid(child, 0)
        say(f"ended {os.waitstatus_to_exitcode(status)}")


def work(open_folder: OpenFolder, job: dict[str, Any]) -> int:
    save = open_folder(Path(job["folder"]))
    if job.get("stopped"):
        signal.raise_signal(signal.SIGSTOP)
    calls = count_calls(job.get("kill_at", 0))
    steps: Sequence[int] = job["steps"]
    for number in steps:
        if not save(number):
            return NOT_SAVED
        if len(steps) > 1:
            say(f"saved {number}")
    if "kill_at" in job:
        say(f"calls {calls()}")
    return 0


def count_calls(kill_at: int) -> Callable[[], int]:
    """Number the calls that change the disk; the process dies at the one with this number."""
    count = 0

    def numbered(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal count
            count += 1
            if count == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)
            return original(*args, **kwargs)

        return call

    for name in CALLS:
        setattr(os, name, numbered(getattr(os, name)))
    return lambda: count


def say(line: str) -> None:
    os.write(sys.stdout.fileno(), f"{line}\n".encode())
