from __future__ import annotations

import resource
from pathlib import Path

import pytest

from launch.fleet.gathering import MOST_FILE_BYTES, PIECE_BYTES, Gathering, read_pieces


def node_folder(folder: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def bring(node: Path, home: Gathering) -> int:
    pieces = read_pieces(node, home.offsets("n"))
    home.take("n", pieces)
    return sum(len(piece) for piece in pieces.values())


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


@pytest.mark.parametrize("name", ["../actor-1.log", "logs/../../x", "config.json", "logs/a.log"])
def test_a_node_cannot_write_other_files(tmp_path: Path, name: str) -> None:
    home = Gathering(tmp_path / "home")

    home.take("n", {name: b"bad\n"})

    assert list(tmp_path.rglob("*")) == []


def test_a_file_at_home_has_an_end(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "actor-0.log"
    path.parent.mkdir()
    with path.open("wb") as file:
        file.truncate(MOST_FILE_BYTES)

    home = Gathering(tmp_path)
    home.take("m", {"logs/actor-1.log": b"more\n"})
    home.take("n", {"logs/actor-0.log": b"more\n"})

    assert path.stat().st_size == MOST_FILE_BYTES
    assert (home.is_whole("n"), home.is_whole("m")) == (False, True)
    assert home.offsets("n") == {"logs/actor-0.log": 5}


def test_what_could_not_be_written_comes_again(tmp_path: Path) -> None:
    home = Gathering(tmp_path)
    (tmp_path / "logs").touch()

    home.take("n", {"logs/actor-0.log": b"one\n"})
    assert home.offsets("n") == {}
    (tmp_path / "logs").unlink()
    home.take("n", {"logs/actor-0.log": b"one\n"})

    assert home.offsets("n") == {"logs/actor-0.log": 4}
    assert (tmp_path / "logs/actor-0.log").read_bytes() == b"one\n"


def test_a_disk_that_takes_a_part_gets_the_rest_later(tmp_path: Path) -> None:
    home = Gathering(tmp_path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (6, hard))
    try:
        home.take("n", {"logs/actor-0.log": b"one\ntwo\n"})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    assert home.offsets("n") == {"logs/actor-0.log": 6}


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "target").touch()
    (tmp_path / "logs/actor-0.log").symlink_to(tmp_path / "target")

    Gathering(tmp_path).take("n", {"logs/actor-0.log": b"bad\n"})

    assert (tmp_path / "target").read_bytes() == b""
