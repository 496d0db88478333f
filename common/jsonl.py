"""Append-only JSON lines: one `write` per line, rotation by size, readers skip a torn last line."""

from __future__ import annotations

import errno
import json
import logging
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from common.errors import ConfigError

log = logging.getLogger(__name__)

ROTATE_BYTES = 64 * 1024 * 1024


class JsonlWriter:
    """Appends records; a full disk is reported once and never stops the caller."""

    def __init__(self, path: Path, rotate_bytes: int = ROTATE_BYTES) -> None:
        self._path = path
        self._rotate_bytes = rotate_bytes
        self._failed = False
        self._torn = False
        """The disk took only the beginning of the last line."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self._open()
        except OSError as error:
            raise ConfigError(f"cannot write {path}: {error.strerror}") from error

    def write(self, record: Mapping[str, object]) -> None:
        line = json.dumps(record, separators=(",", ":"), allow_nan=False) + "\n"
        try:
            self._append(line.encode())
            if os.fstat(self._file).st_size > self._rotate_bytes:
                self._rotate()
        except OSError as error:
            if not self._failed:
                log.warning("cannot write", extra={"path": self._path, "error": str(error)})
            self._failed = True
        else:
            self._failed = False

    def _append(self, line: bytes) -> None:
        data = b"\n" + line if self._torn else line
        written = os.write(self._file, data)
        self._torn = written < len(data)
        if self._torn:
            raise OSError(errno.ENOSPC, "only a part of the line was written")

    def close(self) -> None:
        os.close(self._file)

    def _open(self) -> int:
        # No links: in a folder that came from elsewhere one could lead to any file of ours.
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        file = os.open(self._path, flags, 0o600)
        size = os.fstat(file).st_size
        if size and os.pread(file, 1, size - 1) != b"\n":
            # A writer before us was killed inside its line; end it so that ours stays readable.
            os.write(file, b"\n")
        return file

    def _rotate(self) -> None:
        self._path.replace(self._path.with_name(self._path.name + ".1"))
        # Opened before the old one is closed: when it fails, the old number is still ours.
        old, self._file = self._file, self._open()
        os.close(old)


def read_jsonl(path: Path) -> Iterator[dict[str, object]]:
    """The records of a file; lines that are not JSON objects (torn by a kill) are skipped."""
    if not path.exists():
        return
    with path.open("rb") as file:
        for line in file:
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(record, dict):
                yield record


def line_problem(line: bytes) -> str:
    """What keeps a line from being a record, or empty."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return "not JSON" if line.endswith(b"\n") else "torn: its writer was killed inside it"
    return "" if isinstance(record, dict) else "not an object"


def last_record(path: Path, tail_bytes: int = 16_384) -> dict[str, object] | None:
    """The last whole record, read from the tail: the file may be large and still growing."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - tail_bytes))
            lines = file.read().splitlines()
    except OSError:
        return None
    for line in reversed(lines):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(record, dict):
            return record
    return None
