from __future__ import annotations

from fractions import Fraction
from itertools import product

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from actor.env.preprocess import ScreenShrinker, overlap_weights


def _random_screen(seed: int) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, (240, 256, 4), dtype=np.uint8)


def _shrink(screen: NDArray[np.uint8], size: int, crop_top_pixels: int = 0) -> NDArray[np.uint8]:
    out = np.zeros((size, size), dtype=np.uint8)
    ScreenShrinker(size, crop_top_pixels=crop_top_pixels).write(screen, out)
    return out


def _exact_mean(gray: NDArray[np.uint8], row: int, column: int, size: int) -> int:
    """Slow and exact: the mean of the covered area in rational numbers, rounded half up."""
    total = Fraction(0)
    tall, wide = Fraction(gray.shape[0], size), Fraction(gray.shape[1], size)
    rows = range(int(row * tall), min(gray.shape[0], int((row + 1) * tall) + 1))
    columns = range(int(column * wide), min(gray.shape[1], int((column + 1) * wide) + 1))
    for y, x in product(rows, columns):
        height = min((row + 1) * tall, Fraction(y + 1)) - max(row * tall, Fraction(y))
        width = min((column + 1) * wide, Fraction(x + 1)) - max(column * wide, Fraction(x))
        total += max(height, Fraction(0)) * max(width, Fraction(0)) * int(gray[y, x])
    return int(total / (tall * wide) + Fraction(1, 2))


@pytest.mark.parametrize("size", [84, 83, 96, 16])
def test_every_pixel_is_the_exact_mean_of_its_area(size: int) -> None:
    screen = _random_screen(1)
    gray = cv2.cvtColor(screen, cv2.COLOR_BGRA2GRAY).astype(np.uint8)

    small = _shrink(screen, size)

    spots = [(0, 0), (0, size - 1), (size - 1, 0), (size - 1, size - 1), (size // 2, size // 3)]
    for row, column in spots:
        assert small[row, column] == _exact_mean(gray, row, column, size)


def test_agrees_with_area_interpolation_of_opencv() -> None:
    screen = _random_screen(2)
    gray = cv2.cvtColor(screen, cv2.COLOR_BGRA2GRAY)

    theirs = cv2.resize(gray, (84, 84), interpolation=cv2.INTER_AREA)

    assert np.abs(theirs.astype(int) - _shrink(screen, 84)).max() <= 1


def test_white_stays_white_and_the_unused_byte_does_not_matter() -> None:
    screen = np.full((240, 256, 4), 255, dtype=np.uint8)
    screen[:, :, 3] = 17

    assert (_shrink(screen, 84) == 255).all()


def test_the_channels_are_blue_green_red() -> None:
    screen = np.zeros((240, 256, 4), dtype=np.uint8)
    screen[:, :, 0] = 255

    assert _shrink(screen, 8).max() == 29  # 0.114 x 255: blue is the darkest


def test_crop_removes_the_top() -> None:
    screen = np.zeros((240, 256, 4), dtype=np.uint8)
    screen[:32] = 255

    assert _shrink(screen, 84).max() == 255
    assert _shrink(screen, 84, crop_top_pixels=32).max() == 0


def test_weights_cover_each_input_once() -> None:
    weights = overlap_weights(240, 84)

    assert weights.shape == (7, 20)
    assert (weights.sum(axis=0) == 7).all()
    assert (weights.sum(axis=1) == 20).all()
