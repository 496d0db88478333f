"""A level as one long picture, put together from screens as they are seen; pure.

What was seen once stays: a pixel is taken from the first screen in which nothing stood before it.
So blocks are as they were before Mario hit them, and enemies leave no trace.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from actor.env.core import SCREEN_HEIGHT, SCREEN_WIDTH
from actor.env.scenery import STATUS_BAR_PIXELS, Scenery

MAX_WIDTH: Final = 64 * 0x100
"""Twice as long as the longest level."""
_GROWTH: Final = 16 * 0x100
_OPAQUE: Final = 255
_CHANNELS: Final = 4


class LevelPicture:
    """One area of a stage."""

    def __init__(self, area: int, pixels: NDArray[np.uint8] | None = None) -> None:
        """`pixels` as `image` gave them, to go on with a picture of earlier."""
        self.area = area
        self._pixels = np.zeros((SCREEN_HEIGHT, 0, _CHANNELS), dtype=np.uint8)
        self._width = 0
        if pixels is not None:
            self._grow(pixels.shape[1])
            known = pixels[:, :MAX_WIDTH]
            self._pixels[STATUS_BAR_PIXELS:, : known.shape[1]] = known[STATUS_BAR_PIXELS:]

    @property
    def width(self) -> int:
        """Pixels up to the last column that was seen."""
        return self._width

    def add(self, screen: NDArray[np.uint8], scenery: Scenery) -> bool:
        """Take over what was never seen; whether there was anything. `screen` is RGB."""
        right = scenery.left + SCREEN_WIDTH
        if scenery.area != self.area or right > MAX_WIDTH or not scenery.visible.any():
            return False
        self._grow(right)
        part = self._pixels[:, scenery.left : right]
        is_new = scenery.visible & (part[..., -1] == 0)
        part[is_new, :-1] = screen[is_new]
        part[is_new, -1] = _OPAQUE
        return bool(is_new.any())

    def covered(self) -> list[tuple[int, int]]:
        """The columns that were seen, as ranges without their ends."""
        seen = self._pixels[:, : self._width, -1].any(axis=0).astype(np.int8)
        edges = np.flatnonzero(np.diff(seen, prepend=0, append=0))
        return [(int(start), int(end)) for start, end in edges.reshape(-1, 2)]

    def image(self) -> NDArray[np.uint8]:
        """RGBA UInt8[240, width, 4]; clear where nothing is known.

        The rows of the status bar, behind which nobody can see, get the colour of the sky.
        """
        image = self._pixels[:, : self._width].copy()
        first_row = image[STATUS_BAR_PIXELS]
        seen = first_row[first_row[:, -1] > 0]
        if len(seen):
            colours, counts = np.unique(seen, axis=0, return_counts=True)
            columns = image[..., -1].any(axis=0)
            image[:STATUS_BAR_PIXELS, columns] = colours[counts.argmax()]
        return image

    def _grow(self, width: int) -> None:
        width = min(width, MAX_WIDTH)
        if width > self._pixels.shape[1]:
            missing = -(-width // _GROWTH) * _GROWTH - self._pixels.shape[1]
            self._pixels = np.pad(self._pixels, ((0, 0), (0, missing), (0, 0)))
        self._width = max(self._width, width)
