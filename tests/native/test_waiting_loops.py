"""Loops that wait for the picture unit: the fast path skips them and must end at the same cycle."""

from __future__ import annotations

import random

import pytest

from tests.native.assembler import Assembler
from tests.native.console_trio import ConsoleTrio
from tests.native.random_programs import ORIGIN
from tests.native.synthetic_cartridge import cartridge, random_chr

NMI_ENABLED = 0x80
STATUS_LOOPS = [
    f"loop:\n{read}\n{test}\n{branch} rel loop"
    for read in ("LDA abs $2002", "LDA abs $3ffa")
    for test in ("AND imm $80", "AND imm $40", "AND imm $c0", "AND imm $20")
    for branch in ("BEQ", "BNE")
] + [
    "loop:\nLDA abs $2002\nBPL rel loop",
    "loop:\nLDA abs $2002\nBMI rel loop",
    "loop:\nBIT abs $2002\nBPL rel loop",
    "loop:\nBIT abs $2002\nBVC rel loop",
    "loop:\nBIT abs $2002\nBVS rel loop",
    "loop:\nLDX abs $2002\nBPL rel loop",
    "loop:\nINC zp $10\nLDA abs $2002\nAND imm $40\nBEQ rel loop",
    "loop:\nLDA abs $2002\nAND imm $40\nNOP\nBEQ rel loop",
    "loop:\nLDA abs $2002\nAND zp $10\nBEQ rel loop",
    "loop:\nLDA zp $10\nBEQ rel loop",
    "loop:\nLDA zp $10\nCMP zp $11\nBEQ rel loop",
    "loop:\nLDA absx $0200\nBMI rel loop\nJMP abs loop",
]
SELF_LOOPS = [
    "loop:\nJMP abs loop",
    "LDA imm $00\nloop:\nBEQ rel loop",
    "LDA imm $01\nloop:\nBNE rel loop",
    "CLC\nloop:\nBCC rel loop",
    "CLV\nloop:\nBVC rel loop",
    "loop:\nNOP\nJMP abs loop",
    "loop:\nJMP abs there\nthere:\nJMP abs loop",
]
SPRITE_0_TOP = 30


def rom_of(loop: str, dice: random.Random) -> bytes:
    """The loop once more and a counter follow, so that the cycle in which it ended stays visible.

    The NMI handler changes what the loops over RAM wait for.
    """
    assembler = Assembler(ORIGIN)
    # A random place in the page, so that some of the loops' branches cross its border.
    for _ in range(dice.choice((0, 1, dice.randrange(256), 240 + dice.randrange(10)))):
        assembler.op("NOP")
    assembler.ops(loop + "\nINC zp $20\nLDY zp $20\n" + loop.replace("loop", "again"))
    assembler.ops("count:\nINC zp $21\nJMP abs count")
    assembler.ops("handler:\nINC zp $10\nINC abs $0200\nRTI")
    handler = assembler.address_of("handler")
    return cartridge(assembler.bytes(), random_chr(dice), vectors=(handler, ORIGIN, handler))


def trio_in_a_scene(rom: bytes, dice: random.Random) -> ConsoleTrio:
    """Sprite 0 stands on a background of random tiles; RAM is random."""
    trio = ConsoleTrio(rom)
    trio.poke(0, dice.randbytes(2048))
    for value in (SPRITE_0_TOP, dice.randrange(256), dice.randrange(256), dice.randrange(249)):
        trio.write_ppu(4, value)
    trio.write_ppu(6, 0x20)
    trio.write_ppu(6, 0x60)
    for _ in range(96):
        trio.write_ppu(7, dice.randrange(256))
    return trio


def run_across(trio: ConsoleTrio, dice: random.Random, cycles: int) -> None:
    done = 0
    while done < cycles:
        piece = dice.choice((1, 2, 7, dice.randrange(1, 60), dice.randrange(1, 1200)))
        trio.run_cycles(piece)
        done += piece
        trio.check(f"after {done} cycles")


@pytest.mark.parametrize("loop", STATUS_LOOPS, ids=lambda loop: loop[6:].replace("\n", ", "))
@pytest.mark.parametrize(
    ("line", "cycles"), [(SPRITE_0_TOP - 2, 1500), (240, 300), (242, 200), (260, 300)], ids=str
)
def test_a_loop_that_polls(loop: str, line: int, cycles: int) -> None:
    """Across a sprite-0 hit, the beginning of the vertical blank, within it, and its end.

    A read clears the flag of the vertical blank: a loop that waits for its end ends at once.
    """
    dice = random.Random(f"{loop} {line}")
    trio = trio_in_a_scene(rom_of(loop, dice), dice)
    trio.skip_to(line, dice.randrange(1, 341))
    trio.write_ppu(0, dice.choice((0, NMI_ENABLED)))

    run_across(trio, dice, cycles)


@pytest.mark.parametrize("loop", SELF_LOOPS, ids=lambda loop: loop.replace("\n", ", "))
def test_a_loop_that_only_an_nmi_leaves(loop: str) -> None:
    dice = random.Random(loop)
    trio = trio_in_a_scene(rom_of(loop, dice), dice)
    trio.skip_to(240, dice.randrange(1, 341))
    trio.write_ppu(0, NMI_ENABLED)

    run_across(trio, dice, 300)


@pytest.mark.parametrize("loop", [SELF_LOOPS[0], STATUS_LOOPS[0], STATUS_LOOPS[2]])
def test_a_whole_frame_in_one_call(loop: str) -> None:
    dice = random.Random(loop)
    trio = trio_in_a_scene(rom_of(loop, dice), dice)
    trio.write_ppu(0, NMI_ENABLED)

    trio.run_cycles(29_781)

    trio.check("a frame later")


@pytest.mark.parametrize("loop", STATUS_LOOPS[:4])
def test_a_loop_in_ram_that_polls(loop: str) -> None:
    dice = random.Random(loop)
    jump = Assembler(ORIGIN)
    jump.op("JMP", "abs", 0x300)
    trio = trio_in_a_scene(
        cartridge(jump.bytes(), random_chr(dice), vectors=(ORIGIN, ORIGIN, ORIGIN)), dice
    )
    code = Assembler(0x300)
    code.ops(f"{loop}\nINC zp $20\nJMP abs loop")
    trio.poke(0x300, code.bytes())
    trio.skip_to(SPRITE_0_TOP, 1)

    run_across(trio, dice, 1000)
