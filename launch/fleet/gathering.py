"""Logs and traces of actors on other machines, brought home piece by piece."""

from __future__ import annotations

import logging
import os
import re
import time
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from common.ids import PEER_ID_PATTERN
from common.logs import RareLog, open_log

log = logging.getLogger(__name__)

PIECE_BYTES = 65_536
"""Of all files together in one answer: little enough that Ray keeps it out of its object store."""
MOST_FILE_BYTES = 64 << 20
"""That one file at home grows to; the whole one then stays on its node."""
WANTED = re.compile(
    rf"(logs/{PEER_ID_PATTERN.pattern}\.log|traces/{PEER_ID_PATTERN.pattern}\.jsonl)"
)
Pieces = dict[str, bytes]


def read_pieces(root: Path, offsets: Mapping[str, int]) -> Pieces:
    """On the node: what files below `root` hold beyond these offsets, in whole lines."""
    pieces, room = Pieces(), PIECE_BYTES
    for path in sorted([*root.glob("logs/*.log"), *root.glob("traces/*.jsonl")]):
        name = path.relative_to(root).as_posix()
        if room <= 0:
            break
        piece = _whole_lines(path, offsets.get(name, 0), room)
        if WANTED.fullmatch(name) and piece:
            pieces[name] = piece
            room -= len(piece)
    return pieces


def _whole_lines(path: Path, offset: int, most: int) -> bytes:
    """A line that is longer than the room is taken in parts: it must not stop the others."""
    try:
        with path.open("rb") as file:
            file.seek(offset)
            piece = file.read(most)
    except OSError:
        return b""
    end = piece.rfind(b"\n") + 1
    return piece if end == 0 and len(piece) == most else piece[:end]


class Gathering:
    """At home: appends what nodes hand over, and knows how far each file has come."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._offsets: defaultdict[str, dict[str, int]] = defaultdict(dict)
        self._cut: set[str] = set()
        """Nodes with a file that is longer than its copy."""
        self._rare = RareLog()

    def offsets(self, node: str) -> dict[str, int]:
        return dict(self._offsets[node])

    def is_whole(self, node: str) -> bool:
        """Whether nothing of what it handed over was left out."""
        return node not in self._cut

    def take(self, node: str, pieces: Mapping[str, bytes]) -> None:
        for name, piece in pieces.items():
            if WANTED.fullmatch(name) is None:
                log.warning("a file of another name was handed over", extra={"file": name[:100]})
                continue
            known = self._offsets[node]
            try:
                known[name] = known.get(name, 0) + self._append(node, self._root / name, piece)
            except OSError as error:
                # It will be handed over again.
                if self._rare.allows(name, time.monotonic()):
                    extra = {"file": name, "error": str(error)}
                    log.warning("not brought home", extra=extra)

    def _append(self, node: str, path: Path, piece: bytes) -> int:
        """Bytes that need not come again: on a disk that is nearly full only a part is written."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(open_log(path), "ab", buffering=0) as file:
            if file.tell() < MOST_FILE_BYTES:
                return file.write(piece) or 0
        self._cut.add(node)
        return len(piece)
