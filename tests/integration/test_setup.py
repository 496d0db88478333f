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


STAND_IN_PYTHON = """#!/bin/sh
# Installs nothing; the native core is there if the file next to this says so.
case "$*" in
  *"import actor.env.native._console"*) [ -e "$0.has_native" ] ;;
  *" -v --no-deps "*) echo "g++: command failed" ;;
esac
"""


@pytest.mark.parametrize("has_native", [True, False])
def test_a_core_that_was_not_built_gets_one_line(tmp_path: Path, has_native: bool) -> None:
    stand_in = tmp_path / "venv/bin/python"
    stand_in.parent.mkdir(parents=True)
    stand_in.write_text(STAND_IN_PYTHON)
    stand_in.chmod(0o755)
    if has_native:
        stand_in.with_suffix(".has_native").touch()

    result = set_up(sys.executable, tmp_path, {})

    assert result.returncode == 0, result.stderr
    lines = [line for line in result.stdout.splitlines() if "native core" in line]
    assert len(lines) == (0 if has_native else 1)
    why = "g++: command failed" in (tmp_path / "venv/install.log").read_text()
    assert why is not has_native
    assert (tmp_path / "venv/.installed").exists()


def test_a_changed_source_of_the_native_core_is_built_again(tmp_path: Path) -> None:
    for name in ("Makefile", "pyproject.toml", "constraints.txt", "setup.py", "launch/setup.sh"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy2(ROOT / name, tmp_path / name)
    shutil.copytree(ROOT / "actor/env/native", tmp_path / "actor/env/native")
    stamp = tmp_path / ".venv/.installed"
    stamp.parent.mkdir()
    stamp.touch()

    def plan() -> str:
        return subprocess.check_output(["make", "-n", "setup"], cwd=tmp_path, text=True)

    assert "launch/setup.sh" not in plan()
    for changed in ("machine.cpp", "machine.hpp"):
        later_s = stamp.stat().st_mtime + 10
        os.utime(tmp_path / "actor/env/native" / changed, (later_s, later_s))
        assert "launch/setup.sh" in plan()
        os.utime(stamp, (later_s, later_s))


def test_make_passes_flags_on() -> None:
    command = subprocess.check_output(
        ["make", "-n", "train", "ARGS=--max-minutes 3 --run first"], cwd=ROOT, text=True
    )

    assert "launch/local.py --preset laptop --max-minutes 3 --run first" in command
    assert "MARIO_ALLOW_CPU_AUTO" in command
