"""Rules of the whole repository that no single module can hold by itself."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("actor", "common", "launch", "learner", "replay_server")
MAX_FILE_LINES = 400
MAX_MAIN_LINES = 40


def sources(*packages: str) -> Iterator[Path]:
    for package in packages:
        yield from sorted((ROOT / package).rglob("*.py"))


def imported_packages(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names.add(node.module.partition(".")[0])
    return names


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_import_only_common_and_themselves(package: str) -> None:
    allowed = {package, "common"}

    wrong = {
        str(path.relative_to(ROOT)): sorted(imported_packages(path) & set(PACKAGES) - allowed)
        for path in sources(package)
        if imported_packages(path) & set(PACKAGES) - allowed
    }

    assert wrong == {}


def test_only_the_transport_uses_zmq_and_only_nes_core_uses_nes_py() -> None:
    users = {
        module: {
            str(path.relative_to(ROOT))
            for path in sources(*PACKAGES)
            if module in imported_packages(path)
        }
        for module in ("zmq", "nes_py")
    }

    assert {name for name in users["zmq"] if not name.startswith("common/transport")} == set()
    assert users["nes_py"] <= {"actor/env/nes_core.py"}


def test_files_stay_small() -> None:
    lengths = {
        str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines())
        for path in sources(*PACKAGES, "tests")
    }

    assert {name: n for name, n in lengths.items() if n > MAX_FILE_LINES} == {}


def test_mains_are_parts_lists() -> None:
    long = {}
    for path in sources(*PACKAGES):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name == "main" and node.end_lineno:
                length = node.end_lineno - node.lineno + 1
                if length >= MAX_MAIN_LINES:
                    long[str(path)] = length

    assert long == {}


def test_every_package_is_listed_for_installation() -> None:
    listed = (ROOT / "pyproject.toml").read_text(encoding="utf-8")

    folders = {
        str(path.parent.relative_to(ROOT)).replace("/", ".")
        for path in sources(*PACKAGES)
        if path.name == "__init__.py"
    }

    assert {name for name in folders if f'"{name}"' not in listed} == set()


@pytest.mark.slow
@pytest.mark.parametrize(
    "command", [["ruff", "check", "."], ["ruff", "format", "--check", "."], ["mypy"]]
)
def test_the_linters_are_content(command: list[str]) -> None:
    result = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert result.returncode == 0, result.stdout + result.stderr
