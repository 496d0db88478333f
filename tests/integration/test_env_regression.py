"""The command that a person runs, with real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from common.jsonl import read_jsonl
from tests.waiting import wait_until

pytestmark = pytest.mark.integration

_ROOT = Path(__file__).parents[2]


def _command(output: Path, *flags: str) -> list[str]:
    module = [sys.executable, "-m", "launch.env_regression"]
    return [*module, "--output", str(output), *flags]


def _run(output: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        _command(output, *flags),
        cwd=_ROOT,
        timeout=100,
        check=False,
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("mode", ["serial", "concurrent"])
def test_every_trial_is_reported(tmp_path: Path, mode: str) -> None:
    output = tmp_path / "report.jsonl"

    ended = _run(output, "--mode", mode, "--trials", "2", "--envs", "2", "--game", "corridor")

    assert ended.returncode == 0, ended.stderr
    assert f"{mode}: 2 trials, 4 of 4 environments built, 0 timeouts" in ended.stdout
    records = list(read_jsonl(output))
    assert [record["trial"] for record in records] == [0, 1]
    assert all(record["ok"] and record["mode"] == mode for record in records)


@pytest.mark.parametrize("core", ["nes_py", "native"])
def test_mario_is_built_beside_himself(tmp_path: Path, core: str) -> None:
    output = tmp_path / "report.jsonl"

    ended = _run(output, "--mode", "concurrent", "--trials", "1", "--envs", "2", "--core", core)

    assert ended.returncode == 0, ended.stdout
    assert "2 of 2 environments built" in ended.stdout
    assert next(read_jsonl(output))["core"] == core


def test_a_trial_that_takes_too_long_fails_the_command(tmp_path: Path) -> None:
    output = tmp_path / "report.jsonl"

    ended = _run(output, "--trials", "1", "--envs", "1", "--timeout-s", "0.05")

    assert ended.returncode == 1
    assert "1 timeouts" in ended.stdout
    assert next(read_jsonl(output))["timeouts"] == 1


@pytest.mark.parametrize("flags", [("--envs", "0"), ("--stage", "9-9"), ("--timeout-s", "-1")])
def test_wrong_settings_end_with_two(tmp_path: Path, flags: tuple[str, str]) -> None:
    ended = _run(tmp_path / "report.jsonl", *flags)

    assert ended.returncode == 2
    assert flags[0].lstrip("-") in ended.stderr
    assert not (tmp_path / "report.jsonl").exists()


@pytest.mark.parametrize(("number", "exit_code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_leaves_no_process_behind(
    tmp_path: Path, number: signal.Signals, exit_code: int
) -> None:
    command = _command(tmp_path / "report.jsonl", "--trials", "99", "--envs", "2")
    with subprocess.Popen(command, cwd=_ROOT, stdout=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 30
        while not (children := psutil.Process(process.pid).children(recursive=True)):
            assert time.monotonic() < deadline
            time.sleep(0.05)

        os.kill(process.pid, number)

        assert process.wait(timeout=20) == exit_code
    wait_until("no child left", lambda: not any(_is_alive(child) for child in children), 10)


def _is_alive(process: psutil.Process) -> bool:
    """A zombie is not: it waits for whoever adopted it, not for us."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
