from __future__ import annotations

import os
from pathlib import Path

import pytest

from launch.control_room import film_files
from launch.control_room.film_files import (
    UnsatisfiableRange,
    find_film,
    newest_films,
    parse_range,
)

NAME = "eval-00000000100-best.mp4"


def write_film(folder: Path, name: str, written_s: float = 1_000.0) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_bytes(b"0123456789")
    os.utime(path, (written_s, written_s))
    return path


def test_the_films_shown_are_those_written_last_best_first(tmp_path: Path) -> None:
    write_film(tmp_path, "eval-00000000900-best.mp4", 1_000.0)
    # The run went back to an older checkpoint.
    write_film(tmp_path, "eval-00000000300-worst.mp4", 2_001.0)
    write_film(tmp_path, "eval-00000000300-best.mp4", 2_000.0)

    shown = [(film["name"], film["global_step"]) for film in newest_films(tmp_path)]

    assert shown == [("eval-00000000300-best", 300), ("eval-00000000300-worst", 300)]


def test_a_pair_is_shown_until_the_next_one_is_whole(tmp_path: Path) -> None:
    write_film(tmp_path, "eval-00000000100-best.mp4", 1_000.0)
    write_film(tmp_path, "eval-00000000100-worst.mp4", 1_001.0)
    write_film(tmp_path, "eval-00000000200-best.mp4", 2_000.0)

    cut_short = [film["name"] for film in newest_films(tmp_path)]
    write_film(tmp_path, "eval-00000000200-worst.mp4", 2_001.0)

    assert cut_short == ["eval-00000000100-best", "eval-00000000100-worst"]
    assert [film["global_step"] for film in newest_films(tmp_path)] == [200, 200]


def test_evaluations_that_have_one_film_only_are_shown_with_it(tmp_path: Path) -> None:
    for which, steps, written_s in (("best", 1, 10.0), ("worst", 1, 11.0), ("best", 2, 20.0)):
        write_film(tmp_path, f"eval-{steps:011}-{which}.mp4", written_s)
    write_film(tmp_path, "eval-00000000003-best.mp4", 30.0)

    assert [film["name"] for film in newest_films(tmp_path)] == ["eval-00000000003-best"]


def test_only_films_by_their_names_are_shown(tmp_path: Path) -> None:
    for name in ("holiday.mp4", "eval-1-best.mp4", "eval-00000000100-best.png", ".tmp-" + NAME):
        write_film(tmp_path, name)

    assert newest_films(tmp_path) == []


def test_a_missing_folder_and_one_that_is_a_link_hold_no_films(tmp_path: Path) -> None:
    write_film(tmp_path / "elsewhere", NAME)
    (tmp_path / "videos").symlink_to(tmp_path / "elsewhere")

    assert newest_films(tmp_path / "videos") == []
    assert find_film(tmp_path / "videos" / NAME, "") is None
    assert newest_films(tmp_path / "nowhere") == []


def test_a_film_that_is_written_again_has_another_version(tmp_path: Path) -> None:
    write_film(tmp_path, NAME, 1_000.0)
    (before,) = newest_films(tmp_path)
    write_film(tmp_path, NAME, 1_001.0)

    assert newest_films(tmp_path)[0]["version"] != before["version"]


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("bytes=0-", (0, 10)),
        ("bytes=0-0", (0, 1)),
        ("bytes=4-6", (4, 7)),
        ("bytes=4-600", (4, 10)),
        ("bytes=-3", (7, 10)),
        ("bytes=-30", (0, 10)),
        ("", None),
        ("bytes=-", None),
        ("bytes=6-4", None),
        ("bytes=0-1,4-5", None),
        ("bytes=a-b", None),
        ("items=0-1", None),
        ("bytes=" + "9" * 40 + "-", None),
    ],
)
def test_a_range_is_understood_or_the_whole_is_sent(
    header: str, expected: tuple[int, int] | None
) -> None:
    assert parse_range(header, 10) == expected


@pytest.mark.parametrize(("header", "size"), [("bytes=10-", 10), ("bytes=0-", 0), ("bytes=-0", 10)])
def test_a_range_beyond_the_film_is_refused(header: str, size: int) -> None:
    with pytest.raises(UnsatisfiableRange):
        parse_range(header, size)


def test_a_part_is_never_larger_than_its_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(film_files, "MAX_PART_BYTES", 4)

    part = find_film(write_film(tmp_path, NAME), "bytes=3-")

    assert part is not None
    assert b"".join(part.pieces()) == b"3456"
    assert part.headers["content-range"] == "bytes 3-6/10"


def test_a_film_is_read_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(film_files, "PIECE_BYTES", 4)

    whole = find_film(write_film(tmp_path, NAME), "")

    assert whole is not None
    assert list(whole.pieces()) == [b"0123", b"4567", b"89"]
    assert whole.headers["content-length"] == "10"


def test_a_film_that_is_gone_before_it_is_sent_has_no_pieces(tmp_path: Path) -> None:
    path = write_film(tmp_path, NAME)
    whole = find_film(path, "")
    path.unlink()

    assert whole is not None
    assert list(whole.pieces()) == []


def test_a_file_too_large_for_a_film_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(film_files, "MAX_FILM_BYTES", 9)

    assert find_film(write_film(tmp_path, NAME), "bytes=0-1") is None
