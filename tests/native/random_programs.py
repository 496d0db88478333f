"""Random programs of official instructions, and the cartridges that hold them.

Tame programs stay in their code, so that they may run on nes_py too, whose behaviour outside is
undefined. Wild ones jump, return and write anywhere.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from tests.native.assembler import Assembler
from tests.native.official_opcodes import OPCODES
from tests.native.synthetic_cartridge import PRG_BANK_BYTES, cartridge, random_chr

ORIGIN = 0x8000
_WILD_BYTES = 1500
_STACK_OPERATIONS = {"PHA", "PHP", "PLA", "PLP", "TXS"}
_JUMPS = {"JMP", "JSR", "RTS", "RTI", "BRK"}
_WRITERS = {"STA", "STX", "STY", "ASL", "LSR", "ROL", "ROR", "INC", "DEC"}
_INSTRUCTIONS = [opcode for _, opcode in sorted(OPCODES.items())]
# Bodies of handlers and subroutines leave the stack alone, or they would not return.
_SAFE_INSTRUCTIONS = [
    opcode
    for opcode in _INSTRUCTIONS
    if opcode.operation not in _JUMPS | _STACK_OPERATIONS
    and opcode.mode != "rel"
    and not (opcode.operation in _WRITERS and opcode.mode in ("absx", "absy", "indx", "indy"))
]


@dataclass(slots=True)
class ProgramMaker:
    dice: random.Random

    def wild_cartridge(self) -> bytes:
        """Random code from end to end, in a repeated pattern; all vectors point into it."""
        assembler = Assembler(ORIGIN)
        self._write_prologue(assembler)
        while assembler.here < ORIGIN + _WILD_BYTES:
            self._write_wild(assembler)
        size = self.dice.choice((1, 2)) * PRG_BANK_BYTES
        program = (assembler.bytes() * (1 + size // _WILD_BYTES))[:size]
        nmi, brk = (self.dice.randrange(ORIGIN, ORIGIN + size) for _ in range(2))
        return self._cartridge(program, (nmi, ORIGIN, brk))

    def tame_cartridge(self) -> bytes:
        assembler = Assembler(ORIGIN)
        self._write_prologue(assembler)
        assembler.label("loop")
        for block in range(self.dice.randrange(5, 40)):
            self._write_tame_block(assembler, block)
        assembler.op("JMP", "abs", "loop")
        assembler.label("subroutine")
        self._write_safe(assembler)
        assembler.op("RTS")
        assembler.label("handler")
        self._write_safe(assembler)
        assembler.op("RTI")
        handler = assembler.address_of("handler")
        return self._cartridge(assembler.bytes(), (handler, ORIGIN, handler))

    def cartridge_of(self, operation: str, mode: str) -> bytes:
        """One instruction between random registers and an endless loop."""
        assembler = Assembler(ORIGIN)
        self._write_prologue(assembler)
        assembler.op(operation, mode, self._operand(mode))
        # A branch or a return may land anywhere near; each place leads to the same loop.
        for _ in range(self.dice.randrange(1, 40)):
            assembler.op("NOP")
        assembler.label("end")
        assembler.op("JMP", "abs", "end")
        end = assembler.address_of("end")
        return self._cartridge(assembler.bytes(), (end, ORIGIN, end))

    def ram_code(self, size: int) -> bytes:
        """Wild code to be executed from RAM."""
        assembler = Assembler(0)
        while assembler.here < size:
            self._write_wild(assembler)
        return assembler.bytes()[:size]

    def _cartridge(self, program: bytes, vectors: tuple[int, int, int]) -> bytes:
        # A program of 16 KiB runs in both mirrors; its addresses are those of the first.
        return cartridge(
            program,
            random_chr(self.dice),
            vectors=vectors,
            is_vertical=self.dice.random() < 0.5,
        )

    def _write_prologue(self, assembler: Assembler) -> None:
        """Every register and flag begins at random."""
        for operation in ("LDX", "TXS", "LDA", "PHA", "PLP", "LDA", "LDX", "LDY"):
            if operation.startswith("LD"):
                assembler.op(operation, "imm", self.dice.randrange(256))
            else:
                assembler.op(operation)
        # LDA, LDX and LDY above moved Z and N; a store makes them visible in RAM too.
        assembler.op("PHP")

    def _write_wild(self, assembler: Assembler) -> None:
        opcode = self.dice.choice(_INSTRUCTIONS)
        if opcode.operation in ("BRK", "RTI", "RTS") and self.dice.random() < 0.5:
            return
        operand = self._operand(opcode.mode)
        if opcode.operation in ("JMP", "JSR") and opcode.mode == "abs":
            operand = self._wild_target(assembler.here)
        assembler.op(opcode.operation, opcode.mode, operand)

    def _wild_target(self, here: int) -> int:
        kind = self.dice.random()
        if kind < 0.7:
            return (here + self.dice.randrange(-300, 300)) & 0xFFFF
        return self.dice.randrange(0x800) if kind < 0.85 else self.dice.randrange(0x8000, 0x10000)

    def _write_tame_block(self, assembler: Assembler, block: int) -> None:
        skip, kind = f"after {block}", self.dice.random()
        if kind < 0.15:
            assembler.op("JSR", "abs", "subroutine")
        elif kind < 0.2:
            assembler.op("BRK")
            assembler.op("NOP")
        elif kind < 0.7:
            branch = self.dice.choice([o for o in _INSTRUCTIONS if o.mode == "rel"])
            assembler.op(branch.operation, "rel", skip)
        for _ in range(self.dice.randrange(12)):
            opcode = self.dice.choice(_INSTRUCTIONS)
            if opcode.operation not in _JUMPS and opcode.mode != "rel":
                assembler.op(opcode.operation, opcode.mode, self._operand(opcode.mode))
        assembler.label(skip)

    def _write_safe(self, assembler: Assembler) -> None:
        for _ in range(self.dice.randrange(1, 8)):
            opcode = self.dice.choice(_SAFE_INSTRUCTIONS)
            operand = self._operand(opcode.mode)
            if opcode.operation in _WRITERS and 0x100 <= operand & 0x7FF < 0x200:
                operand = 0x300
            assembler.op(opcode.operation, opcode.mode, operand)

    def _operand(self, mode: str) -> int:
        if mode in ("imp", "acc"):
            return 0
        if mode in ("abs", "absx", "absy", "ind"):
            return self._address()
        is_short_branch = mode == "rel" and self.dice.random() < 0.9
        return self.dice.randrange(24 if is_short_branch else 256)

    def _address(self) -> int:
        kind = self.dice.random()
        if kind < 0.6:
            return self._near_page_end(self.dice.randrange(0x2000))
        if kind < 0.8:
            return self._near_page_end(self.dice.randrange(0x8000, 0x10000))
        if kind < 0.93:
            return 0x2000 + self.dice.choice((0, 0x8, 0x1FF8)) + self.dice.randrange(8)
        return self.dice.choice((0x4014, 0x4016, 0x4017, 0x4000, 0x5FFF, 0x7FFF))

    def _near_page_end(self, address: int) -> int:
        """Many addresses lie where wrapping and crossing show."""
        return address | 0xFF if self.dice.random() < 0.25 else address
