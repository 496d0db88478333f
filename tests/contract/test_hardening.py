"""The hardened unit of docs/operations.md: systemd takes it, and the launcher its flags."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from launch.options import LocalArgs, parse_local

ROOT = Path(__file__).resolve().parents[2]
INSTALLED = "/opt/warpzone"
MAX_RUNTIME_DEPENDENCIES = 15


def hardening() -> str:
    text = (ROOT / "docs/operations.md").read_text(encoding="utf-8")
    return text.partition("\n## Hardening\n")[2].partition("\n## ")[0]


def fenced(kind: str) -> str:
    found = re.search(rf"```{kind}\n(.*?)```", hardening(), re.DOTALL)
    assert found is not None
    return found[1]


def parsed(command: str) -> LocalArgs:
    return parse_local(shlex.split(command.partition("launch/local.py")[2]))


def test_systemd_finds_no_fault_with_the_unit(tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd-analyze is not installed")
    unit = tmp_path / "warpzone.service"
    # It looks for what is started.
    text = fenced("ini").replace(f"{INSTALLED}/.venv/bin/python", sys.executable)
    unit.write_text(text.replace(INSTALLED, str(ROOT)), encoding="utf-8")

    words = [analyze, "verify", "--recursive-errors=no", "--man=no", str(unit)]
    result = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)

    assert (result.returncode, result.stderr) == (0, "")


def test_the_launcher_takes_the_flags_of_unit_and_container() -> None:
    (started,) = re.findall(r"^ExecStart=(.*)$", fenced("ini"), re.MULTILINE)
    contained = fenced("sh").replace("\\\n", " ")

    assert parsed(started).settings.run.runs_dir == "/var/lib/warpzone"
    assert parsed(contained).settings.run.runs_dir == "/runs"


def test_fewer_than_fifteen_packages_are_needed_at_run_time() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    assert len(project["dependencies"]) < MAX_RUNTIME_DEPENDENCIES


def test_every_package_that_is_needed_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    names = {re.split(r"[\[<>=~! ]", entry)[0] for group in groups for entry in group}
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8")

    pinned = {name.replace("_", "-") for name in re.findall(r"^([\w-]+)==", pins, re.MULTILINE)}

    assert names - {project["name"]} <= pinned
