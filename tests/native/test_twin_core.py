from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from actor.env import ram as memory
from actor.env.native_core import NativeCore
from tests.native.twin_core import CoresDiffer, TwinCore

_UNUSED_BY_THE_START_SCREEN = 0x07D0


class SpottedCore(NativeCore):
    """Shows one pixel that is not there."""

    def screen(self) -> NDArray[np.uint8]:
        picture = super().screen()
        picture[100, 20, 1] ^= 1
        return picture

    def write_gray(self, out: NDArray[np.uint8], *, crop_top_pixels: int = 0) -> None:
        super().write_gray(out, crop_top_pixels=crop_top_pixels)
        out[7, 3] ^= 1


def test_equal_cores_play_on_and_count_frames() -> None:
    twin = TwinCore(NativeCore(), NativeCore())

    twin.step(0, 40)
    twin.save_state()
    twin.step(8, 20)
    twin.load_state()
    twin.power_on()

    assert twin.frames == 60


def test_a_byte_that_differs_is_named_with_its_frame_and_both_values() -> None:
    reference, other = NativeCore(), NativeCore()
    twin = TwinCore(reference, other)
    twin.step(0, 10)
    other.ram[_UNUSED_BY_THE_START_SCREEN] = 0x5A

    with pytest.raises(CoresDiffer, match=r"^frame 11: 1 bytes of RAM: \$07D0 is \$00 and \$5A$"):
        twin.step(0)


def test_a_pixel_that_differs_is_named_on_the_third_frame() -> None:
    twin = TwinCore(NativeCore(), SpottedCore())
    twin.step(0, 2)

    with pytest.raises(CoresDiffer, match="frame 3: 1 pixels, the first in row 100, column 20"):
        twin.step(0)


def test_screens_are_compared_after_a_load_and_when_looked_at() -> None:
    twin = TwinCore(NativeCore(), SpottedCore())
    twin.save_state()
    gray = np.zeros((84, 84), dtype=np.uint8)

    for look in (twin.load_state, twin.screen):
        with pytest.raises(CoresDiffer, match="row 100, column 20"):
            look()
    with pytest.raises(CoresDiffer, match="row 7, column 3"):
        twin.write_gray(gray)


def test_pokes_reach_both_cores() -> None:
    reference, other = NativeCore(), NativeCore()
    twin = TwinCore(reference, other)
    twin.step(0, 60)
    untouched = bytes(other.ram)

    twin.ram[memory.POWER] = 2
    assert bytes(other.ram) == untouched
    twin.step(0, 3)

    assert other.ram[memory.POWER] == reference.ram[memory.POWER] == 2


def test_a_poke_does_not_hide_another_difference() -> None:
    reference, other = NativeCore(), NativeCore()
    twin = TwinCore(reference, other)
    other.ram[_UNUSED_BY_THE_START_SCREEN] = 1
    twin.ram[memory.POWER] = 2

    with pytest.raises(CoresDiffer, match="07D0"):
        twin.step(0)
