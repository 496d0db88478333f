"""Files of a run as strangers' bytes: no links, nothing but regular files, never more than asked.

A run folder may have come from elsewhere, may be written at this moment and may vanish: whatever
cannot be read is None.
"""

from __future__ import annotations

import json
import math
import os
import stat
from pathlib import Path

MAX_JSON_BYTES = 8 * 1024 * 1024
MAX_DIGITS = 300
"""Of a whole number: a longer one is beyond what a float holds."""


def open_regular(path: Path) -> int | None:
    """A descriptor for reading. Not blocking: a pipe in its place would wait for ever."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        if path.parent.is_symlink():
            return None
        descriptor = os.open(path, flags)
    except (OSError, ValueError):
        return None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        return None
    return descriptor


def read_bytes(path: Path, max_bytes: int) -> bytes | None:
    """All of a small file; None when it is larger, or not there."""
    descriptor = open_regular(path)
    if descriptor is None:
        return None
    with os.fdopen(descriptor, "rb") as file:
        if os.fstat(descriptor).st_size > max_bytes:
            return None
        try:
            return file.read(max_bytes)
        except OSError:
            return None


def read_tail(path: Path, tail_bytes: int) -> bytes:
    """The end of a file, from the beginning of a line on; empty when it cannot be read."""
    descriptor = open_regular(path)
    if descriptor is None:
        return b""
    with os.fdopen(descriptor, "rb") as file:
        try:
            size = os.fstat(descriptor).st_size
            file.seek(max(0, size - tail_bytes))
            content = file.read(tail_bytes)
        except OSError:
            return b""
    if size <= tail_bytes:
        return content
    return content.partition(b"\n")[2]


def tail_lines(path: Path, count: int, tail_bytes: int) -> list[str]:
    return read_tail(path, tail_bytes).decode("utf-8", errors="replace").splitlines()[-count:]


def parse_object(line: bytes) -> dict[str, object] | None:
    """A JSON object, or None for anything else: a line may be torn, or not ours.

    Numbers in it are finite: NaN and Infinity are no JSON, and no browser would read them in an
    answer of ours, so they are null from here on.
    """
    try:
        record = json.loads(
            line, parse_constant=_no_number, parse_float=_finite, parse_int=_bounded
        )
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _no_number(_: str) -> None:
    return None


def _finite(text: str) -> float | None:
    value = float(text)
    return value if math.isfinite(value) else None


def _bounded(text: str) -> int | None:
    return int(text) if len(text) <= MAX_DIGITS else None


def read_object(path: Path, max_bytes: int = MAX_JSON_BYTES) -> dict[str, object] | None:
    content = read_bytes(path, max_bytes)
    return None if content is None else parse_object(content)


def tail_records(path: Path, tail_bytes: int) -> list[dict[str, object]]:
    """Whole records at the end of a JSON lines file, oldest first."""
    parsed = (parse_object(line) for line in read_tail(path, tail_bytes).splitlines())
    return [record for record in parsed if record is not None]


def modified_s(path: Path) -> float | None:
    """When the file was changed last, seconds since 1970."""
    try:
        return path.lstat().st_mtime
    except (OSError, ValueError):
        return None
