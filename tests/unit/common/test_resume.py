from __future__ import annotations

import errno
import hashlib
import logging
import os
from io import BufferedReader
from pathlib import Path
from typing import Any

import pytest

import common.resume
from common.errors import CheckpointCorrupt, CheckpointMissing, ConfigError
from common.resume import find_resume, read_pointer
from tests.checkpoint_factory import damage, write_small_checkpoint


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    path = tmp_path / "runs" / "mine"
    path.mkdir(parents=True)
    return path


def steps_of(run_dir: Path, **options: Path) -> tuple[int, str] | None:
    point = find_resume(run_dir, **options)
    return (point.agent_steps, point.source) if point else None


def test_run_without_checkpoints_starts_afresh(run_dir: Path) -> None:
    assert find_resume(run_dir) is None
    assert find_resume(run_dir, runs_root=run_dir.parent) is None


def test_newest_numbered_is_taken(run_dir: Path) -> None:
    for steps in (9_000, 12_000, 10_000):
        write_small_checkpoint(run_dir / "checkpoints", steps)

    assert steps_of(run_dir) == (12_000, "numbered")


def test_corrupt_one_is_warned_of_once_and_the_one_before_is_used(
    run_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_small_checkpoint(run_dir / "checkpoints", 1)
    damage(write_small_checkpoint(run_dir / "checkpoints", 2))

    with caplog.at_level(logging.WARNING):
        found = steps_of(run_dir)

    assert found == (1, "numbered")
    assert [record.message for record in caplog.records] == ["corrupt checkpoint skipped"]


def test_latest_is_used_when_no_numbered_one_is_valid(run_dir: Path) -> None:
    damage(write_small_checkpoint(run_dir / "checkpoints", 9))
    write_small_checkpoint(run_dir / "checkpoints", 4, name="renamed")
    (run_dir / "checkpoints" / "latest").write_text("renamed\n")

    assert steps_of(run_dir) == (4, "latest")


def test_numbered_wins_over_latest(run_dir: Path) -> None:
    for steps in (1, 2):
        write_small_checkpoint(run_dir / "checkpoints", steps)
    (run_dir / "checkpoints" / "latest").write_text("00000000001\n")

    assert steps_of(run_dir) == (2, "numbered")


@pytest.mark.parametrize(
    "text", ["../00000000004", "/etc", "..", "", "a b", "\x00", "x" * 300, "nowhere"]
)
def test_latest_with_a_bad_name_is_ignored(run_dir: Path, text: str) -> None:
    write_small_checkpoint(run_dir, 4, name="elsewhere")
    (run_dir / "checkpoints").mkdir()
    (run_dir / "checkpoints" / "latest").write_text(text)

    assert find_resume(run_dir) is None


def test_latest_that_is_a_link_is_ignored(run_dir: Path) -> None:
    write_small_checkpoint(run_dir / "checkpoints", 4, name="renamed")
    (run_dir / "pointer").write_text("renamed")
    (run_dir / "checkpoints" / "latest").symlink_to(run_dir / "pointer")

    assert read_pointer(run_dir / "checkpoints", "latest") is None


def test_search_finds_a_moved_checkpoint_of_the_run(run_dir: Path) -> None:
    damage(write_small_checkpoint(run_dir / "checkpoints", 9))
    write_small_checkpoint(run_dir / "backup" / "monday", 6)
    write_small_checkpoint(run_dir / "backup" / "tuesday", 7)

    assert steps_of(run_dir) == (7, "search")


def test_search_below_the_runs_folder_is_for_runs_without_checkpoints(run_dir: Path) -> None:
    write_small_checkpoint(run_dir.parent / "other" / "checkpoints", 8)

    assert steps_of(run_dir) is None
    assert steps_of(run_dir, runs_root=run_dir.parent) == (8, "search")


def test_damage_never_turns_one_run_into_another_nor_into_a_fresh_start(run_dir: Path) -> None:
    write_small_checkpoint(run_dir.parent / "other" / "checkpoints", 8)
    damage(write_small_checkpoint(run_dir / "checkpoints", 1))
    damage(write_small_checkpoint(run_dir / "checkpoints", 2))

    with pytest.raises(CheckpointCorrupt, match="got 2 corrupt"):
        find_resume(run_dir, runs_root=run_dir.parent)
    assert issubclass(CheckpointCorrupt, ConfigError)


def test_search_follows_no_links_and_enters_no_temporary_folder(run_dir: Path) -> None:
    outside = write_small_checkpoint(run_dir.parent.parent / "outside", 5).parent
    (run_dir / "link").symlink_to(outside)
    write_small_checkpoint(run_dir / "checkpoints" / ".tmp-checkpoint-x-1-a", 6)
    (run_dir / "00000000007").symlink_to(outside / "00000000005")

    assert find_resume(run_dir) is None


def test_saved_replays_are_not_taken_for_checkpoints(run_dir: Path) -> None:
    cut = run_dir / "replay" / "cuts" / "00000000009"
    cut.mkdir(parents=True)
    (cut / "manifest.json").write_text("{}")

    assert find_resume(run_dir) is None
    write_small_checkpoint(run_dir / "backup", 6)
    point = find_resume(run_dir)
    assert point is not None
    assert (point.agent_steps, point.skipped) == (6, ())


def test_search_is_bounded(
    run_dir: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    write_small_checkpoint(run_dir / "a" / "b", 5)
    monkeypatch.setattr(common.resume, "MAX_SEARCHED_ENTRIES", 2)

    with caplog.at_level(logging.WARNING):
        assert find_resume(run_dir) is None

    assert "checkpoint search cut short" in caplog.text


def test_explicit_checkpoint_wins_over_newer_ones(run_dir: Path) -> None:
    older = write_small_checkpoint(run_dir / "checkpoints", 1)
    write_small_checkpoint(run_dir / "checkpoints", 2)

    assert steps_of(run_dir, explicit=older) == (1, "explicit")


def test_explicit_run_or_checkpoints_folder_gives_its_newest_valid(run_dir: Path) -> None:
    other = run_dir.parent / "other"
    write_small_checkpoint(other / "checkpoints", 1)
    damage(write_small_checkpoint(other / "checkpoints", 2))

    assert steps_of(run_dir, explicit=other) == (1, "explicit")
    assert steps_of(run_dir, explicit=other / "checkpoints") == (1, "explicit")


def test_explicit_checkpoint_that_is_corrupt_is_refused(run_dir: Path) -> None:
    write_small_checkpoint(run_dir / "checkpoints", 1)
    broken = write_small_checkpoint(run_dir / "checkpoints", 2)
    damage(broken)

    with pytest.raises(CheckpointCorrupt, match="sha256 of network"):
        find_resume(run_dir, explicit=broken)
    (broken / "manifest.json").unlink()
    with pytest.raises(CheckpointCorrupt, match=r"manifest\.json"):
        find_resume(run_dir, explicit=broken)


@pytest.mark.parametrize("name", ["nowhere", "00000000099", "."])
def test_explicit_path_without_checkpoint_is_missing(run_dir: Path, name: str) -> None:
    with pytest.raises(CheckpointMissing, match="give a checkpoint"):
        find_resume(run_dir, explicit=run_dir / name)


def test_explicit_path_that_the_system_does_not_take_is_missing(run_dir: Path) -> None:
    with pytest.raises(CheckpointMissing, match="name too long; give a checkpoint"):
        find_resume(run_dir, explicit=run_dir / ("z" * 300))


def test_explicit_run_with_only_corrupt_ones_is_corrupt(run_dir: Path) -> None:
    damage(write_small_checkpoint(run_dir / "checkpoints", 2))

    with pytest.raises(CheckpointCorrupt, match="got 1 corrupt"):
        find_resume(run_dir, explicit=run_dir)


@pytest.mark.parametrize(
    "place", ["quarantine/20260101-000000/checkpoints/00000000004", "checkpoints/abandoned-4-ab"]
)
def test_run_whose_checkpoints_were_all_withdrawn_does_not_start_afresh(
    run_dir: Path, place: str
) -> None:
    withdrawn = run_dir / place
    write_small_checkpoint(withdrawn.parent, 4, name=withdrawn.name)

    with pytest.raises(CheckpointMissing, match=r"quarantine or abandoned.*--fresh"):
        find_resume(run_dir, runs_root=run_dir.parent)


def test_quarantine_is_not_searched_for_checkpoints(run_dir: Path) -> None:
    write_small_checkpoint(run_dir / "quarantine" / "checkpoints", 9)
    write_small_checkpoint(run_dir / "copies", 4)

    assert steps_of(run_dir) == (4, "search")


def test_a_file_in_the_place_of_the_checkpoints_is_refused(run_dir: Path) -> None:
    (run_dir / "checkpoints").touch()

    with pytest.raises(CheckpointCorrupt, match="expected a folder"):
        find_resume(run_dir)


def test_a_disk_that_fails_while_reading_is_passed_over_for_the_older_one(
    run_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    older, newer = (write_small_checkpoint(run_dir / "checkpoints", n) for n in (5, 9))
    original = hashlib.file_digest

    def fail(file: BufferedReader, name: str) -> Any:
        if f"/{newer.name}/" in str(Path(f"/proc/self/fd/{file.fileno()}").readlink()):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return original(file, name)

    monkeypatch.setattr(hashlib, "file_digest", fail)
    point = find_resume(run_dir)

    assert point is not None
    assert point.path == older
    assert "cannot be read: Input/output error" in point.skipped[0]


def test_a_folder_that_cannot_be_listed_is_told_in_one_line(
    run_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_small_checkpoint(run_dir / "checkpoints", 5)

    def refuse(self: Path) -> object:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(self))

    monkeypatch.setattr(Path, "iterdir", refuse)

    with pytest.raises(CheckpointMissing, match=r"cannot look at .*checkpoints: Permission denied"):
        find_resume(run_dir)


def test_deep_folders_of_something_else_do_not_hide_another_run(
    run_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Entries of a level are seen before those below: a bound is not spent on one branch."""
    for branch in range(12):
        for number in range(50):
            (run_dir.parent / f"{branch}" / "y" / "x" / "w" / f"{number}").mkdir(parents=True)
    write_small_checkpoint(run_dir.parent / "a" / "checkpoints", 5)
    monkeypatch.setattr(common.resume, "MAX_SEARCHED_ENTRIES", 45)

    point = find_resume(run_dir, runs_root=run_dir.parent)

    assert point is not None
    assert point.search is not None
    assert (point.agent_steps, point.search.entries, point.search.is_whole) == (5, 45, False)
