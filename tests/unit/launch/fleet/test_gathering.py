from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from common.heartbeat import HeartbeatWriter, Identity
from common.host import this_host
from common.ids import Incarnation
from common.jsonl import JsonlWriter, read_jsonl
from launch.fleet.gathering import MOST_FILE_BYTES, PIECE_BYTES, Gathering, read_pieces


def node_folder(folder: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def bring(node: Path, home: Gathering, *, turn: int = 0, is_last: bool = False) -> int:
    pieces = read_pieces(node, home.marks("n"), turn=turn, is_last=is_last)
    home.take("n", pieces)
    return sum(len(piece) for _, piece in pieces.values())


def test_files_come_home_in_pieces_of_whole_lines(tmp_path: Path) -> None:
    content = b"".join(b"line %d\n" % number for number in range(20_000))
    node = node_folder(tmp_path / "node", {"logs/actor-3.log": content + b"unfinis"})
    home = Gathering(tmp_path / "home")

    sizes = []
    while taken := bring(node, home):
        sizes.append(taken)

    assert max(sizes) <= PIECE_BYTES
    assert (tmp_path / "home/logs/actor-3.log").read_bytes() == content
    with (node / "logs/actor-3.log").open("ab") as file:
        file.write(b"hed\n")
    bring(node, home)
    assert (tmp_path / "home/logs/actor-3.log").read_bytes() == content + b"unfinished\n"


def test_a_line_without_end_does_not_stop_the_others(tmp_path: Path) -> None:
    long = b"x" * (PIECE_BYTES + 10)
    node = node_folder(
        tmp_path / "node", {"logs/actor-1.log": long, "traces/actor-1.jsonl": b"{}\n"}
    )
    home = Gathering(tmp_path / "home")

    while bring(node, home):
        pass

    assert (tmp_path / "home/traces/actor-1.jsonl").read_bytes() == b"{}\n"


def test_at_the_end_a_line_without_its_end_comes_too(tmp_path: Path) -> None:
    node = node_folder(tmp_path / "node", {"logs/actor-1.log": b"one\nlast wor"})
    home = Gathering(tmp_path / "home")

    while bring(node, home, is_last=True):
        pass

    assert (tmp_path / "home/logs/actor-1.log").read_bytes() == b"one\nlast wor"
    later = Gathering(tmp_path / "home")
    later.take("m", {"logs/actor-1.log": (1, b"another start\n")})
    later.take("m", {"logs/actor-1.log": (1, b"in two ")})
    later.take("m", {"logs/actor-1.log": (1, b"parts\n")})
    said = (tmp_path / "home/logs/actor-1.log").read_bytes()
    assert said == b"one\nlast wor\nanother start\nin two parts\n"


def test_heartbeats_come_home_and_say_where_they_were_beaten(tmp_path: Path) -> None:
    who = Identity(run_id="r", role="actor", index=3, incarnation=Incarnation(1))
    heart = HeartbeatWriter(who, tmp_path / "node/heartbeats/actor-3.jsonl", 5.0)
    beats = [heart.beat(progress, "playing") for progress in range(3)]
    heart.close()

    bring(tmp_path / "node", Gathering(tmp_path / "home"))

    assert list(read_jsonl(tmp_path / "home/heartbeats/actor-3.jsonl")) == beats
    assert {beat["host"] for beat in beats} == {this_host()}


def test_what_is_known_of_hangs_and_slow_steps_comes_too(tmp_path: Path) -> None:
    names = (
        "diagnostics/actor-3-4711-stacks.txt",
        "diagnostics/slow_step_trace_20260102T030405_678901.log",
        "diagnostics/construction.jsonl",
    )
    files = {**dict.fromkeys(names, b"said\n"), "diagnostics/secret": b"no\n"}
    node = node_folder(tmp_path / "node", files)

    bring(node, Gathering(tmp_path / "home"))

    there = {path for path in (tmp_path / "home").rglob("*") if path.is_file()}
    assert there == {tmp_path / "home" / name for name in names}


class Rotating:
    """A file of traces on a node, and what has come of it."""

    def __init__(self, folder: Path) -> None:
        self.node, self.home = folder / "node", folder / "home"
        self.gathering = Gathering(self.home)
        self.name = "traces/actor-1.jsonl"
        self.writer = JsonlWriter(self.node / self.name, rotate_bytes=38)

    def write(self, *numbers: int) -> None:
        for number in numbers:
            self.writer.write({"trace": number})

    def numbers(self, suffix: str) -> list[object]:
        return [record["trace"] for record in read_jsonl(self.home / (self.name + suffix))]

    def bring_all(self) -> None:
        while bring(self.node, self.gathering):
            pass


@pytest.fixture
def rotating(tmp_path: Path) -> Iterator[Rotating]:
    rotating = Rotating(tmp_path)
    yield rotating
    rotating.writer.close()


def test_a_file_that_is_rotated_comes_to_its_end_and_then_the_next_one(rotating: Rotating) -> None:
    rotating.write(10, 11)
    rotating.bring_all()

    rotating.write(12, 13, 14)
    rotating.bring_all()

    assert (rotating.numbers(".1"), rotating.numbers("")) == ([10, 11, 12], [13, 14])
    rotating.write(15, 16)
    rotating.bring_all()
    assert (rotating.numbers(".1"), rotating.numbers("")) == ([13, 14, 15], [16])
    assert rotating.gathering.is_whole("n")


def test_a_file_that_was_rotated_before_it_was_begun_comes_from_its_beginning(
    rotating: Rotating,
) -> None:
    rotating.write(10, 11, 12, 13)

    rotating.bring_all()

    assert (rotating.numbers(".1"), rotating.numbers("")) == ([10, 11, 12], [13])


def test_a_rotated_file_without_a_successor_comes_too(rotating: Rotating) -> None:
    rotating.write(10, 11)
    path = rotating.node / rotating.name
    path.rename(path.with_name(path.name + ".1"))

    rotating.bring_all()

    assert rotating.numbers("") == [10, 11]


def test_a_rotated_file_for_which_there_is_no_room_is_not_left_for_its_successor(
    rotating: Rotating,
) -> None:
    rotating.write(10, 11, 12, 13)
    busy = b"x" * (PIECE_BYTES - 10) + b"\n"
    node_folder(rotating.node, {"logs/actor-1.log": busy})

    bring(rotating.node, rotating.gathering)
    assert not (rotating.home / rotating.name).exists()
    rotating.bring_all()

    assert (rotating.numbers(".1"), rotating.numbers("")) == ([10, 11, 12], [13])


def test_a_disk_that_is_full_after_a_rotation_keeps_the_rotated_file(rotating: Rotating) -> None:
    rotating.write(10)
    rotating.bring_all()
    rotating.write(11, 12, 13)
    bring(rotating.node, rotating.gathering)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        bring(rotating.node, rotating.gathering)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    rotating.bring_all()

    assert (rotating.numbers(".1"), rotating.numbers("")) == ([10, 11, 12], [13])


def test_a_log_that_grows_faster_than_it_comes_does_not_keep_traces_back(tmp_path: Path) -> None:
    chatty = b"x" * 63 + b"\n"
    files = {"logs/actor-1.log": chatty * 10_000, "traces/actor-1.jsonl": b"{}\n"}
    node = node_folder(tmp_path / "node", files)
    home = Gathering(tmp_path / "home")

    for turn in (1, 2):
        bring(node, home, turn=turn)

    assert (tmp_path / "home/traces/actor-1.jsonl").read_bytes() == b"{}\n"


@pytest.mark.parametrize(
    "name",
    [
        *("../actor-1.log", "logs/../../x", "config.json", "logs/a.log"),
        "heartbeats/learner-0.jsonl",
    ],
)
def test_a_node_cannot_write_other_files(tmp_path: Path, name: str) -> None:
    home = Gathering(tmp_path / "home")

    home.take("n", {name: (1, b"bad\n")})

    assert list(tmp_path.rglob("*")) == []


def test_a_file_at_home_has_an_end(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "actor-0.log"
    path.parent.mkdir()
    with path.open("wb") as file:
        file.seek(MOST_FILE_BYTES - 1)
        file.write(b"\n")

    home = Gathering(tmp_path)
    home.take("m", {"logs/actor-1.log": (1, b"more\n")})
    home.take("n", {"logs/actor-0.log": (1, b"more\n")})

    assert path.stat().st_size == MOST_FILE_BYTES
    assert (home.is_whole("n"), home.is_whole("m")) == (False, True)
    assert home.marks("n") == {"logs/actor-0.log": (1, 5)}


def test_what_could_not_be_written_comes_again(tmp_path: Path) -> None:
    home = Gathering(tmp_path)
    (tmp_path / "logs").touch()

    home.take("n", {"logs/actor-0.log": (1, b"one\n")})
    assert home.marks("n") == {}
    (tmp_path / "logs").unlink()
    home.take("n", {"logs/actor-0.log": (1, b"one\n")})

    assert home.marks("n") == {"logs/actor-0.log": (1, 4)}
    assert (tmp_path / "logs/actor-0.log").read_bytes() == b"one\n"


def test_a_disk_that_takes_a_part_gets_the_rest_later(tmp_path: Path) -> None:
    home = Gathering(tmp_path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (6, hard))
    try:
        home.take("n", {"logs/actor-0.log": (1, b"one\ntwo\n")})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    assert home.marks("n") == {"logs/actor-0.log": (1, 6)}


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "target").touch()
    (tmp_path / "logs/actor-0.log").symlink_to(tmp_path / "target")

    Gathering(tmp_path).take("n", {"logs/actor-0.log": (1, b"bad\n")})

    assert (tmp_path / "target").read_bytes() == b""
