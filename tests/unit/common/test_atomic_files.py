from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from common.atomic_files import publish_directory, write_atomic, write_synced


def disk_error(*_: object) -> None:
    raise OSError(errno.EIO, "injected")


def test_atomic_write_replaces_the_content(tmp_path: Path) -> None:
    path = tmp_path / "latest"
    write_atomic(path, b"old")

    write_atomic(path, b"new")

    assert path.read_bytes() == b"new"
    assert [entry.name for entry in tmp_path.iterdir()] == ["latest"]


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_failed_write_keeps_the_old_content_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    path = tmp_path / "latest"
    write_atomic(path, b"old")
    monkeypatch.setattr(os, call, disk_error)

    with pytest.raises(OSError, match="injected"):
        write_atomic(path, b"new")

    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["latest"]


def test_file_is_synced_before_the_rename_and_the_folder_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    fsync, replace = os.fsync, os.replace

    def note_fsync(descriptor: int) -> None:
        target = Path(os.readlink(f"/proc/self/fd/{descriptor}"))  # noqa: PTH115 # a descriptor
        calls.append("fsync folder" if target == tmp_path else "fsync file")
        fsync(descriptor)

    def note_replace(source: Path, target: Path) -> None:
        calls.append("rename")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", note_fsync)
    monkeypatch.setattr(os, "replace", note_replace)
    write_atomic(tmp_path / "latest", b"new")

    assert calls == ["fsync file", "rename", "fsync folder"]


def test_synced_write_never_overwrites_nor_follows_a_link(tmp_path: Path) -> None:
    (tmp_path / "victim").write_bytes(b"precious")
    (tmp_path / "link").symlink_to(tmp_path / "victim")

    for name in ("victim", "link"):
        with pytest.raises(FileExistsError):
            write_synced(tmp_path / name, b"x")

    assert (tmp_path / "victim").read_bytes() == b"precious"


def test_published_directory_has_its_name(tmp_path: Path) -> None:
    temporary = tmp_path / ".tmp-x"
    temporary.mkdir()
    write_synced(temporary / "file", b"content")

    publish_directory(temporary, tmp_path / "final")

    assert (tmp_path / "final" / "file").read_bytes() == b"content"
    assert not temporary.exists()
