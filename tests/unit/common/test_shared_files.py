from __future__ import annotations

from pathlib import Path

import pytest

from common import shared_files
from common.errors import BadMessage
from common.field_checks import field_checkers
from common.messages import SampleRequest
from common.run_paths import RunPaths
from common.shared_files import remove_shared, shared_path, shared_prefix, shared_root


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
