"""The small gray picture of a screen, made by OpenCV and exact sums, to compare cores with."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from actor.env.core import EmulatorCore
from actor.env.preprocess import ScreenShrinker


def gray_picture(
    screen: NDArray[np.uint8], shape: tuple[int, int], *, crop_top_pixels: int = 0
) -> NDArray[np.uint8]:
    """From RGB UInt8[240, 256, 3] to UInt8[shape]."""
    out = np.zeros(shape, dtype=np.uint8)
    bgrx = cv2.cvtColor(screen, cv2.COLOR_RGB2BGRA).astype(np.uint8)
    ScreenShrinker(*shape, crop_top_pixels=crop_top_pixels).write(bgrx, out)
    return out


def check_shapes_and_crops(core: EmulatorCore) -> None:
    """Every gray picture of a core has the shape and the crop that was asked for."""
    screen = core.screen()
    for shape, crop in (((84, 84), 0), ((84, 84), 32), ((60, 96), 0), ((60, 96), 1)):
        out = np.zeros(shape, dtype=np.uint8)
        core.write_gray(out, crop_top_pixels=crop)
        np.testing.assert_array_equal(out, gray_picture(screen, shape, crop_top_pixels=crop))
