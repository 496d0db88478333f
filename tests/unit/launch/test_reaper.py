from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from common.lifecycle import PARENT_PID_VARIABLE
from launch.reaper import children_of, reaper
from tests.processes import ROOT
from tests.waiting import wait_until

SLEEP = (sys.executable, "-c", "import time; print('ready', flush=True); time.sleep(60)")
NOBODY = 2**22 + 1
"""No process has this number."""


@pytest.fixture
def child() -> Iterator[subprocess.Popen[str]]:
    environment = {**os.environ, PARENT_PID_VARIABLE: str(NOBODY)}
    process = subprocess.Popen(SLEEP, env=environment, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    yield process
    process.kill()
    process.communicate(timeout=10)


def test_children_are_known_by_their_environment(child: subprocess.Popen[str]) -> None:
    assert children_of(NOBODY) == [child.pid]
    assert children_of(NOBODY + 1) == []


def test_whoever_they_started_is_theirs_too(child: subprocess.Popen[str]) -> None:
    assert children_of(NOBODY + 1, NOBODY) == [child.pid]


def test_it_ends_with_what_it_guards_and_kills_nobody(child: subprocess.Popen[str]) -> None:
    with reaper():
        pass

    assert child.poll() is None


@pytest.mark.parametrize("word", [b"", b"done"])
def test_only_a_launcher_that_did_not_say_goodbye_is_followed_by_a_kill(
    child: subprocess.Popen[str], word: bytes
) -> None:
    program = "import launch.reaper as r; r.GRACE_S = 0.3; r.main({})"
    subprocess.run(
        [sys.executable, "-c", program.format(NOBODY)],
        input=word,
        cwd=ROOT,
        timeout=20,
        check=True,
    )

    if word:
        assert child.poll() is None
    else:
        wait_until("the child is gone", lambda: child.poll() == -signal.SIGKILL, 10)
