"""Processor time by program."""

import os
import subprocess
import sys
import time

import psutil
import pytest

from launch.benchmarks.processor import cores_between, program_of, worked

DEADLINE_S = 20.0
BUSY = "import time\nwhile True: time.process_time()"


@pytest.mark.parametrize(
    ("words", "program"),
    [
        (["/v/bin/python", "-m", "actor", "--config", "c.toml"], "actor"),
        (["/v/bin/python", "-u", "-m", "launch.local"], "launch.local"),
        (["/v/bin/python", "-u", "/ray/log_monitor.py", "--x"], "log_monitor.py"),
        (["ray::Warden.tend"], "ray::Warden"),
        (["ray::IDLE"], "ray::IDLE"),
        (["/ray/raylet/raylet", "--port=1"], "raylet"),
        (["/v/bin/python", "-m"], "python"),
        ([], "python"),
    ],
)
def test_a_process_is_named_by_its_program(words: list[str], program: str) -> None:
    name = "raylet" if program == "raylet" else "python"
    assert program_of(words, name) == program


def test_processes_of_one_program_are_added_up() -> None:
    before = {(1, "actor"): 1.0, (2, "actor"): 5.0, (3, "learner"): 2.0, (4, "gone"): 9.0}
    after = {(1, "actor"): 2.0, (2, "actor"): 5.5, (3, "learner"): 4.0, (5, "actor"): 0.5}
    assert cores_between(before, after, 2.0) == {"actor": 1.0, "learner": 1.0}


def test_a_busy_child_is_seen_and_told_by_its_program() -> None:
    child = subprocess.Popen([sys.executable, "-c", BUSY])
    try:
        key = (child.pid, psutil.Process(child.pid).name())
        end_s = time.monotonic() + DEADLINE_S
        while worked(os.getpid()).get(key, 0.0) < 0.1:
            assert time.monotonic() < end_s
            time.sleep(0.02)
    finally:
        child.kill()
        child.wait()
    assert all(pid != child.pid for pid, _ in worked(os.getpid()))
