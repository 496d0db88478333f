"""Where the picture unit's behaviour changes from one dot, address or line to the next."""

from __future__ import annotations

import random

import pytest

from tests.native.assembler import Assembler
from tests.native.console_trio import ConsoleTrio
from tests.native.picture_scenes import SHOW_ALL
from tests.native.picture_units import PictureUnits, units_with_a_scene
from tests.native.random_programs import ORIGIN
from tests.native.reference_ppu import DOTS_PER_LINE
from tests.native.synthetic_cartridge import cartridge, random_chr

ADDRESS_BORDERS = (
    0x0000, 0x1FFF, 0x2000, 0x23FF, 0x2400, 0x27FF, 0x2800, 0x2BFF, 0x2C00, 0x2FFF, 0x3000,
    0x33FF, 0x3400, 0x3EFE, 0x3EFF, 0x3F00, 0x3F04, 0x3F0F, 0x3F10, 0x3F1F, 0x3F20, 0x3F30,
    0x3FDF, 0x3FFE, 0x3FFF,
)  # fmt: skip


def set_address(units: PictureUnits, address: int) -> None:
    units.read(2)
    units.write(6, address >> 8)
    units.write(6, address & 0xFF)


@pytest.mark.parametrize("increment_bit", [0x00, 0x04])
@pytest.mark.parametrize("address", ADDRESS_BORDERS, ids=hex)
def test_the_data_port_at_the_borders_of_the_picture_bus(address: int, increment_bit: int) -> None:
    """Three reads, three writes, and three reads, from just before and from the border on."""
    units, dice = units_with_a_scene(address)
    units.write(0, increment_bit)

    for start in (max(address - 1, 0), address, address & 0x3FDF):
        for values in ([None] * 3, [dice.randrange(256) for _ in range(3)], [None] * 3):
            set_address(units, start)
            for value in values:
                if value is None:
                    units.read(7)
                else:
                    units.write(7, value)
                units.check_state(f"{start:#x}")

    units.check_memory("afterwards")


def test_the_address_counts_beyond_the_bus_to_16_bits() -> None:
    units, _ = units_with_a_scene("beyond")
    units.write(0, 0x04)
    set_address(units, 0x3FE0)

    for access in range((0x10000 - 0x3FE0) // 32 + 3):
        units.read(7)
        units.write(7, access & 0xFF)
        units.check_state(f"access {access}")

    units.check_memory("afterwards")


def test_the_scroll_position_is_taken_over_at_its_dots() -> None:
    """With another position before every dot of the pre-render line that might take it over."""
    units, dice = units_with_a_scene("take over")
    units.run(250)

    for dot in range(250, DOTS_PER_LINE + 5):
        units.write(5, dice.randrange(256))
        units.write(5, dice.randrange(256))
        units.run(1)
        units.check_state(f"dot {dot}")


@pytest.mark.parametrize("mask", [0x08, 0x10, SHOW_ALL])
def test_the_scroll_position_moves_at_the_end_of_a_line(mask: int) -> None:
    units, dice = units_with_a_scene(f"line end {mask}")
    units.write(1, mask)
    units.run(DOTS_PER_LINE + 240)

    for dot in range(240, 270):
        units.write(5, dice.randrange(256))
        units.write(5, dice.randrange(256))
        units.run(1)
        units.check_state(f"dot {dot}")


@pytest.mark.parametrize("line", [0, 239, 240, 241, 260])
def test_dot_by_dot_from_one_line_to_the_next(line: int) -> None:
    units, _ = units_with_a_scene(f"line {line}")
    units.write(1, 0)
    units.run(DOTS_PER_LINE * line + 335)

    for dot in range(DOTS_PER_LINE + 20):
        units.run(1)
        units.check_state(f"{dot} dots later")


@pytest.mark.parametrize("left", [0, 1, 8, 246, 247, 248, 254, 255])
def test_a_hit_is_possible_at_every_x(left: int) -> None:
    """Sprite 0 is one column of solid pixels, its first or its last, on a solid background."""
    column = 0x01 if left < 249 else 0x80
    patterns = bytes(8) + b"\xff" * 8 + bytes((column,)) * 8 + bytes(8)
    rom = cartridge(b"", patterns + bytes(8192 - len(patterns)))
    units = PictureUnits(random.Random(left), rom)
    for value in (0, 1, 0, left):
        units.write(4, value)
    units.write(3, 0)
    units.write(1, SHOW_ALL)
    units.run(DOTS_PER_LINE * 2)

    for dot in range(DOTS_PER_LINE):
        units.run(1)
        units.check_state(f"dot {dot}")

    assert units.reference.sprite0_hit


@pytest.mark.parametrize("page", [0x00, 0x02, 0x07, 0x08, 0x1F, 0x20, 0x3F, 0x40, 0x7F, 0x80, 0xFF])
@pytest.mark.parametrize("oam_address", [0x00, 0x01, 0xFF])
def test_dma_from_any_page_to_any_place(page: int, oam_address: int) -> None:
    dice = random.Random(page)
    assembler = Assembler(ORIGIN)
    assembler.op("LDA", "imm", oam_address)
    assembler.op("STA", "abs", 0x2003)
    assembler.op("LDA", "imm", page)
    assembler.op("STA", "abs", 0x4014)
    assembler.op("INC", "zp", 0)
    assembler.data(dice.randbytes(0x1000))
    vectors = (ORIGIN, ORIGIN, ORIGIN)
    trio = ConsoleTrio(cartridge(assembler.bytes(), random_chr(dice), vectors=vectors))
    trio.poke(0, dice.randbytes(2048))
    # Registers that a DMA could disturb if it read them.
    trio.write_ppu(6, 0x21)

    for cycles in (6, 1, 4, 1, 500, *[1] * 20):
        trio.run_cycles(cycles)
        trio.check(f"after {cycles} more cycles")
