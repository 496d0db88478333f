"""Installed with the native core where there is a compiler, and without it elsewhere."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.processes import ROOT

pytestmark = pytest.mark.integration

NO_COMPILER = {"CC": "/bin/false", "CXX": "/bin/false"}


def copy_sources(folder: Path) -> Path:
    """All that the package is made of. Apart, because a build writes beside its sources."""
    source = folder / "source"
    names = ["pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE"]
    for package in ("actor", "common", "launch", "learner", "replay_server"):
        names += [str(path.relative_to(ROOT)) for path in (ROOT / package).rglob("*.*")]
    for name in names:
        if (ROOT / name).is_file() and not name.endswith((".pyc", ".so")):
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, source / name)
    return source


def python(*words: str, folder: Path, env: Mapping[str, str] | None = None) -> str:
    """The output of a command that must succeed."""
    result = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env={**os.environ, **(env or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=110,
    )
    assert result.returncode == 0, result.stdout
    return result.stdout


def install(source: Path, target: Path, env: Mapping[str, str] | None = None) -> str:
    """Into a folder of its own, without a download: torch brings setuptools."""
    options = ("--no-deps", "--no-build-isolation", "--disable-pip-version-check", "-v")
    return python(
        *("-m", "pip", "install", *options, "--target", str(target), "."), folder=source, env=env
    )


def build(kind: str, source: Path, env: Mapping[str, str] | None = None) -> Path:
    """What pip asks of setuptools, without installing it; the folder of the result."""
    program = f"from setuptools import build_meta; build_meta.build_{kind}('out')"
    (source / "out").mkdir()
    python("-c", program, folder=source, env=env)
    return source / "out"


def built_cores(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "actor/env/native").glob("_console*.so"))


def play_on(target: Path, core: str) -> str:
    """Which core is chosen where the package was installed."""
    program = f"from actor.env.core_choice import choose_core; print(choose_core({core!r}).name)"
    return python("-c", program, folder=target, env={"PYTHONPATH": str(target)}).strip()


def test_without_a_compiler_all_but_the_native_core_is_installed(tmp_path: Path) -> None:
    target = tmp_path / "target"

    output = install(copy_sources(tmp_path), target, NO_COMPILER)

    assert 'building extension "actor.env.native._console" failed' in output
    assert built_cores(target) == []
    assert (target / "launch/presets/laptop.toml").exists()
    for name in ("index.html", "style.css", "js/app.js", "vendor/uplot/uPlot.esm.js"):
        assert (target / "launch/control_room/assets" / name).exists()
    assert play_on(target, "auto") == "nes_py"


@pytest.mark.nightly
def test_with_a_compiler_one_file_serves_all_pythons(tmp_path: Path) -> None:
    source, target = copy_sources(tmp_path), tmp_path / "target"

    install(source, target)

    assert built_cores(target) == ["_console.abi3.so"]
    assert list((target / "actor/env/native").glob("*.?pp")) == []
    assert play_on(target, "auto") == "native"
    assert built_cores(source) == []


def test_a_failed_build_leaves_no_outdated_core_in_place(tmp_path: Path) -> None:
    source = copy_sources(tmp_path)
    outdated = source / "actor/env/native/_console.abi3.so"
    outdated.write_bytes(b"of an earlier version")

    build("editable", source, NO_COMPILER)

    assert built_cores(source) == []


def test_the_source_archive_holds_what_the_build_needs(tmp_path: Path) -> None:
    made = build("sdist", copy_sources(tmp_path))

    with tarfile.open(next(made.glob("*.tar.gz"))) as archive:
        packed = {Path(name).name for name in archive.getnames() if "/native/" in name}

    needed = {path.name for path in (ROOT / "actor/env/native").glob("*.?pp")}
    assert needed | {"_console.pyi", "__init__.py"} <= packed
