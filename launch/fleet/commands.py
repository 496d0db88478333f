"""Commands to a driver that runs on this machine: how it is, more or fewer actors, the end."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from typing import Any

from rich.console import Console

from common.errors import ConfigError, ExitCode, MarioError
from common.file_lock import lock_holder
from common.run_paths import RunPaths
from launch.fleet.desk import Desk
from launch.fleet.orders import Plain
from launch.tables import make_table

ANSWER_DEADLINE_S = 15.0
STOP_DEADLINE_S = 150.0
GLANCE_S = 0.1
COLUMNS = ("node", "address", "cores", "actors", "running", "restarts", "problem")


def show_status(paths: RunPaths, console: Console) -> ExitCode:
    status = _status(paths)
    nodes: Any = status["nodes"]
    rows = [tuple(str(node[name]) for name in COLUMNS) for node in nodes]
    table = make_table(COLUMNS, rows, texts=("node", "address", "problem"))
    console.print(f"{status['actors']} actors on {len(rows)} nodes", highlight=False)
    console.print(table)
    return ExitCode.DONE


def scale(paths: RunPaths, actors: int, console: Console) -> ExitCode:
    status: Any = _status(paths)
    least, most = status["least"], status["most"]
    if actors < least:
        raise ConfigError(f"{actors} actors are fewer than --min-actors {least} of this run")
    if most is not None and actors > most:
        raise ConfigError(f"{actors} actors: the servers can open files for {most} at most")
    Desk(paths).wish_actors(actors)
    _wait(lambda: _status(paths)["wanted"] == actors, "the driver does not answer")
    placed = _status(paths)["actors"]
    console.print(f"{actors} actors are wanted now, {placed} have a place", highlight=False)
    return ExitCode.DONE


def stop_run(paths: RunPaths, console: Console) -> ExitCode:
    """As Ctrl-C at the driver's terminal."""
    _status(paths)
    holder = lock_holder(paths.lock)
    if holder is None or not holder.isdigit():
        raise ConfigError(f"no launcher holds {paths.root}")
    os.kill(int(holder), signal.SIGTERM)
    _wait(lambda: lock_holder(paths.lock) is None, "the run has not ended yet", STOP_DEADLINE_S)
    console.print(f"stopped; results: {paths.root}", markup=False, highlight=False)
    return ExitCode.DONE


def _status(paths: RunPaths) -> Plain:
    status = Desk(paths).status() if lock_holder(paths.lock) is not None else None
    if status is None:
        raise ConfigError(
            f"no cluster.py runs {paths.root} on this machine; give --run and --runs-dir, "
            "or the --config that it was started with"
        )
    return status


def _wait(
    condition: Callable[[], bool], problem: str, deadline_s: float = ANSWER_DEADLINE_S
) -> None:
    end_s = time.monotonic() + deadline_s
    while not condition():
        if time.monotonic() >= end_s:
            raise MarioError(f"{problem} after {deadline_s:.0f} s")
        time.sleep(GLANCE_S)
