from __future__ import annotations

import random

import pytest

from actor.env.native._console import COLOUR, NOTHING
from tests.native.console_trio import ConsoleTrio
from tests.native.picture_scenes import random_accesses
from tests.native.synthetic_cartridge import cartridge, random_chr

ORIGIN = 0xC000
CODE_BYTES = 0x3C00
SHOW_ALL = 0x1E
FRAMES = 3


def writing_program(dice: random.Random) -> bytes:
    """Touches registers of the PPU without end, sometimes often, sometimes after a pause."""
    code = bytearray((0xA9, 0x02, 0x8D, 0x14, 0x40))
    _write(code, 1, SHOW_ALL)
    while len(code) < CODE_BYTES:
        access = random_accesses(dice, 1)[0]
        code += b"\xea" * min(dice.choice((0, 0, access.dots_before // 40)), 300)
        if access.value is None:
            code += bytes((0xAD, access.register, 0x20, 0x95, dice.randrange(256)))
        else:
            # No interrupts: the program has no handler.
            value = access.value & 0x7F if access.register == 0 else access.value
            _write(code, access.register, value)
        if dice.random() < 0.2:
            _write(code, 1, SHOW_ALL)
    code += bytes((0x4C, ORIGIN & 0xFF, ORIGIN >> 8))
    return bytes(code)


def _write(code: bytearray, register: int, value: int) -> None:
    code += bytes((0xA9, value, 0x8D, register, 0x20))


@pytest.mark.parametrize("seed", range(5))
def test_writes_of_a_program_in_the_middle_of_a_picture(seed: int) -> None:
    dice = random.Random(seed)
    image = cartridge(
        writing_program(dice),
        random_chr(dice),
        vectors=(ORIGIN, ORIGIN, ORIGIN),
        is_vertical=dice.random() < 0.5,
    )
    trio = ConsoleTrio(image)
    trio.poke(0x200, dice.randbytes(256))

    for frame in range(FRAMES):
        trio.reference.step(0)
        # One never draws, one always: what each remembers of the picture must not get old.
        trio.consoles["fast"].step(0, 1, (NOTHING, COLOUR)[seed % 2])
        trio.consoles["plain"].step(0, 1, (COLOUR, NOTHING)[seed % 2])
        trio.check(f"seed {seed}, frame {frame}")
        trio.check_picture(f"seed {seed}, frame {frame}")
