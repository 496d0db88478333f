"""Starting our commands as a user does, with a deadline on every wait."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO

import psutil

from launch.options import without_settings

ROOT = Path(__file__).resolve().parent.parent

CORRIDOR_TOML = """
[run]
device = "cpu"
metrics_interval_s = 0.5

[env]
game = "corridor"
size = 16

[actor]
actors = 2
block_steps = 32
epsilon_warmup_agent_steps = 2000
epsilon_anneal_agent_steps = 8000

[replay]
learning_starts = 500
capacity = 20000
balance_slack_agent_steps = 500

[learner]
batch_size = 32
learning_rate = 1e-3
target_sync_interval_updates = 100
publish_interval_updates = 20
checkpoint_interval_s = 3.0

[evaluation]
evaluators = 0
"""


def write_corridor(folder: Path) -> Path:
    """A preset with which the corridor is mastered in about ten thousand agent steps."""
    path = folder / "corridor.toml"
    path.write_text(CORRIDOR_TOML, encoding="utf-8")
    return path


def start(*words: str, env: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
    """Start `python ...` in the repository with the output in a pipe."""
    return subprocess.Popen(
        [sys.executable, *words],
        cwd=ROOT,
        env={**without_settings(os.environ), "OMP_NUM_THREADS": "1", **(env or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def run(
    *words: str, timeout_s: float = 60, env: Mapping[str, str] | None = None
) -> tuple[int, str]:
    """Exit code and output."""
    process = start(*words, env=env)
    try:
        output, _ = process.communicate(timeout=timeout_s)
    finally:
        end(process)
    return process.returncode, output


def end(process: subprocess.Popen[str]) -> None:
    """Whatever happened: the process is gone and its pipe is closed."""
    process.kill()
    process.wait()
    if process.stdout is not None:
        process.stdout.close()


def address_in(output: IO[str] | None) -> str:
    """The first address of this machine that a program tells."""
    return address_line(output)[0]


def address_line(output: IO[str] | None) -> tuple[str, str]:
    """The same, and the whole line that tells it."""
    for line in output or ():
        if match := re.search(r"http://[^/\s]+:\d+", line):
            return match[0], line
    raise AssertionError("it ended without an address")


def processes_mentioning(text: str) -> list[psutil.Process]:
    """Live processes whose command line holds `text`, this one excluded."""
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        words = process.info["cmdline"] or []
        alive = process.info["status"] != psutil.STATUS_ZOMBIE
        if alive and process.pid != os.getpid() and any(text in word for word in words):
            found.append(process)
    return found
