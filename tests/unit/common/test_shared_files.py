from __future__ import annotations

import mmap
import os
import time
from pathlib import Path

import pytest

from common import shared_files
from common.errors import BadMessage
from common.field_checks import field_checkers
from common.messages import SampleRequest
from common.run_paths import RunPaths
from common.shared_files import (
    hold_shared,
    remove_shared,
    shared_path,
    shared_prefix,
    shared_root,
    sweep_shared,
)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(shared_files, "shared_root", lambda: tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "name",
    [
        "",
        "x",
        "../x",
        "warpzone-",
        "warpzone-../x",
        "warpzone-a/b",
        "warpzone-a\0",
        "warpzone-a\n",
        "/etc/passwd",
        "warpzone-" + "x" * 101,
        "Warpzone-a",
    ],
)
def test_names_that_could_be_other_files_are_refused(name: str) -> None:
    with pytest.raises(BadMessage, match="shared_file"):
        shared_path(name)


def test_a_file_lies_directly_in_the_memory_file_system() -> None:
    assert shared_path("warpzone-a").parent == shared_root()


def test_prefixes_of_two_runs_differ_and_fit_the_wire(tmp_path: Path) -> None:
    first, second = (shared_prefix(RunPaths(tmp_path / name)) for name in ("a", "b"))

    assert first != second
    name = f"{first}{2**63}"
    assert field_checkers(SampleRequest)["shared_file"](name) == name
    assert shared_path(name).name == name


def test_only_files_of_the_run_are_removed(root: Path) -> None:
    for name in ("warpzone-a-1", "warpzone-a-2", "warpzone-b-1", "other"):
        (root / name).touch()
    (root / "warpzone-a-folder").mkdir()

    assert remove_shared("warpzone-a-") == 2

    left = {path.name for path in root.iterdir()}
    assert left == {"warpzone-b-1", "other", "warpzone-a-folder"}


def test_removing_nothing_is_fine(root: Path) -> None:
    assert remove_shared("warpzone-a-") == 0
    assert list(root.iterdir()) == []


def left_behind(root: Path, name: str = "warpzone-run-a-1", *, age_s: float = 3600.0) -> Path:
    path = root / name
    path.write_bytes(b"x" * 64)
    then_s = time.time() - age_s
    os.utime(path, (then_s, then_s))
    return path


def test_files_that_nobody_has_mapped_are_swept(root: Path) -> None:
    left_behind(root)
    (root / "warpzone-run-b-1").symlink_to("/dev/null")
    left_behind(root, "warpzone-run-c-1", age_s=0.0)
    left_behind(root, "warpzone-other")

    assert sweep_shared() == 1

    left = {path.name for path in root.iterdir()}
    assert left == {"warpzone-run-b-1", "warpzone-run-c-1", "warpzone-other"}


def test_a_mapped_file_is_not_swept_until_the_mapping_is_gone(root: Path) -> None:
    path = left_behind(root)
    with path.open("r+b") as file:
        hold_shared(file.fileno())
        memory = mmap.mmap(file.fileno(), 0)

    assert sweep_shared() == 0

    memory.close()
    assert sweep_shared() == 1


def test_the_files_of_a_run_are_among_those_that_are_swept(root: Path, tmp_path: Path) -> None:
    left_behind(root, f"{shared_prefix(RunPaths(tmp_path))}1")

    assert sweep_shared() == 1
