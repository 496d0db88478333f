from __future__ import annotations

import numpy as np
import pytest

from common.moments import Picture
from launch.half_blocks import RESET, UPPER_HALF, Area, fit, half_blocks


def picture(height: int, width: int) -> Picture:
    return np.zeros((height, width, 3), dtype=np.uint8)


@pytest.mark.parametrize(
    ("columns", "rows", "expected"),
    [
        (300, 200, (240, 256)),
        (128, 200, (120, 128)),
        (300, 60, (120, 128)),
        (80, 24, (48, 51)),
        (1, 1, (2, 1)),
    ],
)
def test_a_picture_fits_in_its_proportions(
    columns: int, rows: int, expected: tuple[int, int]
) -> None:
    assert fit(picture(240, 256), Area(columns, rows)).shape[:2] == expected


def test_two_rows_of_pixels_become_one_line() -> None:
    both = picture(4, 3)
    both[0] = (248, 0, 0)
    both[1] = (0, 0, 248)

    first, second = half_blocks(both)

    assert first == f"\x1b[48;2;0;0;248m\x1b[38;2;248;0;0m{UPPER_HALF * 3}{RESET}"
    assert second == f"\x1b[48;2;0;0;0m   {RESET}"


def test_a_colour_is_told_once_for_a_run() -> None:
    halves = picture(2, 10)
    halves[:, 5:] = 200

    (line,) = half_blocks(halves)

    assert line.count("\x1b[48;2;") == 2
    assert line.count(" ") == 10
