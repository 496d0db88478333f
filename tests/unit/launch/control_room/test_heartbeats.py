"""Processes with a file of their own, and those on other machines that have none."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from common.host import this_host
from common.run_paths import RunPaths
from launch.control_room import heartbeats, machines
from launch.control_room.heartbeats import Heartbeats
from launch.control_room.safe_files import tail_records
from tests.fake_clock import FakeClock
from tests.run_folders import beat, make_run, write_lines

NOW_S = 1_000.0
HERE = frozenset({os.getpid()})


def rows(paths: RunPaths, beats: Any, alive: frozenset[int] = HERE) -> dict[str, Any]:
    life = machines.Life(now_s=NOW_S, interval_s=1.0, lives_here=lambda pid, _: pid in alive)
    state = machines.run_state(beats, paths, life)
    return {str(row["name"]): row for row in machines.describe_processes(beats, {}, state, life)}


@pytest.fixture
def paths(tmp_path: Path) -> RunPaths:
    paths = make_run(tmp_path)
    for peer in ("learner-0", "actor-0", "actor-1"):
        write_lines(paths.process_heartbeat(peer), [beat(peer, time=NOW_S)])
    return paths


@pytest.mark.parametrize(("silent_s", "level"), [(0.5, "good"), (30.0, "bad")])
def test_a_process_without_a_file_is_judged_by_silence_alone(
    paths: RunPaths, silent_s: float, level: str
) -> None:
    # On this machine nobody has that number.
    write_lines(paths.heartbeat, [beat("actor-7", pid=7, time=NOW_S - silent_s)])

    told = rows(paths, Heartbeats(paths).read())

    assert list(told) == ["learner-0", "actor-0", "actor-1", "actor-7"]
    assert told["actor-7"]["level"] == level
    assert told["actor-7"]["words"] == ("playing" if level == "good" else "silent for 30 s")


def test_a_number_of_another_machine_keeps_no_run_alive_here(paths: RunPaths) -> None:
    """A process of this machine has by chance the number of a silent one elsewhere."""
    for peer in ("learner-0", "actor-0", "actor-1"):
        write_lines(paths.process_heartbeat(peer), [beat(peer, pid=7, time=NOW_S - 60.0)])
    write_lines(paths.heartbeat, [beat("actor-7", pid=os.getpid(), time=NOW_S - 60.0)])
    elsewhere = beat("actor-8", pid=os.getpid(), time=NOW_S - 60.0, host="far")
    write_lines(paths.process_heartbeat("actor-8"), [elsewhere])

    told = rows(paths, Heartbeats(paths).read())

    assert {row["level"] for row in told.values()} == {"ended"}


@pytest.mark.parametrize(("host", "level"), [("far", "good"), (this_host(), "bad")])
def test_a_file_that_names_another_host_is_judged_by_silence_alone(
    paths: RunPaths, host: str, level: str
) -> None:
    write_lines(paths.process_heartbeat("actor-1"), [beat("actor-1", pid=7, time=NOW_S, host=host)])

    assert rows(paths, Heartbeats(paths).read())["actor-1"]["level"] == level
    assert machines.goes_on(paths, NOW_S)


def test_its_own_file_tells_more_than_the_file_of_all(paths: RunPaths) -> None:
    write_lines(paths.heartbeat, [beat("actor-0", state="by way of the learner")])

    told = rows(paths, Heartbeats(paths).read())["actor-0"]

    assert (told["words"], told["beat"]["pid"]) == ("playing", os.getpid())


def test_the_file_of_all_is_followed_and_odd_names_in_it_are_nobody(paths: RunPaths) -> None:
    read = Heartbeats(paths)
    write_lines(paths.heartbeat, [beat("actor-7", progress=1), {"role": "<b>", "index": 1}, {}])
    read.read()
    write_lines(paths.heartbeat, [beat("actor-7", progress=2)])

    told = read.read()

    assert [one["progress"] for one in told["actor-7"]] == [1, 2]
    assert set(told) == {"learner-0", "actor-0", "actor-1", "actor-7"}


def test_a_file_from_before_hides_nobody_who_plays_elsewhere_now(paths: RunPaths) -> None:
    write_lines(paths.process_heartbeat("actor-7"), [beat("actor-7", pid=7, time=NOW_S - 900.0)])
    write_lines(paths.heartbeat, [beat("actor-7", pid=7, time=NOW_S, host="far", progress=9)])

    told = rows(paths, Heartbeats(paths).read())["actor-7"]

    assert (told["level"], told["beat"]["progress"]) == ("good", 9)


@pytest.mark.parametrize("ahead_s", [-500.0, 500.0])
def test_a_clock_elsewhere_that_is_off_makes_nobody_silent_or_immortal(
    paths: RunPaths, ahead_s: float
) -> None:
    clock = FakeClock(NOW_S - 10.0)
    read = Heartbeats(paths, clock)
    far = {"host": "far", "pid": 7}
    write_lines(paths.heartbeat, [beat("actor-7", time=NOW_S - 10.0 + ahead_s, **far)])
    read.read()
    clock.advance(10.0)
    write_lines(paths.heartbeat, [beat("actor-7", time=NOW_S + ahead_s, **far)])

    assert rows(paths, read.read())["actor-7"]["level"] == "good"
    clock.advance(30.0)
    assert read.read()["actor-7"][-1]["time"] == NOW_S


def test_the_file_of_another_run_tells_nothing_of_before(paths: RunPaths) -> None:
    read = Heartbeats(paths)
    write_lines(paths.heartbeat, [beat("actor-7")])
    read.read()
    other = paths.root / "other.jsonl"
    write_lines(other, [beat("actor-9")])
    other.replace(paths.heartbeat)

    assert set(read.read()) == {"learner-0", "actor-0", "actor-1", "actor-9"}


def test_processes_elsewhere_are_bounded(paths: RunPaths, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeats, "MAX_PROCESSES", 5)
    peers = [*(f"actor-{index}" for index in range(30, 1, -1)), "relay-0"]
    write_lines(paths.heartbeat, [beat(peer) for peer in peers])
    read = Heartbeats(paths)

    assert list(read.read()) == ["learner-0", "relay-0", "actor-0", "actor-1", "actor-2"]
    assert len(read._far) <= 5


def test_files_that_did_not_change_are_not_read_again(
    paths: RunPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []

    def counted(file: Path, tail_bytes: int) -> list[dict[str, object]]:
        opened.append(file.stem)
        return tail_records(file, tail_bytes)

    monkeypatch.setattr(heartbeats, "tail_records", counted)
    read = Heartbeats(paths)
    first = read.read()
    opened.clear()

    assert read.read() == first
    assert opened == []

    write_lines(paths.process_heartbeat("actor-1"), [beat("actor-1", state="waiting")])

    assert read.read()["actor-1"][-1]["state"] == "waiting"
    assert opened == ["actor-1"]
