"""The control room beside a run: a process of its own that ends with the run."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from threading import Event, Thread
from typing import Final

from rich.console import Console

from common.errors import ConfigError
from common.extras import install_command
from common.lifecycle import PARENT_PID_VARIABLE
from common.logs import open_log
from common.run_paths import RunPaths

SOCKET_VARIABLE: Final = "WARPZONE_DASHBOARD_SOCKET"
"""The descriptor of the socket that the launcher has opened: its address is known at once."""
LOW_PRIORITY: Final = 10
"""Whoever looks must not slow down who plays and learns."""
STOP_DEADLINE_S: Final = 3.0
WATCH_INTERVAL_S: Final = 0.5


def require_extra() -> None:
    missing = [name for name in ("fastapi", "uvicorn") if find_spec(name) is None]
    if missing:
        raise ConfigError(
            f"the control room needs {' and '.join(missing)}; run: {install_command('dashboard')}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomPlace:
    """Where a control room answers, and which process it is."""

    port: int
    pid: int


@contextmanager
def room_beside(paths: RunPaths, console: Console) -> Iterator[RoomPlace]:
    """Show all runs of the folder at a free port of this machine while the block goes on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        process = _start(paths, listener)
        port = listener.getsockname()[1]
    address = f"http://127.0.0.1:{port}/#now/{paths.root.name}"
    _tell(console, f"control room: {address}")
    is_ending = Event()
    watch = Thread(target=_tell_if_it_ends, args=(process, paths, console, is_ending), daemon=True)
    watch.start()
    try:
        yield RoomPlace(port=port, pid=process.pid)
    finally:
        is_ending.set()
        watch.join()
        _end(process)


def _tell(console: Console, words: str) -> None:
    console.print(words, markup=False, highlight=False, soft_wrap=True)


def _tell_if_it_ends(
    process: subprocess.Popen[bytes], paths: RunPaths, console: Console, is_ending: Event
) -> None:
    """It may refuse what only it reads, such as a token; whoever opens the address must know."""
    while not is_ending.wait(WATCH_INTERVAL_S):
        code = process.poll()
        if code is None:
            continue
        lines = paths.process_log("control_room-0").read_text("utf-8", "replace").splitlines()
        last = lines[-1] if lines else "it left no word"
        _tell(console, f"control room: ended with code {code}, the run goes on; {last}")
        return


def _start(paths: RunPaths, listener: socket.socket) -> subprocess.Popen[bytes]:
    log_file = paths.process_log("control_room-0")
    log_file.parent.mkdir(parents=True, exist_ok=True)
    given = {
        SOCKET_VARIABLE: str(listener.fileno()),
        PARENT_PID_VARIABLE: str(os.getpid()),
        "PYTHONUNBUFFERED": "1",
    }
    with os.fdopen(open_log(log_file), "ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "launch.dashboard", str(paths.root.parent)],
            env={**os.environ, **given},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=(listener.fileno(),),
            # Ctrl-C in the terminal is not for it: it shows how the run ends.
            process_group=0,
        )


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_DEADLINE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
