"""Known answers: the reference is checked by hand before anything is checked against it."""

from __future__ import annotations

import pytest

from tests.native.assembler import Assembler
from tests.native.official_opcodes import OPCODES
from tests.native.reference_console import ReferenceConsole
from tests.native.reference_cpu import CARRY, NEGATIVE, OVERFLOW, ZERO
from tests.native.synthetic_cartridge import CHR_BYTES, cartridge

ORIGIN = 0x8000
RESULT_FLAGS = NEGATIVE | OVERFLOW | ZERO | CARRY


def console_of(text: str, *, origin: int = ORIGIN) -> ReferenceConsole:
    assembler = Assembler(origin)
    assembler.ops(text)
    program = bytes(origin - ORIGIN) + assembler.bytes()
    return ReferenceConsole(cartridge(program, bytes(CHR_BYTES), vectors=(0x9000, origin, 0xA000)))


def execute(console: ReferenceConsole, instructions: int) -> int:
    """How many cycles they take together."""
    begin = console.cycle + console.cpu.wait
    for _ in range(instructions):
        console.run_cycles(1 + console.cpu.wait)
    return console.cycle + console.cpu.wait - begin


def test_there_are_151_official_instructions() -> None:
    assert len(OPCODES) == 151


def test_registers_at_power_up() -> None:
    console = console_of("NOP")

    assert console.cpu.registers() == (ORIGIN, 0, 0, 0, 0xFD, 0b00110100, 1)


@pytest.mark.parametrize(
    ("carry", "a", "operand", "result", "flags"),
    [
        ("CLC", 0x50, 0x10, 0x60, 0),
        ("CLC", 0x50, 0x50, 0xA0, NEGATIVE | OVERFLOW),
        ("CLC", 0x50, 0xD0, 0x20, CARRY),
        ("CLC", 0xD0, 0x90, 0x60, CARRY | OVERFLOW),
        ("SEC", 0xFF, 0x00, 0x00, CARRY | ZERO),
    ],
)
def test_addition(carry: str, a: int, operand: int, result: int, flags: int) -> None:
    console = console_of(f"{carry}\nLDA imm ${a:02x}\nADC imm ${operand:02x}")

    execute(console, 3)

    assert (console.cpu.a, console.cpu.p & RESULT_FLAGS) == (result, flags)


@pytest.mark.parametrize(
    ("carry", "a", "operand", "result", "flags"),
    [
        ("SEC", 0x50, 0xF0, 0x60, 0),
        ("SEC", 0x50, 0xB0, 0xA0, NEGATIVE | OVERFLOW),
        ("SEC", 0x50, 0x30, 0x20, CARRY),
        ("SEC", 0xD0, 0x70, 0x60, CARRY | OVERFLOW),
        ("CLC", 0x10, 0x0F, 0x00, CARRY | ZERO),
    ],
)
def test_subtraction(carry: str, a: int, operand: int, result: int, flags: int) -> None:
    console = console_of(f"{carry}\nLDA imm ${a:02x}\nSBC imm ${operand:02x}")

    execute(console, 3)

    assert (console.cpu.a, console.cpu.p & RESULT_FLAGS) == (result, flags)


@pytest.mark.parametrize(
    ("code", "a", "carry"), [("ASL", 0x02, 1), ("ROL", 0x03, 1), ("LSR", 0x40, 1), ("ROR", 0xC0, 1)]
)
def test_shifts(code: str, a: int, carry: int) -> None:
    console = console_of(f"SEC\nLDA imm $81\n{code} acc")

    execute(console, 3)

    assert (console.cpu.a, console.cpu.p >> 7) == (a, carry)


def test_costs_of_indexed_reading_storing_and_modifying() -> None:
    console = console_of(
        "LDX imm $01\nLDA absx $02ff\nSTA absx $02ff\nINC absx $02ff\nLDA absx $0200"
    )

    execute(console, 1)

    assert [execute(console, 1) for _ in range(4)] == [5, 5, 8, 4]


def test_costs_of_branches() -> None:
    console = console_of("BNE rel next\nnext:\nBEQ rel next\nBNE rel $70", origin=0x80A0)

    assert [execute(console, 1) for _ in range(3)] == [3, 2, 5]
    assert console.cpu.pc == 0x8116


def test_subroutines_return_behind_their_call() -> None:
    console = console_of("JSR abs sub\nNOP\nsub:\nRTS")

    cycles = execute(console, 2)

    assert (console.cpu.pc, console.cpu.s, cycles) == (ORIGIN + 3, 0xFD, 12)
    assert console.ram[0x1FC:0x1FE] == bytes((0x02, 0x80))


def test_brk_pushes_the_address_after_its_padding_and_both_flags() -> None:
    console = console_of("CLI\nCLD\nBRK")

    execute(console, 2)

    assert execute(console, 1) == 14
    assert console.cpu.pc == 0xA000
    assert console.ram[0x1FB:0x1FE] == bytes((0b00110100, 0x04, 0x80))
    assert console.cpu.p == 0b00100100


def test_an_indirect_jump_stays_in_its_page() -> None:
    console = console_of("JMP ind $02ff")
    console.ram[0x2FF], console.ram[0x200], console.ram[0x300] = 0x34, 0x92, 0x77

    execute(console, 1)

    assert console.cpu.pc == 0x9234


def test_pointers_wrap_in_the_zero_page() -> None:
    console = console_of("LDX imm $ff\nLDA indx $00\nLDY imm $02\nLDA indy $ff")
    console.ram[0xFF], console.ram[0x00], console.ram[0x100] = 0x10, 0x03, 0x07
    console.ram[0x310], console.ram[0x312] = 0x5A, 0xA5

    execute(console, 2)
    first = console.cpu.a
    execute(console, 2)

    assert (first, console.cpu.a) == (0x5A, 0xA5)


def test_an_nmi_pushes_at_its_dot_and_delays_by_seven_cycles() -> None:
    console = console_of("end:\nJMP abs end")
    console.ppu.line, console.ppu.dot, console.ppu.control = 240, 340, 0x80

    console.run_cycles(1)

    # The NMI came with the third dot, before the first instruction.
    assert console.cpu.registers() == (0x9000, 0, 0, 0, 0xFA, 0b00110100, 7)
    assert console.ram[0x1FB:0x1FE] == bytes((0b00110100, 0x00, 0x80))


def test_dma_waits_one_cycle_more_in_an_odd_cycle() -> None:
    even, odd = (console_of(f"{first}\nSTA abs $4014") for first in ("LDA zp $00", "LDA imm $02"))
    execute(even, 1)
    execute(odd, 1)

    # STA starts in cycle 4 after three cycles of LDA, in cycle 3 after two.
    assert (execute(even, 1), execute(odd, 1)) == (4 + 513, 4 + 514)
