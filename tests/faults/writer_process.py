"""A writer of `forked_jobs` as tests see it, and strace around its children."""

from __future__ import annotations

import json
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.processes import ROOT
from tests.waiting import wait_until

DEADLINE_S = 40.0
TRACED = ("mkdir", "openat", "write", "fsync", "rename", "unlinkat", "rmdir")
"""Every system call by which files are written and pruned."""


class WriterProcess:
    """One process with torch in it; each job is done by a fork of it."""

    def __init__(self, module: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", module],
            cwd=ROOT,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()
        assert self.hear() == "ready"

    def begin(self, folder: Path, steps: Sequence[int], **options: object) -> int:
        """Give a job; the process id of the child."""
        assert self._process.stdin is not None
        self._process.stdin.write(
            json.dumps({"folder": str(folder), "steps": list(steps), **options}) + "\n"
        )
        self._process.stdin.flush()
        return int(self.hear("pid").split()[1])

    def hear(self, word: str = "") -> str:
        """The next line that begins with the word."""
        while not (line := self._lines.get(timeout=DEADLINE_S)).startswith(word):
            pass
        return line

    def end(self) -> tuple[int, list[str]]:
        """Exit code of the child, minus the signal that killed it, and what it said."""
        said: list[str] = []
        while not (line := self._lines.get(timeout=DEADLINE_S)).startswith("ended"):
            said.append(line)
        return int(line.split()[1]), said

    def close(self) -> None:
        self._process.kill()
        self._process.communicate(timeout=DEADLINE_S)

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line.strip())


@dataclass(frozen=True, slots=True)
class Call:
    """One system call of a log."""

    name: str
    text: str


def can_trace() -> bool:
    """Whether strace is installed and may follow another process here."""
    strace = shutil.which("strace")
    if strace is None:
        return False
    result = subprocess.run(
        [strace, "-o", "/dev/null", "true"], capture_output=True, check=False, timeout=DEADLINE_S
    )
    return result.returncode == 0


def write_traced(
    writer: WriterProcess, folder: Path, steps: int, log: Path, inject: str = ""
) -> tuple[int, list[Call]]:
    """One job under strace; exit code of the child and its system calls."""
    pid = writer.begin(folder, [steps], stopped=True)
    wait_until("the child has stopped", lambda: "(stopped)" in _status(pid), DEADLINE_S)
    words = ["strace", "-p", str(pid), "-y", "-s", "0", "-o", str(log)]
    words += ["-e", f"trace={','.join(TRACED)}"]
    words += ["-e", f"inject={inject}"] if inject else []
    tracer = subprocess.Popen(words, stderr=subprocess.DEVNULL)
    try:
        wait_until("strace has attached", lambda: _is_traced(pid), DEADLINE_S)
        os.kill(pid, signal.SIGCONT)
        code, _ = writer.end()
    finally:
        tracer.wait(timeout=DEADLINE_S)
    return code, read_calls(log)


def _is_traced(pid: int) -> bool:
    status = _status(pid)
    tracer = re.search(r"TracerPid:\s+(\d+)", status)
    return tracer is not None and tracer[1] != "0" and "stop" in status


def _status(pid: int) -> str:
    return Path(f"/proc/{pid}/status").read_text()


def read_calls(log: Path) -> list[Call]:
    lines = (line for line in log.read_text().splitlines() if "(" in line)
    return [
        Call(line.partition("(")[0], line) for line in lines if not line.startswith(("---", "+++"))
    ]
