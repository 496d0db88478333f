from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from launch.control_room import heartbeats
from launch.control_room.app import Room, active_states
from launch.control_room.event_stream import StreamCount
from launch.control_room.heartbeats import Heartbeats
from launch.control_room.library import MAX_READERS, Library
from launch.control_room.run_reader import RunReader
from launch.control_room.security import Rules
from tests.run_folders import beat, end_run, make_run, write_lines


def test_runs_that_go_on_are_told_from_their_heartbeats_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "abc":
        make_run(tmp_path, name, rows=1)
    end_run(make_run(tmp_path, "ended", rows=1))
    monkeypatch.setattr(Library, "reader", None)

    found = Library(tmp_path).names_going_on(8)

    assert sorted(found) == ["a", "b", "c"]
    assert len(Library(tmp_path).names_going_on(2)) == 2


def test_a_run_is_found_by_a_part_of_its_name_and_first_by_all_of_it(tmp_path: Path) -> None:
    for name in ("seed1", "Seed10", "seed11", "other"):
        make_run(tmp_path, name, rows=1)

    found = Library(tmp_path).names("seed1")

    assert found[0] == "seed1"
    assert sorted(found) == ["Seed10", "seed1", "seed11"]


def test_a_folder_that_may_not_be_looked_into_hides_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_run(tmp_path, "mine", rows=1)
    make_run(tmp_path, "theirs", rows=1)
    stat, lstat = Path.stat, Path.lstat

    def refused(look: Callable[[Path], os.stat_result]) -> Callable[..., os.stat_result]:
        def looked(path: Path, **_: object) -> os.stat_result:
            if path.parent.name == "theirs":
                raise PermissionError(errno.EACCES, "of somebody else", str(path))
            return look(path)

        return looked

    monkeypatch.setattr(Path, "stat", refused(stat))
    monkeypatch.setattr(Path, "lstat", refused(lstat))

    assert Library(tmp_path).names() == ["mine"]


def test_a_scrape_leaves_the_readers_of_viewers(tmp_path: Path) -> None:
    for number in range(MAX_READERS + 2):
        make_run(tmp_path, f"run{number:02}", rows=1)
    room = Room(Library(tmp_path), Rules(), StreamCount())
    viewed = ["run00", "run01"]
    readers = [room.library.reader(name) for name in viewed]

    active_states(room)

    assert [room.library.reader(name) for name in viewed] == readers


def test_no_two_readers_have_the_same_serial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("launch.control_room.library.MAX_READERS", 1)
    for name in "ab":
        make_run(tmp_path, name, rows=1)
    library = Library(tmp_path)

    readers = [reader for name in "abab" if (reader := library.reader(name)) is not None]

    assert len({reader.serial for reader in readers}) == 4


def test_a_run_that_began_anew_has_another_serial(tmp_path: Path) -> None:
    paths = make_run(tmp_path, rows=3)
    reader = RunReader(paths, clock=iter(range(100)).__next__)
    reader.look()
    before = reader.serial, reader.metrics.seen

    paths.metrics.write_bytes(b"")
    reader.look()

    assert before == (0, 3)
    assert reader.serial != before[0]


def test_of_many_actors_some_are_left_out_and_of_the_other_roles_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heartbeats, "MAX_PROCESSES", 6)
    paths = make_run(tmp_path)
    peers = [f"actor-{index}" for index in range(2, 12)]
    for peer in (*peers, "replay_server-0", "evaluator-0"):
        write_lines(paths.process_heartbeat(peer), [beat(peer)])

    kept = ["learner-0", "replay_server-0", "evaluator-0", "actor-0", "actor-1", "actor-2"]
    assert list(Heartbeats(paths).read()) == kept
