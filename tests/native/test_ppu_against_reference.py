"""The native picture unit, run in small and in large pieces, against the one that does dots."""

from __future__ import annotations

import pytest

from tests.native.picture_scenes import random_accesses, random_sprites
from tests.native.picture_units import units_with_a_scene
from tests.native.reference_ppu import DOTS_PER_LINE

MORE_SEEDS = [pytest.param(seed, marks=pytest.mark.nightly) for seed in range(1000, 1200)]


@pytest.mark.parametrize("seed", [*range(10), *MORE_SEEDS])
def test_registers_touched_while_the_picture_is_drawn(seed: int) -> None:
    units, dice = units_with_a_scene(seed)

    for number, access in enumerate(random_accesses(dice, dice.choice((20, 150, 400)))):
        units.perform(access)
        units.check_state(f"access {number}: {access}")
    units.run_to_the_frames_end()

    units.check_all("at the frame's end")


@pytest.mark.parametrize("control", [0x00, 0x08, 0x10, 0x20, 0x38])
def test_two_quiet_frames(control: int) -> None:
    """The second is odd: its pre-render line is a dot shorter, and line 0 shows old sprites."""
    units, _ = units_with_a_scene(f"quiet {control}")
    units.write(0, control)

    for frame in range(2):
        units.run_to_the_frames_end()
        units.check_all(f"frame {frame}")


@pytest.mark.parametrize("sprite_height_bit", [0x00, 0x20])
@pytest.mark.parametrize("mask", [0x18, 0x1A, 0x1C, 0x08, 0x10, 0x14])
def test_what_is_shown_at_the_left_edge(mask: int, sprite_height_bit: int) -> None:
    """Sprites everywhere near the edge, on a few lines so that the reference is quick."""
    units, dice = units_with_a_scene(f"left {mask}")
    units.write(3, 0)
    for sprite in range(64):
        for value in (dice.randrange(12), dice.randrange(256), dice.randrange(256), sprite % 16):
            units.write(4, value)
    units.write(3, 0)
    units.write(0, sprite_height_bit)
    units.write(1, mask)

    units.run(DOTS_PER_LINE * 30)
    units.write(1, 0)
    units.run_to_the_frames_end()

    units.check_all("at the frame's end")


@pytest.mark.parametrize("sprite_height_bit", [0x00, 0x08, 0x20])
def test_the_first_line_shows_the_list_of_the_last(sprite_height_bit: int) -> None:
    """With rows that C computes as negative, and addresses that wrap at 16 bits."""
    units, dice = units_with_a_scene(f"line 0 {sprite_height_bit}")
    units.write(3, 0)
    for sprite in range(8):
        top = 239 - dice.randrange(8)
        for value in (top, sprite % 3, dice.choice((0, 0x80)) | dice.randrange(4), sprite * 30):
            units.write(4, value)
    units.write(3, 0)
    units.write(0, sprite_height_bit)
    units.write(1, 0)
    units.run_to_the_frames_end()
    units.check_state("before the frame")

    units.write(1, 0x1E)
    units.run(DOTS_PER_LINE * 3)
    units.write(1, 0)
    units.run_to_the_frames_end()

    units.check_all("after the frame")


@pytest.mark.parametrize("seed", range(6))
def test_the_odd_frames_missing_dot_depends_on_what_is_shown_at_dot_340(seed: int) -> None:
    units, dice = units_with_a_scene(f"odd {seed}")
    units.write(1, 0)
    units.run_to_the_frames_end()

    units.run(337 + seed // 2 % 3)
    units.write(1, dice.choice((0x18, 0x1E)) if seed % 2 else dice.choice((0x08, 0x10, 0)))
    units.run(3)
    units.check_state("before the border of the line")
    units.run(3)

    units.check_state("after the border of the line")


def test_sprites_that_change_in_the_middle_of_their_lines() -> None:
    units, dice = units_with_a_scene("changing sprites")
    for line in range(60):
        units.run(dice.randrange(341))
        units.write(3, dice.randrange(256))
        for _ in range(dice.randrange(1, 9)):
            units.write(4, dice.randrange(256))
        units.write(3, 0)
        units.check_state(f"after {line} changes")
    units.write(1, 0)
    units.run_to_the_frames_end()

    units.check_all("at the frame's end")


def test_the_hit_of_sprite_0_comes_at_its_dot() -> None:
    units, dice = units_with_a_scene("hit")
    for value in random_sprites(dice):
        units.write(4, value)
    units.write(3, 0)
    for value in (20, dice.randrange(256), 0, 100):
        units.write(4, value)
    units.write(3, 0)
    units.write(1, 0)
    units.run(DOTS_PER_LINE * 21 + 60)
    units.write(1, 0x1E)

    for dot in range(DOTS_PER_LINE * 5):
        units.run(1)
        units.check_state(f"dot {dot}")

    assert units.reference.sprite0_hit
