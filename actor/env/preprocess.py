"""From the emulator's screen to the frames that a network sees.

One conversion to gray, one area-averaging resize, one write into the place where the frame stays.
"""

from __future__ import annotations

from math import gcd

import cv2
import numpy as np
from numpy.typing import NDArray

from actor.env.core import SCREEN_HEIGHT, SCREEN_WIDTH

_RING_STACKS = 32


def overlap_weights(source: int, target: int) -> NDArray[np.float32]:
    """How far each output pixel covers each input pixel, over one period: Float32[out, in].

    In units in which an input pixel is `out` long and an output pixel `in` long, so that all
    weights are whole numbers. The pattern repeats gcd(source, target) times along the line.
    """
    period_in, period_out = source // gcd(source, target), target // gcd(source, target)
    left = np.maximum.outer(np.arange(period_out) * period_in, np.arange(period_in) * period_out)
    right = np.minimum.outer(
        np.arange(1, period_out + 1) * period_in, np.arange(1, period_in + 1) * period_out
    )
    weights: NDArray[np.float32] = np.maximum(right - left, 0).astype(np.float32)
    return weights


class ScreenShrinker:
    """Writes a square gray picture of the screen; owns its scratch memory, so one per thread.

    Every output pixel is the exact mean of the area that it covers, rounded half up. The sums are
    whole numbers below 2**24, which float32 holds exactly, so the result does not depend on the
    order of summation: it is the same on every machine. The weights repeat along the screen, so
    two small matrix products do all the work, as fast as cv2.INTER_AREA, which is not exact.
    """

    def __init__(self, size: int, *, crop_top_pixels: int = 0) -> None:
        # More threads would only race the other actors for their cores.
        cv2.setNumThreads(1)
        height = SCREEN_HEIGHT - crop_top_pixels
        self._crop_top_pixels = crop_top_pixels
        self._gray = np.empty((height, SCREEN_WIDTH), dtype=np.uint8)
        self._down = overlap_weights(height, size)
        self._across = np.ascontiguousarray(overlap_weights(SCREEN_WIDTH, size).T)
        out_rows, in_rows = self._down.shape
        in_columns, out_columns = self._across.shape
        self._area = np.float32(in_rows * in_columns)
        self._half_area = self._area / np.float32(2)

        # Three scratch arrays, each with the shapes in which the two products see it.
        exact = np.empty((height, SCREEN_WIDTH), dtype=np.float32)
        self._exact, self._row_periods = exact, exact.reshape(-1, in_rows, SCREEN_WIDTH)
        self._low = np.empty((height // in_rows, out_rows, SCREEN_WIDTH), dtype=np.float32)
        self._column_periods = self._low.reshape(-1, in_columns)
        sums = np.empty((size, size), dtype=np.float32)
        self._sums, self._sums_by_period = sums, sums.reshape(-1, out_columns)

    def write(self, bgrx: NDArray[np.uint8], out: NDArray[np.uint8]) -> None:
        """`bgrx` is the emulator's own contiguous buffer; `out` UInt8[size, size]."""
        cv2.cvtColor(bgrx[self._crop_top_pixels :], cv2.COLOR_BGRA2GRAY, dst=self._gray)
        np.copyto(self._exact, self._gray)
        np.matmul(self._down, self._row_periods, out=self._low)
        np.matmul(self._column_periods, self._across, out=self._sums_by_period)
        np.add(self._sums, self._half_area, out=self._sums)
        np.divide(self._sums, self._area, out=out, casting="unsafe")


class FrameRing:
    """The newest frames of one episode, each stored once, always contiguous in memory.

    The storage is many stacks long; only when its end is reached are the few frames that are
    still needed moved to its beginning.
    """

    def __init__(self, stack: int, height: int, width: int) -> None:
        self._stack = stack
        self._frames = np.zeros((stack * _RING_STACKS, height, width), dtype=np.uint8)
        self._newest = stack - 1

    def next_slot(self) -> NDArray[np.uint8]:
        """The place for the next frame; the caller fills it before anything else is read."""
        if self._newest + 1 == len(self._frames):
            kept = self._stack - 1
            self._frames[:kept] = self._frames[len(self._frames) - kept :]
            self._newest = kept - 1
        self._newest += 1
        slot: NDArray[np.uint8] = self._frames[self._newest]
        return slot

    def repeat_newest(self) -> None:
        """Begin an episode: the newest frame becomes its first, seen in all places of the stack."""
        first = self.newest()
        self._frames[: self._stack] = first
        self._newest = self._stack - 1

    def observation(self) -> NDArray[np.uint8]:
        return self._frames[self._newest + 1 - self._stack : self._newest + 1].copy()

    def newest(self) -> NDArray[np.uint8]:
        frame: NDArray[np.uint8] = self._frames[self._newest].copy()
        return frame
