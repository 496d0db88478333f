"""From the screen of an emulator that draws in colour to the frame that a network sees.

One conversion to gray, one area-averaging resize, one write into the place where the frame stays.
"""

from __future__ import annotations

from math import gcd

import cv2
import numpy as np
from numpy.typing import NDArray

from actor.env.core import SCREEN_HEIGHT, SCREEN_WIDTH


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
    """Writes a small gray picture of the screen; owns its scratch memory, so one per thread.

    Every output pixel is the exact mean of the area that it covers, rounded half up. The sums are
    whole numbers below 2**24, which float32 holds exactly, so the result does not depend on the
    order of summation: it is the same on every machine. The weights repeat along the screen, so
    two small matrix products do all the work, as fast as cv2.INTER_AREA, which is not exact.
    """

    def __init__(self, height: int, width: int | None = None, *, crop_top_pixels: int = 0) -> None:
        """Without a width the picture is square."""
        width = height if width is None else width
        self.shape = (height, width, crop_top_pixels)
        # More threads would only race the other actors for their cores.
        cv2.setNumThreads(1)
        source_height = SCREEN_HEIGHT - crop_top_pixels
        self._crop_top_pixels = crop_top_pixels
        self._gray = np.empty((source_height, SCREEN_WIDTH), dtype=np.uint8)
        self._down = overlap_weights(source_height, height)
        self._across = np.ascontiguousarray(overlap_weights(SCREEN_WIDTH, width).T)
        out_rows, in_rows = self._down.shape
        in_columns, out_columns = self._across.shape
        self._area = np.float32(in_rows * in_columns)
        self._half_area = self._area / np.float32(2)

        # Three scratch arrays, each with the shapes in which the two products see it.
        exact = np.empty((source_height, SCREEN_WIDTH), dtype=np.float32)
        self._exact, self._row_periods = exact, exact.reshape(-1, in_rows, SCREEN_WIDTH)
        self._low = np.empty((source_height // in_rows, out_rows, SCREEN_WIDTH), dtype=np.float32)
        self._column_periods = self._low.reshape(-1, in_columns)
        sums = np.empty((height, width), dtype=np.float32)
        self._sums, self._sums_by_period = sums, sums.reshape(-1, out_columns)

    def write(self, bgrx: NDArray[np.uint8], out: NDArray[np.uint8]) -> None:
        """`bgrx` is the emulator's own contiguous buffer; `out` UInt8[height, width]."""
        cv2.cvtColor(bgrx[self._crop_top_pixels :], cv2.COLOR_BGRA2GRAY, dst=self._gray)
        np.copyto(self._exact, self._gray)
        np.matmul(self._down, self._row_periods, out=self._low)
        np.matmul(self._column_periods, self._across, out=self._sums_by_period)
        np.add(self._sums, self._half_area, out=self._sums)
        np.divide(self._sums, self._area, out=out, casting="unsafe")
