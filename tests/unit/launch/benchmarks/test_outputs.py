from __future__ import annotations

from pathlib import Path

import pytest

from launch.benchmarks.outputs import require_folder, require_picture


def test_a_folder_that_is_not_there_is_made_and_left_empty(tmp_path: Path) -> None:
    require_folder(tmp_path / "new" / "deeper")

    assert list((tmp_path / "new" / "deeper").iterdir()) == []


def test_an_older_picture_stays_until_there_is_a_new_one(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "shares.png"
    picture.write_bytes(b"old")

    require_picture(picture)

    assert picture.read_bytes() == b"old"


def test_a_picture_that_is_not_there_yet_is_not_made(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")

    require_picture(tmp_path / "new" / "shares.svg")

    assert list((tmp_path / "new").iterdir()) == []
