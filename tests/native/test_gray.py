"""The native gray picture against the one that is made from nes_py's screen."""

from __future__ import annotations

import random

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from actor.env.native import _console
from actor.env.native._console import Console
from actor.env.preprocess import ScreenShrinker
from tests.native.console_trio import picture_of
from tests.native.picture_scenes import write_scene, write_video_memory
from tests.native.reference_ppu import PICTURE_HEIGHT, PICTURE_WIDTH
from tests.native.small_game import small_game
from tests.native.synthetic_cartridge import cartridge, random_chr

IDLE = bytes((0x4C, 0x00, 0x80))  # JMP $8000


def idle_console(chr_rom: bytes) -> Console:
    return Console(cartridge(IDLE, chr_rom, vectors=(0x8000, 0x8000, 0x8000)))


def random_picture(seed: int) -> Console:
    """A picture of noise: random tiles, sprites and colours."""
    dice = random.Random(seed)
    console = idle_console(random_chr(dice))
    write_scene(console.write_ppu, dice)
    console.write_ppu(0, 0)
    console.step(0, 1, dice.choice((_console.GRAY, _console.COLOUR)))
    return console


def picture_of_colours(first: int) -> Console:
    """Stripes of four colours, from `first` on."""
    chr_rom = b"\x55" * 8 + b"\x33" * 8 + bytes(8192 - 16)
    console = idle_console(chr_rom)
    write_video_memory(console.write_ppu, 0x3F00, bytes(range(first, first + 4)))
    for register in (6, 6):
        console.write_ppu(register, 0)
    console.write_ppu(1, 0x1E)
    console.step(0, 1, _console.GRAY)
    return console


def rgb_of(console: Console) -> NDArray[np.uint8]:
    rgb = np.empty((PICTURE_HEIGHT, PICTURE_WIDTH, 3), dtype=np.uint8)
    console.rgb(rgb)
    return rgb


def bgrx_of(console: Console) -> NDArray[np.uint8]:
    """As nes_py lays its screen out; the fourth byte means nothing."""
    bgrx = np.full((PICTURE_HEIGHT, PICTURE_WIDTH, 4), 0xA5, dtype=np.uint8)
    bgrx[:, :, :3] = rgb_of(console)[:, :, ::-1]
    return bgrx


def gray_of(console: Console, height: int, width: int, crop_top: int = 0) -> NDArray[np.uint8]:
    gray = np.empty((height, width), dtype=np.uint8)
    console.gray(gray, height, width, crop_top)
    return gray


def exact_mean(gray: NDArray[np.uint8], height: int, width: int) -> NDArray[np.int64]:
    """By repeating every pixel until each output pixel covers whole ones: slow and obvious."""
    rows, columns = gray.shape
    fine = np.repeat(gray.astype(np.int64), height, axis=0)
    sums_down = fine.reshape(height, rows, columns).sum(axis=1)
    fine = np.repeat(sums_down, width, axis=1)
    sums: NDArray[np.int64] = fine.reshape(height, width, columns).sum(axis=2)
    area = rows * columns
    mean: NDArray[np.int64] = (2 * sums + area) // (2 * area)
    return mean


def test_the_64_grays_are_those_of_opencv() -> None:
    seen: dict[int, set[int]] = {}
    for first in range(0, 64, 4):
        console = picture_of_colours(first)
        expected = cv2.cvtColor(bgrx_of(console), cv2.COLOR_BGRA2GRAY)

        gray = gray_of(console, PICTURE_HEIGHT, PICTURE_WIDTH)

        assert np.array_equal(gray, expected)
        for colour in np.unique(picture_of(console)):
            seen.setdefault(int(colour), set()).update(gray[picture_of(console) == colour].tolist())
    assert sorted(seen) == list(range(64))
    assert all(len(grays) == 1 for grays in seen.values())


def test_a_gray_is_the_weighted_sum_of_its_colour() -> None:
    console = random_picture(1)
    red, green, blue = np.moveaxis(rgb_of(console).astype(np.int64), 2, 0)

    expected = (blue * 3735 + green * 19235 + red * 9798 + 2**14) >> 15

    assert np.array_equal(gray_of(console, PICTURE_HEIGHT, PICTURE_WIDTH), expected)


@pytest.mark.parametrize("size", [1, 7, 16, 42, 64, 83, 84, 96, 120, 128, 199, 200])
@pytest.mark.parametrize("crop_top", [0, 1, 32, 40])
def test_the_gray_picture_is_the_screen_shrinkers(size: int, crop_top: int) -> None:
    console = random_picture(100 * crop_top + size)
    expected = np.empty((size, size), dtype=np.uint8)
    ScreenShrinker(size, crop_top_pixels=crop_top).write(bgrx_of(console), expected)

    assert np.array_equal(gray_of(console, size, size, crop_top), expected)


@pytest.mark.parametrize(
    ("height", "width", "crop_top"), [(60, 64, 0), (3, 5, 17), (84, 96, 32), (30, 256, 210)]
)
def test_pictures_that_are_not_square(height: int, width: int, crop_top: int) -> None:
    console = random_picture(height)
    gray = gray_of(console, PICTURE_HEIGHT, PICTURE_WIDTH)

    got = gray_of(console, height, width, crop_top)

    assert np.array_equal(got, exact_mean(gray[crop_top:], height, width))


def test_a_picture_larger_than_its_source_is_refused() -> None:
    console = random_picture(0)

    with pytest.raises(ValueError, match="256 x 140 pixels cannot become one of 141 x 141"):
        gray_of(console, 141, 141, 100)


def test_a_gray_look_draws_what_a_colour_look_draws() -> None:
    gray_look, colour_look, no_look = (Console(small_game(1)) for _ in range(3))
    for _ in range(6):
        gray_look.step(0x29, 1, _console.GRAY)
        colour_look.step(0x29, 1, _console.COLOUR)
        no_look.step(0x29)

        expected = gray_of(colour_look, 84, 84, 8)

        assert np.array_equal(gray_of(gray_look, 84, 84, 8), expected)
        assert np.array_equal(gray_of(no_look, 84, 84, 8), expected)
        assert expected.std() > 0 or not np.any(picture_of(colour_look))
