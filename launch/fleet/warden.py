"""The Ray actor of one node: passes orders to the supervisor process there, brings files home.

Plain values in, plain values out. It does not import Ray, so that tests can use it as it is.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import IO

from common.errors import MarioError
from common.lifecycle import PARENT_PID_VARIABLE
from launch.fleet.gathering import Marks, Pieces, read_pieces
from launch.fleet.orders import Plain, Report, from_line, require_plain, to_line

ANSWER_DEADLINE_S = 120.0
"""Longer than any stop: a replay server may save gigabytes."""
READ_BYTES = 65_536
CODE = Path(__file__).resolve().parents[2]
SUPERVISOR = (sys.executable, "-m", "launch.fleet.node_supervisor")


class Warden:
    """A supervisor that ends is started again, and then asks for its beginning."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._turn = 0

    def tend(self, orders: Plain) -> Plain:
        """A report; that of a node that has not begun when the supervisor is gone."""
        require_plain(orders)
        process = self._process or self._start()
        # One that has ended is told of before there is another: ends are counted at home.
        if process.poll() is None:
            with contextlib.suppress(OSError, EOFError):
                return _exchange(process, to_line(orders))
        self._end(process)
        news = "the supervisor of a node is gone and is started again"
        return Report(is_lost=True, news=[news]).to_plain()

    def read_files(self, root: str, marks: Marks, is_last: bool) -> Pieces:
        self._turn += 1
        folder = Path(root).expanduser()
        return read_pieces(folder, marks, turn=self._turn, is_last=is_last)

    def remove_files(self, root: str) -> None:
        """The folder of the run on this node, when everything of it is at home."""
        shutil.rmtree(Path(root).expanduser().parent, ignore_errors=True)

    def close(self) -> None:
        if self._process is not None:
            self._end(self._process)

    def _start(self) -> subprocess.Popen[bytes]:
        self._process = subprocess.Popen(
            SUPERVISOR,
            cwd=CODE,
            env=_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            process_group=0,
        )
        return self._process

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        """At the end of its orders it stops everything and goes."""
        self._process = None
        for pipe in (process.stdin, process.stdout):
            # What could not be written is still in the buffer, and closing writes it again.
            with contextlib.suppress(OSError):
                if pipe is not None:
                    pipe.close()
        try:
            process.wait(ANSWER_DEADLINE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _environment() -> dict[str, str]:
    """Nothing of Ray's: its token is not for our programs."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    return {**kept, PARENT_PID_VARIABLE: str(os.getpid()), "PYTHONUNBUFFERED": "1"}


def _exchange(process: subprocess.Popen[bytes], line: bytes) -> Plain:
    if process.stdin is None or process.stdout is None:
        raise MarioError("the supervisor was started without pipes")
    process.stdin.write(line)
    process.stdin.flush()
    return from_line(_read_line(process.stdout, time.monotonic() + ANSWER_DEADLINE_S))


def _read_line(pipe: IO[bytes], end_s: float) -> bytes:
    """One answer, which is all that is on the way: the next comes only after the next order."""
    answer = b""
    while not answer.endswith(b"\n"):
        ready, _, _ = select.select([pipe], [], [], max(end_s - time.monotonic(), 0.0))
        chunk = os.read(pipe.fileno(), READ_BYTES) if ready else b""
        if not chunk:
            raise EOFError("the supervisor does not answer")
        answer += chunk
    return answer
