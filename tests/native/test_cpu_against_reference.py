"""The native processor, with and without its short cuts, against the simple interpreter."""

from __future__ import annotations

import random

import pytest

from tests.native.assembler import Assembler
from tests.native.console_trio import ConsoleTrio
from tests.native.official_opcodes import OPCODES, Opcode
from tests.native.random_programs import ORIGIN, ProgramMaker
from tests.native.synthetic_cartridge import cartridge, random_chr

OFFICIAL = sorted(OPCODES.values())
WILD_SEEDS = range(60)
NMI_ENABLED = 0x80
LAST_LINE_BEFORE_NMI = 240


def run_in_pieces(trio: ConsoleTrio, dice: random.Random, cycles: int, name: str) -> None:
    done = 0
    while done < cycles:
        piece = dice.choice((1, 1, 2, 3, dice.randrange(1, 30), dice.randrange(1, 400)))
        trio.run_cycles(piece)
        done += piece
        trio.check(f"{name} after {done} cycles")


def somewhere_in_the_frame(trio: ConsoleTrio, dice: random.Random) -> None:
    """Half of the programs meet the beginning of the vertical blank, often with an NMI."""
    if dice.random() < 0.5:
        trio.skip_to(LAST_LINE_BEFORE_NMI, dice.randrange(1, 341))
    else:
        trio.skip_to(dice.randrange(261), dice.randrange(1, 341))
    trio.write_ppu(0, dice.randrange(256))


def run_wild(seed: int) -> set[int]:
    """Runs one wild program everywhere; the opcodes that it executed."""
    dice = random.Random(seed)
    maker = ProgramMaker(dice)
    trio = ConsoleTrio(maker.wild_cartridge())
    trio.poke(0, dice.randbytes(2048))
    if dice.random() < 0.3:
        trio.poke(0x200, maker.ram_code(0x600))
    somewhere_in_the_frame(trio, dice)
    run_in_pieces(trio, dice, 1200, f"wild program {seed}")
    return set(trio.reference.cpu.executed)


@pytest.mark.parametrize("opcode", OFFICIAL, ids=lambda o: f"{o.operation}-{o.mode}")
def test_an_instruction_with_random_operands_and_registers(opcode: Opcode) -> None:
    dice = random.Random(f"{opcode.operation} {opcode.mode}")
    for example in range(5):
        trio = ConsoleTrio(ProgramMaker(dice).cartridge_of(opcode.operation, opcode.mode))
        trio.poke(0, dice.randbytes(2048))

        for cycles in (25, 1, 1, 1, 1, 1, 1, 1, 1, 1, 9, 600):
            trio.run_cycles(cycles)

            trio.check(f"{opcode} example {example}")


def test_wild_programs_that_together_execute_every_instruction() -> None:
    executed = set.union(*(run_wild(seed) for seed in WILD_SEEDS))

    assert executed >= set(OPCODES)


@pytest.mark.nightly
@pytest.mark.parametrize("first_seed", range(1000, 5000, 200))
def test_more_wild_programs(first_seed: int) -> None:
    for seed in range(first_seed, first_seed + 200):
        run_wild(seed)


@pytest.mark.parametrize("seed", range(20))
def test_an_nmi_at_any_moment_of_a_program(seed: int) -> None:
    dice = random.Random(seed)
    trio = ConsoleTrio(ProgramMaker(dice).tame_cartridge())
    trio.poke(0, dice.randbytes(2048))
    trio.write_ppu(0, NMI_ENABLED)
    trio.skip_to(LAST_LINE_BEFORE_NMI, dice.randrange(150, 341))

    for cycle in range(100):
        trio.run_cycles(1)
        trio.check(f"cycle {cycle}")


@pytest.mark.parametrize("seed", range(20))
def test_code_that_runs_from_ram_and_changes_itself(seed: int) -> None:
    dice = random.Random(seed)
    maker = ProgramMaker(dice)
    assembler = Assembler(ORIGIN)
    start = dice.choice((0x0000, 0x0100, 0x0200, 0x0480, 0x0F00, 0x1780))
    assembler.op("JMP", "abs", start)
    rom = cartridge(assembler.bytes(), random_chr(dice), vectors=(ORIGIN, ORIGIN, start))
    trio = ConsoleTrio(rom)
    trio.poke(0, maker.ram_code(2048))

    run_in_pieces(trio, dice, 800, f"RAM program {seed}")


def test_ram_that_is_changed_from_outside_is_executed_anew() -> None:
    assembler = Assembler(ORIGIN)
    assembler.op("JMP", "abs", 0x300)
    rom = cartridge(assembler.bytes(), bytes(8192), vectors=(ORIGIN, ORIGIN, ORIGIN))
    trio = ConsoleTrio(rom)
    inc_x_loop, inc_y_loop = Assembler(0x300), Assembler(0x300)
    inc_x_loop.ops("loop:\nINX\nJMP abs loop")
    inc_y_loop.ops("loop:\nINY\nJMP abs loop")
    trio.poke(0x300, inc_x_loop.bytes())
    trio.run_cycles(100)
    trio.check("the first program")

    trio.poke(0x300, inc_y_loop.bytes())
    trio.run_cycles(100)

    trio.check("the second program")
    assert trio.reference.cpu.y > 10


@pytest.mark.parametrize("stack", [0x80, 0x81, 0x82, 0x83])
def test_a_call_in_the_stack_page_overwrites_its_own_operand_first(stack: int) -> None:
    assembler = Assembler(ORIGIN)
    assembler.op("LDX", "imm", stack)
    assembler.op("TXS")
    assembler.op("JMP", "abs", 0x180)
    rom = cartridge(assembler.bytes(), bytes(8192), vectors=(ORIGIN, ORIGIN, ORIGIN))
    trio = ConsoleTrio(rom)
    trio.poke(0x180, bytes((0x20, 0x40, 0x81)))

    trio.run_cycles(8)

    trio.check("after JSR")


def test_returns_and_indirect_jumps_wrap() -> None:
    """The stack wraps below 0 and above $FF; the pointer's high byte comes from its own page."""
    assembler = Assembler(ORIGIN)
    assembler.ops("""
        LDX imm $00
        TXS
        JSR abs sub
        LDX imm $ff
        TXS
        PLA
        PLP
        JMP ind $05ff
        sub:
        RTS
    """)
    rom = cartridge(assembler.bytes(), bytes(8192), vectors=(ORIGIN, ORIGIN, ORIGIN))
    trio = ConsoleTrio(rom)
    trio.poke(0x5FF, b"\x40")
    trio.poke(0x500, b"\x03")
    trio.poke(0x600, b"\x06")

    for cycle in range(45):
        trio.run_cycles(1)
        trio.check(f"cycle {cycle}")

    assert trio.reference.cpu.executed.keys() >= {0x20, 0x60, 0x68, 0x28, 0x6C, 0x00}
