"""Files of actors on other machines, such as logs and heartbeats, brought home piece by piece."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import time
from collections import defaultdict
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

from common.ids import PEER_ID_PATTERN
from common.logs import RareLog, open_log

log = logging.getLogger(__name__)

PIECE_BYTES = 65_536
"""Of all files together in one answer: little enough that Ray keeps it out of its object store."""
MOST_FILE_BYTES = 64 << 20
"""That one file at home grows to; the whole one then stays on its node."""
_PEER = PEER_ID_PATTERN.pattern
WANTED = re.compile(
    rf"logs/{_PEER}\.log|traces/{_PEER}\.jsonl|heartbeats/(?=actor|relay){_PEER}\.jsonl|diagnostics/"
    rf"(construction\.jsonl|{_PEER}-[0-9]{{1,10}}-stacks\.txt|slow_step_trace_[0-9T_]{{1,32}}\.log)"
)
FOLDERS = ("logs", "heartbeats", "traces", "diagnostics")
Marks = dict[str, tuple[int, int]]
"""By name: which file has been begun (its inode), and how many bytes of it have come."""
Pieces = dict[str, tuple[int, bytes]]
"""By name: of which file (its inode), and what comes next in it."""


def read_pieces(
    root: Path, marks: Mapping[str, tuple[int, int]], *, turn: int = 0, is_last: bool = False
) -> Pieces:
    """On the node: what files below `root` hold beyond these marks, in whole lines.

    Every turn begins at another file, so that one that grows fast does not keep the others back.
    `is_last` is for a node on which nobody writes any more: a line without its end comes too.
    """
    pieces, room = Pieces(), PIECE_BYTES
    names = _names(root)
    first = turn % max(len(names), 1)
    for name in (*names[first:], *names[:first]):
        if room <= 0:
            break
        inode, piece = _next_piece(root / name, marks.get(name, (0, 0)), room, is_last)
        if piece:
            pieces[name] = (inode, piece)
            room -= len(piece)
    return pieces


def _names(root: Path) -> list[str]:
    """Also of a file that has just been rotated, and whose successor is not there yet."""
    paths = [path for folder in FOLDERS for path in root.glob(f"{folder}/*")]
    names = {path.relative_to(root).as_posix().removesuffix(".1") for path in paths}
    return sorted(name for name in names if WANTED.fullmatch(name))


def _rotated(path: Path) -> Path:
    """Where `common.jsonl.JsonlWriter` puts a file that has become too large."""
    return path.with_name(path.name + ".1")


def _next_piece(path: Path, mark: tuple[int, int], most: int, is_last: bool) -> tuple[int, bytes]:
    """Of the rotated file to its end, unless its successor has been begun; then of that one."""
    with ExitStack() as held:
        # In this order: a file that is rotated just now is found twice, and not missed.
        now, before = (_opened(one, held) for one in (path, _rotated(path)))
        for file in (before, now):
            is_skipped = file is before and now is not None and _inode(now) == mark[0]
            if file is None or is_skipped:
                continue
            file.seek(mark[1] if _inode(file) == mark[0] else 0)
            if rest := file.read(most):
                is_over = file is before or is_last
                return _inode(file), _whole_lines(rest, most, is_over=is_over)
    return 0, b""


def _opened(path: Path, held: ExitStack) -> BinaryIO | None:
    try:
        return held.enter_context(path.open("rb"))
    except OSError:
        return None


def _inode(file: BinaryIO) -> int:
    return os.fstat(file.fileno()).st_ino


def _whole_lines(rest: bytes, most: int, *, is_over: bool) -> bytes:
    """A line that is longer than any answer is taken in parts: it must not stop the others."""
    if len(rest) < most and is_over:
        return rest
    end = rest.rfind(b"\n") + 1
    return rest if end == 0 and len(rest) == PIECE_BYTES else rest[:end]


class Gathering:
    """At home: appends what nodes hand over, and knows how far each file has come."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._marks: defaultdict[str, Marks] = defaultdict(dict)
        self._cut: set[str] = set()
        """Nodes with a file that is longer than its copy."""
        self._rare = RareLog()

    def marks(self, node: str) -> Marks:
        return dict(self._marks[node])

    def is_whole(self, node: str) -> bool:
        """Whether nothing of what it handed over was left out."""
        return node not in self._cut

    def take(self, node: str, pieces: Pieces) -> None:
        for name, (inode, piece) in pieces.items():
            if WANTED.fullmatch(name) is None:
                log.warning("a file of another name was handed over", extra={"file": name[:100]})
                continue
            try:
                known = self._place(node, name, inode)
                taken = self._append(node, self._root / name, piece)
                self._marks[node][name] = (inode, known + taken)
            except OSError as error:
                # It will be handed over again.
                if self._rare.allows(name, time.monotonic()):
                    extra = {"file": name, "error": str(error)}
                    log.warning("not brought home", extra=extra)

    def _place(self, node: str, name: str, inode: int) -> int:
        """Bytes of this file that are at home; one that was rotated there is rotated here too."""
        path, known = self._root / name, self._marks[node].get(name)
        if known is None:
            _end_torn_line(path)
            return 0
        if known[0] != inode:
            with contextlib.suppress(FileNotFoundError):
                path.replace(_rotated(path))
            known = self._marks[node][name] = (inode, 0)
        return known[1]

    def _append(self, node: str, path: Path, piece: bytes) -> int:
        """Bytes that need not come again: on a disk that is nearly full only a part is written."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(open_log(path), "ab", buffering=0) as file:
            if file.tell() < MOST_FILE_BYTES:
                return file.write(piece) or 0
        self._cut.add(node)
        return len(piece)


def _end_torn_line(path: Path) -> None:
    """Whoever wrote to it before was stopped inside a line; what comes now begins with another."""
    try:
        with path.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            is_torn = file.read(1) != b"\n"
    except OSError:
        # There is none, or it is empty.
        return
    if is_torn:
        with os.fdopen(open_log(path), "ab", buffering=0) as file:
            file.write(b"\n")
