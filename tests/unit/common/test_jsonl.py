from __future__ import annotations

import json
import logging
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from common.errors import ConfigError
from common.jsonl import JsonlWriter, last_record, read_jsonl


@contextmanager
def file_size_limit(size_bytes: int) -> Iterator[None]:
    """The disk seems full beyond this size: writes are cut there, later ones fail."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_what_is_written_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "x.jsonl"
    records: list[dict[str, object]] = [{"a": 1, "b": None}, {"a": 2.5, "text": "ü\n"}]

    writer = JsonlWriter(path)
    for record in records:
        writer.write(record)
    writer.close()

    assert list(read_jsonl(path)) == records
    assert last_record(path) == records[-1]


def test_each_record_is_one_line_for_the_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"

    writer = JsonlWriter(path)
    writer.write({"text": "two\nlines"})
    writer.close()

    assert path.read_text() == '{"text":"two\\nlines"}\n'
    assert path.stat().st_mode & 0o077 == 0


def test_each_record_is_one_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = JsonlWriter(tmp_path / "x.jsonl")
    written: list[bytes] = []

    def note(file: int, data: bytes) -> int:
        del file
        written.append(data)
        return len(data)

    monkeypatch.setattr(os, "write", note)

    writer.write({"a": 1})

    assert written == [b'{"a":1}\n']


@pytest.mark.parametrize("torn", [b'{"a":', b'{"a": 2', b"\xff\xfe", b"[" * 100_000, b"3", b"[1]"])
def test_readers_skip_a_torn_last_line(tmp_path: Path, torn: bytes) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"a":1}\n' + torn)

    assert list(read_jsonl(path)) == [{"a": 1}]
    assert last_record(path, tail_bytes=1_000_000) == {"a": 1}


def test_a_new_writer_ends_the_torn_line_of_a_killed_one(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"a":1}\n{"a":2')

    writer = JsonlWriter(path)
    writer.write({"a": 3})
    writer.close()

    assert list(read_jsonl(path)) == [{"a": 1}, {"a": 3}]


def test_a_file_with_nothing_whole_in_it_has_no_record(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"a":')

    assert list(read_jsonl(path)) == []
    assert last_record(path) is None
    assert last_record(tmp_path / "none") is None
    assert last_record(tmp_path) is None
    assert list(read_jsonl(tmp_path / "none")) == []


def test_last_record_reads_only_the_tail(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    lines = [json.dumps({"number": index}) for index in range(10_000)]
    path.write_text("\n".join(lines) + "\n")

    assert last_record(path, tail_bytes=40) == {"number": 9_999}


def test_rotation_keeps_one_old_file_and_loses_nothing_in_between(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    writer = JsonlWriter(path, rotate_bytes=100)

    for number in range(30):
        writer.write({"number": number})
    writer.close()

    old, new = tmp_path / "x.jsonl.1", path
    assert sorted(tmp_path.iterdir()) == [new, old]
    numbers = [record["number"] for file in (old, new) for record in read_jsonl(file)]
    assert numbers == list(range(30))[-len(numbers) :]
    assert old.stat().st_size <= 120


def test_a_rotation_that_fails_keeps_writing_to_our_own_file(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    writer = JsonlWriter(path, rotate_bytes=10)
    with path.open("rb") as same_file:
        path.unlink()
        writer.write({"number": 1})

        # A number that was closed too early is handed out again here, and written to below.
        with (tmp_path / "foreign").open("wb") as foreign:
            writer.write({"number": 2})
            assert foreign.tell() == 0

        assert same_file.read() == b'{"number":1}\n{"number":2}\n'
    writer.close()
    assert (tmp_path / "foreign").read_bytes() == b""


def test_a_rotation_without_a_new_file_goes_on_in_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.jsonl"
    writer = JsonlWriter(path, rotate_bytes=10)

    def too_many(*_: object) -> int:
        raise OSError(24, "too many open files")

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", too_many)
        writer.write({"number": 1})
    writer.write({"number": 2})
    writer.close()

    assert list(read_jsonl(tmp_path / "x.jsonl.1")) == [{"number": 1}, {"number": 2}]


def test_a_full_disk_is_reported_once_and_stops_nobody(caplog: pytest.LogCaptureFixture) -> None:
    writer = JsonlWriter(Path("/dev/full"))

    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            writer.write({"a": 1})
    writer.close()

    assert [record.message for record in caplog.records] == ["cannot write"]


def test_after_a_full_disk_new_lines_are_whole_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "x.jsonl"
    writer = JsonlWriter(path)
    writer.write({"a": 1})

    with file_size_limit(12):
        writer.write({"a": 2})
        writer.write({"a": 3})
    writer.write({"a": 4})
    writer.close()

    assert list(read_jsonl(path)) == [{"a": 1}, {"a": 4}]
    assert len(caplog.records) == 1


def test_a_disk_that_fills_up_again_is_reported_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    writer = JsonlWriter(tmp_path / "x.jsonl")

    for _ in range(2):
        with file_size_limit(1):
            writer.write({"a": 2})
        writer.write({"a": 3})
    writer.close()

    assert len(caplog.records) == 2


def test_numbers_that_json_does_not_know_are_a_mistake_of_the_caller(tmp_path: Path) -> None:
    writer = JsonlWriter(tmp_path / "x.jsonl")

    with pytest.raises(ValueError, match="JSON compliant"):
        writer.write({"a": float("nan")})
    writer.close()

    assert (tmp_path / "x.jsonl").read_bytes() == b""


def test_a_link_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("untouched\n")
    (tmp_path / "log.jsonl").symlink_to(tmp_path / "victim")

    with pytest.raises(ConfigError, match="cannot write"):
        JsonlWriter(tmp_path / "log.jsonl")

    assert (tmp_path / "victim").read_text() == "untouched\n"
