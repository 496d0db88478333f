"""How real processes end: by signals, by a second signal, and when their parent is gone."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from common.lifecycle import ECHO_S, PARENT_PID_VARIABLE

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parent.parent.parent
DEADLINE_S = 10

PATIENT = """
import sys, time
from common.lifecycle import StopFlag
stop = StopFlag.on_signals()
stop.on_second_signal = lambda: print("second signal", flush=True)
print("ready", flush=True)
while not stop.is_set():
    time.sleep(0.01)
print("stopping", flush=True)
time.sleep({linger_s})
print("stopped", flush=True)
sys.exit(stop.exit_code)
"""

COMPONENT = """
import sys, time
from common.component import run_component
from common.lifecycle import StopFlag, run_program

class Ticking:
    is_done = False
    def waits_for(self):
        return None
    def tick(self):
        time.sleep(0.02)
        return True
    def finish(self, deadline_s):
        print("finished", flush=True)
    def close(self):
        print("closed", flush=True)

stop = StopFlag.on_signals()
print("ready", flush=True)
sys.exit(run_program("test", lambda: run_component(Ticking(), stop, finish_deadline_s=1.0)))
"""

PARENT = """
import os, subprocess, sys, time
environment = dict(os.environ, {variable}=str(os.getpid()))
subprocess.Popen([sys.executable, "-c", {child!r}], env=environment)
time.sleep(60)
"""


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[str]]]:
    """Processes that are surely gone after the test."""
    processes: list[subprocess.Popen[str]] = []
    yield processes
    for process in processes:
        process.kill()
        process.communicate(timeout=DEADLINE_S)


def start(
    code: str, started: list[subprocess.Popen[str]], *, has_launcher: bool = False
) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment.pop(PARENT_PID_VARIABLE, None)
    if has_launcher:
        environment[PARENT_PID_VARIABLE] = str(os.getpid())
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    started.append(process)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def tell_to_stop(process: subprocess.Popen[str], number: signal.Signals) -> None:
    """Returns when it has begun to."""
    process.send_signal(number)
    assert process.stdout is not None
    assert process.stdout.readline() == "stopping\n"


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 143)],
)
def test_a_signal_lets_the_process_finish_with_its_code(
    number: signal.Signals, code: int, started: list[subprocess.Popen[str]]
) -> None:
    process = start(PATIENT.format(linger_s=0), started)

    process.send_signal(number)
    output, errors = process.communicate(timeout=DEADLINE_S)

    assert process.returncode == code
    assert output == "stopping\nstopped\n"
    assert errors == ""


def test_a_second_signal_ends_at_once_with_the_code_of_the_first(
    started: list[subprocess.Popen[str]],
) -> None:
    process = start(PATIENT.format(linger_s=60), started)
    tell_to_stop(process, signal.SIGINT)
    time.sleep(2 * ECHO_S)

    started_s = time.monotonic()
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=DEADLINE_S)

    assert time.monotonic() - started_s < 2
    assert output == "second signal\n"
    assert process.returncode == 130


def test_a_signal_to_the_process_and_then_to_its_group_is_one(
    started: list[subprocess.Popen[str]],
) -> None:
    process = start(PATIENT.format(linger_s=0.5), started)

    tell_to_stop(process, signal.SIGTERM)
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=DEADLINE_S)

    assert output == "stopped\n"
    assert process.returncode == 143


def test_whoever_has_a_launcher_goes_on_saving_whatever_others_send(
    started: list[subprocess.Popen[str]],
) -> None:
    process = start(PATIENT.format(linger_s=1.0), started, has_launcher=True)
    tell_to_stop(process, signal.SIGTERM)

    time.sleep(2 * ECHO_S)
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=DEADLINE_S)

    assert output == "stopped\n"
    assert process.returncode == 143


def test_sigusr1_dumps_the_stacks_and_the_process_goes_on(
    started: list[subprocess.Popen[str]],
) -> None:
    process = start(PATIENT.format(linger_s=0), started)
    assert process.stderr is not None

    process.send_signal(signal.SIGUSR1)
    first_line = process.stderr.readline()
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=DEADLINE_S)

    assert "most recent call first" in first_line
    assert process.returncode == 143


def test_a_program_finishes_and_closes_on_a_signal(started: list[subprocess.Popen[str]]) -> None:
    process = start(COMPONENT, started)

    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=DEADLINE_S)

    assert output == "finished\nclosed\n"
    assert process.returncode == 143


def test_a_program_whose_parent_is_killed_stops_by_itself(
    started: list[subprocess.Popen[str]],
) -> None:
    parent = start(PARENT.format(variable=PARENT_PID_VARIABLE, child=COMPONENT), started)

    parent.kill()
    # The pipe ends when the child, its last holder, has ended.
    output, _ = parent.communicate(timeout=DEADLINE_S)

    assert output == "finished\nclosed\n"


def test_a_program_whose_parent_lives_goes_on(started: list[subprocess.Popen[str]]) -> None:
    parent = start(PARENT.format(variable=PARENT_PID_VARIABLE, child=COMPONENT), started)
    assert parent.stdout is not None

    readable, _, _ = select.select([parent.stdout], [], [], 0.3)

    assert readable == []
