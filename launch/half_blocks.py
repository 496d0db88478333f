"""Pictures in a terminal: two pixels per character, in 24-bit colour; pure.

The upper half block shows its own colour above and that of the background below.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import cv2
import numpy as np

from common.moments import Picture

UPPER_HALF: Final = "\u2580"
RESET: Final = "\x1b[0m"
# Fewer shades make longer runs of one colour, and a line over ssh carries fewer bytes.
_SHADES: Final = 0xF8


@dataclass(frozen=True, slots=True)
class Area:
    """Of a terminal, in characters."""

    columns: int
    rows: int


def fit(picture: Picture, area: Area) -> Picture:
    """As large as the area allows in the proportions of the picture, never larger than it is."""
    height, width = picture.shape[:2]
    scale = min(1.0, area.columns / width, 2 * area.rows / height)
    size = max(1, int(width * scale)), max(2, int(height * scale) // 2 * 2)
    if size == (width, height):
        return picture
    return np.asarray(cv2.resize(picture, size, interpolation=cv2.INTER_AREA), dtype=np.uint8)


def half_blocks(picture: Picture) -> list[str]:
    """One line of text per two rows of pixels, of which there must be an even number."""
    shaded = picture & _SHADES
    return [
        _line(np.hstack((top, below))) for top, below in zip(shaded[::2], shaded[1::2], strict=True)
    ]


def _line(cells: Picture) -> str:
    """UInt8[columns, 6]: the colours above and below. A colour is told when it changes."""
    starts = np.flatnonzero(np.any(cells[1:] != cells[:-1], axis=1)) + 1
    edges = [0, *starts.tolist(), len(cells)]
    parts: list[str] = []
    for start, end in pairwise(edges):
        red, green, blue, *below = cells[start].tolist()
        parts.append("\x1b[48;2;{};{};{}m".format(*below))
        if [red, green, blue] == below:
            parts.append(" " * (end - start))
        else:
            parts.append(f"\x1b[38;2;{red};{green};{blue}m{UPPER_HALF * (end - start)}")
    return "".join(parts) + RESET
