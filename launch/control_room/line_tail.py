"""Follows a JSON lines file as it grows, is rotated, torn or replaced; never reads gigabytes.

A file beyond `whole_bytes` is read at places spread evenly over it, a line at each, and in full
only at its end: the curve keeps its shape, and opening it takes a moment.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from launch.control_room.safe_files import open_regular, parse_object

WHOLE_BYTES: Final = 64 * 1024 * 1024
"""As much as a file of ours grows to before it is rotated."""
SAMPLED_LINES: Final = 4_000
MAX_LINE_BYTES: Final = 64 * 1024
CHUNK_BYTES: Final = 4 * 1024 * 1024
Record = dict[str, object]


@dataclass(slots=True)
class LineTail:
    """Call `read_new` again and again; it yields every record once, in the order of the file."""

    path: Path
    whole_bytes: int = WHOLE_BYTES
    sampled_lines: int = SAMPLED_LINES
    _inode: int | None = None
    _offset: int = 0
    """End of the last whole line that was read."""
    was_replaced: bool = field(default=False, init=False)
    """The file is another one, or shorter than before, and not by rotation: forget what it said."""

    def read_new(self) -> Iterator[Record]:
        self.was_replaced = False
        descriptor = open_regular(self.path)
        if descriptor is None:
            # Between the two steps of a rotation there is no file for a moment.
            return
        try:
            yield from self._read(descriptor)
        finally:
            os.close(descriptor)

    def _read(self, descriptor: int) -> Iterator[Record]:
        status = os.fstat(descriptor)
        if self._inode is None:
            yield from self._read_first(status.st_ino)
        elif status.st_ino != self._inode:
            yield from self._finish_rotated()
        if status.st_size < self._offset:
            self._offset, self.was_replaced = 0, True
        self._inode = status.st_ino
        yield from self._follow(descriptor, status.st_size)

    def _read_first(self, inode: int) -> Iterator[Record]:
        """What was rotated away before we came."""
        rotated = open_regular(self._rotated_path)
        if rotated is None:
            return
        try:
            status = os.fstat(rotated)
            if status.st_ino != inode:
                self._offset = 0
                yield from self._follow(rotated, status.st_size)
        finally:
            os.close(rotated)
        self._offset = 0

    def _finish_rotated(self) -> Iterator[Record]:
        """The lines that came to the old file between our last look and its rotation."""
        rotated = open_regular(self._rotated_path)
        is_ours = rotated is not None and os.fstat(rotated).st_ino == self._inode
        self.was_replaced = not is_ours
        if rotated is not None:
            try:
                if is_ours:
                    yield from self._follow(rotated, os.fstat(rotated).st_size)
            finally:
                os.close(rotated)
        self._offset = 0

    @property
    def _rotated_path(self) -> Path:
        return self.path.with_name(self.path.name + ".1")

    def _follow(self, descriptor: int, size: int) -> Iterator[Record]:
        if size - self._offset > self.whole_bytes:
            tail_from = size - self.whole_bytes // 8
            yield from self._sample(descriptor, tail_from)
            # The line that holds this place was cut by the sampling.
            self._offset = tail_from + _line_rest(descriptor, tail_from)
        while self._offset < size:
            chunk = os.pread(descriptor, min(CHUNK_BYTES, size - self._offset), self._offset)
            end = chunk.rfind(b"\n") + 1
            if not end:
                if len(chunk) < CHUNK_BYTES:
                    return  # Torn, or being written: its end comes later.
                end = len(chunk)
            self._offset += end
            yield from _records(chunk[:end].splitlines())

    def _sample(self, descriptor: int, end: int) -> Iterator[Record]:
        begin = self._offset
        for number in range(self.sampled_lines):
            place = begin + (end - begin) * number // self.sampled_lines
            piece = os.pread(descriptor, MAX_LINE_BYTES, place)
            # The first line of a piece is cut, unless it is the first of the file.
            lines = piece.split(b"\n", 2)
            whole = lines[0] if place == begin else lines[1] if len(lines) > 2 else b""  # noqa: PLR2004
            yield from _records([whole])


def _line_rest(descriptor: int, place: int) -> int:
    return os.pread(descriptor, MAX_LINE_BYTES, place).find(b"\n") + 1


def _records(lines: list[bytes]) -> Iterator[Record]:
    for line in lines:
        record = parse_object(line)
        if record is not None:
            yield record
