"""Films of evaluations: which are the newest, and the part of one that a browser asks for."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from common.video_folder import FILM_FILE
from launch.control_room.safe_files import modified_s, open_regular

MAX_FILM_BYTES: Final = 64 * 1024 * 1024
"""Some thirty minutes; a longer one is not ours."""
MAX_PART_BYTES: Final = 1024 * 1024
"""A browser that wants a part asks again for what comes after it."""
PIECE_BYTES: Final = 256 * 1024
"""Of a film in memory, for each who watches it."""
MAX_FILES: Final = 1_000
TYPES: Final = {".mp4": "video/mp4", ".png": "image/png"}
RANGE: Final = re.compile(r"bytes=(\d{0,15})-(\d{0,15})")
ORDER: Final = ("best", "worst")


class UnsatisfiableRange(Exception):
    """The part begins after the end of the film."""

    def __init__(self, size: int) -> None:
        super().__init__(f"the film has {size} bytes")
        self.size = size


@dataclass(frozen=True, slots=True, kw_only=True)
class FilmPart:
    """Bytes from `begin` to before `end`, of a film of `size` bytes."""

    path: Path
    begin: int
    end: int
    size: int
    is_partial: bool
    media_type: str

    @property
    def headers(self) -> Mapping[str, str]:
        told = {"accept-ranges": "bytes", "content-length": str(self.end - self.begin)}
        if self.is_partial:
            told["content-range"] = f"bytes {self.begin}-{self.end - 1}/{self.size}"
        return told

    def pieces(self) -> Iterator[bytes]:
        """The bytes, read as they are sent; fewer where the film is gone by then."""
        descriptor = open_regular(self.path)
        if descriptor is None:
            return
        with os.fdopen(descriptor, "rb") as file:
            file.seek(self.begin)
            left = self.end - self.begin
            while left and (piece := file.read(min(left, PIECE_BYTES))):
                left -= len(piece)
                yield piece


def newest_films(folder: Path) -> list[dict[str, object]]:
    """Of the evaluation that was filmed last, or of the one before it while only that has both."""
    found: dict[str, dict[str, float]] = {}
    for path in _entries(folder):
        named = FILM_FILE.fullmatch(path.name)
        written_s = modified_s(path) if named and named[3] == "mp4" else None
        if named and written_s is not None:
            found.setdefault(named[1], {})[named[2]] = written_s
    if not found:
        return []
    steps = _shown_evaluation(found)
    return [
        {
            "name": f"eval-{steps}-{which}",
            "which": which,
            "global_step": int(steps),
            "version": f"{found[steps][which]:.3f}",
        }
        for which in ORDER
        if which in found[steps]
    ]


def _shown_evaluation(found: Mapping[str, Mapping[str, float]]) -> str:
    """By age: a run may go back to an older checkpoint.

    The worst film comes after the best, and never when the run has ended meanwhile. An evaluation
    of one episode has no other: two such in a row are shown as they are.
    """
    newest = sorted(found, key=lambda one: (max(found[one].values()), one), reverse=True)[:2]
    whole = [steps for steps in newest if len(found[steps]) == len(ORDER)]
    return (whole or newest)[0]


def _entries(folder: Path) -> list[Path]:
    try:
        return [] if folder.is_symlink() else sorted(folder.iterdir())[:MAX_FILES]
    except OSError:
        return []


def find_film(path: Path, wanted: str) -> FilmPart | None:
    """`wanted` is the Range header, or empty. None when there is no such film, or too large a one.

    What is not one plain range is answered with the whole film, as HTTP allows.
    """
    descriptor = open_regular(path)
    if descriptor is None:
        return None
    size = os.fstat(descriptor).st_size
    os.close(descriptor)
    if size > MAX_FILM_BYTES:
        return None
    part = parse_range(wanted, size)
    begin, end = part or (0, size)
    return FilmPart(
        path=path,
        begin=begin,
        end=end,
        size=size,
        is_partial=part is not None,
        media_type=TYPES[path.suffix],
    )


def parse_range(header: str, size: int) -> tuple[int, int] | None:
    """First byte and the byte after the last, at most `MAX_PART_BYTES`; None for the whole."""
    match = RANGE.fullmatch(header.strip())
    if match is None or not (match[1] or match[2]):
        return None
    if not match[1]:
        # The last so many bytes.
        begin, end = max(0, size - int(match[2])), size
    else:
        begin, end = int(match[1]), min(size, int(match[2]) + 1 if match[2] else size)
        if match[2] and int(match[2]) < begin:
            return None
    if begin >= size:
        raise UnsatisfiableRange(size)
    return begin, min(end, begin + MAX_PART_BYTES)
