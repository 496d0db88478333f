"""Setting up on a machine that lacks something: one sentence that says what to install."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.processes import ROOT

pytestmark = pytest.mark.integration

TOOLS = ("sh", "grep", "tail", "touch", "dirname", "env")


def set_up(python: str, folder: Path, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "launch/setup.sh", python, str(folder / "venv"), "."],
        cwd=ROOT,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )


def bare_path(folder: Path, *more: str) -> str:
    """A PATH with the tools that any machine has, and nothing that compiles."""
    bin_folder = folder / "bin"
    bin_folder.mkdir()
    for tool in (*TOOLS, *more):
        found = shutil.which(tool)
        assert found is not None, tool
        (bin_folder / tool).symlink_to(found)
    return str(bin_folder)


def assert_one_sentence(result: subprocess.CompletedProcess[str], *words: str) -> None:
    assert result.returncode == 2
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1, result.stderr
    for word in words:
        assert word in lines[0]


def test_python_is_missing(tmp_path: Path) -> None:
    result = set_up("python9.9", tmp_path, {})

    assert_one_sentence(result, "'python9.9' was not found", "install Python 3.11")


def test_python_is_too_old(tmp_path: Path) -> None:
    old = tmp_path / "python3"
    old.write_text('#!/bin/sh\n[ "$1" = --version ] && echo "Python 3.9.2" && exit 0\nexit 1\n')
    old.chmod(0o755)

    result = set_up(str(old), tmp_path, {})

    assert_one_sentence(result, "Python 3.9.2 is too old", "install Python 3.11")


def test_there_is_no_compiler(tmp_path: Path) -> None:
    result = set_up(sys.executable, tmp_path, {"PATH": bare_path(tmp_path), "CXX": "no-such"})

    assert_one_sentence(result, "no C++ compiler", "g++")


@pytest.mark.slow
def test_the_machine_is_offline(tmp_path: Path) -> None:
    nowhere = {
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_INDEX_URL": "http://127.0.0.1:9/simple",
        "PIP_FIND_LINKS": str(tmp_path),
        "PIP_RETRIES": "0",
        "PIP_DEFAULT_TIMEOUT": "1",
    }

    result = set_up(sys.executable, tmp_path, nowhere)

    assert_one_sentence(result, "could not be downloaded", "connect to the internet")


def test_make_passes_flags_on() -> None:
    command = subprocess.check_output(
        ["make", "-n", "train", "ARGS=--max-minutes 3 --run first"], cwd=ROOT, text=True
    )

    assert "launch/local.py --preset laptop --max-minutes 3 --run first" in command
    assert "MARIO_ALLOW_CPU_AUTO" in command
