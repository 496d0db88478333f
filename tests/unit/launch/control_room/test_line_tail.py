from __future__ import annotations

import json
import os
from itertools import pairwise
from pathlib import Path

import pytest

from common.jsonl import JsonlWriter
from launch.control_room.line_tail import LineTail
from launch.control_room.safe_files import parse_object, read_bytes, read_tail, tail_records
from tests.run_folders import write_lines


def numbers(tail: LineTail) -> list[object]:
    return [record["n"] for record in tail.read_new()]


def test_every_record_is_read_once_as_the_file_grows(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    tail = LineTail(path)

    before = numbers(tail)
    write_lines(path, [{"n": 1}, {"n": 2}])
    first = numbers(tail)
    write_lines(path, [{"n": 3}])

    assert (before, first, numbers(tail), numbers(tail)) == ([], [1, 2], [3], [])


def test_a_torn_last_line_waits_for_its_end(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_bytes(b'{"n":1}\n{"n":')
    tail = LineTail(path)

    first = numbers(tail)
    with path.open("ab") as file:
        file.write(b"2}\n")

    assert (first, numbers(tail)) == ([1], [2])


def test_damaged_lines_cost_only_themselves(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_bytes(b'{"n":1}\nnot json\n[1]\n\xff\xfe\n\n' + b"[" * 100_000 + b'\n{"n":2}\n')

    assert numbers(LineTail(path)) == [1, 2]


def test_numbers_that_no_browser_reads_become_null() -> None:
    odd = b"[NaN, Infinity, -Infinity, 1e400, -1e400, 1" + b"0" * 400 + b"]"

    record = parse_object(b'{"n": 1.5, "steps": 12345678901234567890, "odd": ' + odd + b"}")

    assert record == {"n": 1.5, "steps": 12_345_678_901_234_567_890, "odd": [None] * 6}


def test_nothing_is_lost_or_doubled_over_a_rotation(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    writer, tail = JsonlWriter(path, rotate_bytes=200), LineTail(path)

    seen = []
    for n in range(100):
        writer.write({"n": n})
        if n % 7 == 0:
            seen += numbers(tail)
    seen += numbers(tail)
    writer.close()

    assert seen == list(range(100))


def test_lines_that_were_rotated_away_before_we_came_are_read_first(tmp_path: Path) -> None:
    write_lines(tmp_path / "lines.jsonl.1", [{"n": 1}])
    write_lines(tmp_path / "lines.jsonl", [{"n": 2}])

    assert numbers(LineTail(tmp_path / "lines.jsonl")) == [1, 2]


def test_a_file_that_was_replaced_is_told(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    write_lines(path, [{"n": 1}, {"n": 2}])
    tail = LineTail(path)
    numbers(tail)

    path.unlink()
    write_lines(path, [{"n": 9}])

    assert numbers(tail) == [9]
    assert tail.was_replaced


def test_a_file_that_became_shorter_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    write_lines(path, [{"n": 1}, {"n": 2}])
    tail = LineTail(path)
    numbers(tail)

    os.truncate(path, 0)
    write_lines(path, [{"n": 5}])

    assert numbers(tail) == [5]
    assert tail.was_replaced


def test_a_huge_file_is_sampled_over_its_length_and_whole_at_its_end(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    write_lines(path, ({"n": n, "filler": "x" * 40} for n in range(20_000)))
    tail = LineTail(path, whole_bytes=64_000, sampled_lines=50)

    seen = [int(str(n)) for n in numbers(tail)]

    assert seen == sorted(set(seen))
    assert seen[0] == 0
    assert seen[-100:] == list(range(19_900, 20_000))
    gaps = [after - before for before, after in pairwise(seen)]
    assert max(gaps) < 20_000 / 40
    assert len(seen) < 500


def test_a_gigabyte_is_opened_by_reading_a_few_megabytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "lines.jsonl"
    write_lines(path, [{"n": 1}])
    os.truncate(path, 2**30)
    with path.open("ab") as file:
        file.write(b'\n{"n":2}\n')
    taken, pread = [], os.pread

    def counted(descriptor: int, length: int, offset: int) -> bytes:
        content = pread(descriptor, length, offset)
        taken.append(len(content))
        return content

    monkeypatch.setattr(os, "pread", counted)

    seen = numbers(LineTail(path, sampled_lines=100))

    assert seen[-1] == 2
    assert sum(taken) < 20 * 2**20


def test_links_pipes_and_folders_are_no_files(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text('{"n":1}\n', encoding="utf-8")
    (tmp_path / "link.jsonl").symlink_to(secret)
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "folder.jsonl").mkdir()

    for name in ("link", "pipe", "folder"):
        path = tmp_path / f"{name}.jsonl"
        assert numbers(LineTail(path)) == []
        assert read_bytes(path, 100) is None
        assert read_tail(path, 100) == b""


def test_the_tail_of_a_file_begins_with_a_whole_line(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    write_lines(path, ({"n": n} for n in range(1_000)))

    records = tail_records(path, 100)

    assert records[-1] == {"n": 999}
    assert all(json.dumps(record) for record in records)
    assert 0 < len(records) < 15
