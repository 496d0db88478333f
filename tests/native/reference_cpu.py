"""A deliberately simple 6502 without decimal mode: one table, one instruction at a time.

It knows what the console's processor does and costs, with nes_py's deviations; speed is no aim.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from tests.native.official_opcodes import OPCODES, Opcode

# The status byte in nes_py's order.
NEGATIVE, OVERFLOW, ALWAYS_ONE, BREAK, DECIMAL, NO_IRQ, ZERO, CARRY = (1 << bit for bit in range(8))

NMI_VECTOR, RESET_VECTOR, BRK_VECTOR = 0xFFFA, 0xFFFC, 0xFFFE
STACK_PAGE = 0x100
INTERRUPT_CYCLES = 7
_ACCUMULATOR = -1
_STORES = frozenset({"STA", "STX", "STY"})
# One byte, one cycle, no effect: nes_py's own behaviour is undefined here.
_UNOFFICIAL = Opcode("NOP", "imp", 1)
# The flag and the value of it that lets a branch be taken, or that the instruction gives it.
_BRANCHES = {
    "BPL": (NEGATIVE, False),
    "BMI": (NEGATIVE, True),
    "BVC": (OVERFLOW, False),
    "BVS": (OVERFLOW, True),
    "BCC": (CARRY, False),
    "BCS": (CARRY, True),
    "BNE": (ZERO, False),
    "BEQ": (ZERO, True),
}
_FLAG_SETTERS = {
    "CLC": (CARRY, False),
    "SEC": (CARRY, True),
    "CLI": (NO_IRQ, False),
    "SEI": (NO_IRQ, True),
    "CLV": (OVERFLOW, False),
    "CLD": (DECIMAL, False),
    "SED": (DECIMAL, True),
}
_TRANSFERS = {
    "TAX": ("a", "x"),
    "TAY": ("a", "y"),
    "TSX": ("s", "x"),
    "TXA": ("x", "a"),
    "TXS": ("x", "s"),
    "TYA": ("y", "a"),
}
_STEPS = {"INX": ("x", 1), "INY": ("y", 1), "DEX": ("x", -1), "DEY": ("y", -1)}


class ReferenceCpu:
    """`wait` counts the cycles that pass before the one in which the next instruction starts."""

    def __init__(self, read: Callable[[int], int], write: Callable[[int, int], None]) -> None:
        self._read, self._write = read, write
        self.a = self.x = self.y = 0
        self.s, self.p, self.wait = 0xFD, ALWAYS_ONE | DECIMAL | NO_IRQ, 0
        self.executed: Counter[int] = Counter()
        self.pc = self._word(RESET_VECTOR)

    def registers(self) -> tuple[int, int, int, int, int, int, int]:
        """The last is the cycle from now, 1 is the next, of the next instruction."""
        return self.pc, self.a, self.x, self.y, self.s, self.p, self.wait + 1

    def nmi(self) -> None:
        self._interrupt(self.pc, NO_IRQ, NMI_VECTOR)
        self.wait += INTERRUPT_CYCLES

    def execute(self) -> None:
        """The whole instruction happens in its first cycle; the others are waited for."""
        code = self._fetch()
        self.executed[code] += 1
        opcode = OPCODES.get(code, _UNOFFICIAL)
        self.wait += opcode.cycles - 1
        if opcode.operation == "JSR":
            # Before its operand is read, which matters to code that runs in the stack page.
            self.push_word((self.pc + 1) & 0xFFFF)
        address, is_crossing = self._address(opcode.mode)
        if is_crossing and opcode.operation not in _STORES:
            self.wait += 1
        self._perform(opcode.operation, address)

    def _perform(self, operation: str, address: int) -> None:
        if operation in _BRANCHES:
            self._branch(operation, address)
        elif operation in _FLAG_SETTERS:
            flag, is_on = _FLAG_SETTERS[operation]
            self.set_flag(flag, on=is_on)
        elif operation in _TRANSFERS:
            source, target = _TRANSFERS[operation]
            setattr(self, target, getattr(self, source))
            if operation != "TXS":
                self._set_zero_and_negative(getattr(self, target))
        elif operation in _STEPS:
            register, step = _STEPS[operation]
            setattr(self, register, (getattr(self, register) + step) & 0xFF)
            self._set_zero_and_negative(getattr(self, register))
        else:
            _OPERATIONS[operation](self, address)

    def _branch(self, operation: str, target: int) -> None:
        flag, is_on = _BRANCHES[operation]
        if (self.p & flag != 0) == is_on:
            is_other_page = target >> 8 != self.pc >> 8
            self.wait += 3 if is_other_page else 1
            self.pc = target

    def _address(self, mode: str) -> tuple[int, bool]:
        """Where the operand is, and whether indexing left the page of the base address."""
        if mode not in ("abs", "absx", "absy", "indy"):
            return self._address_in_page(mode), False
        base = self._word_in_page(self._fetch()) if mode == "indy" else self._fetch_word()
        address = (base + self._index(mode)) & 0xFFFF
        return address, address >> 8 != base >> 8

    def _address_in_page(self, mode: str) -> int:
        """For the modes whose indexing, if any, wraps in the zero page."""
        if mode == "imm":
            self.pc = (self.pc + 1) & 0xFFFF
            return (self.pc - 1) & 0xFFFF
        if mode == "rel":
            offset = self._fetch()
            return (self.pc + (offset ^ 0x80) - 0x80) & 0xFFFF
        if mode in ("zp", "zpx", "zpy"):
            return (self._fetch() + self._index(mode)) & 0xFF
        if mode == "indx":
            return self._word_in_page((self._fetch() + self.x) & 0xFF)
        if mode == "ind":
            return self._word_in_page(self._fetch_word())
        return _ACCUMULATOR

    def _index(self, mode: str) -> int:
        return {"x": self.x, "y": self.y}.get(mode[-1], 0)

    def _fetch(self) -> int:
        value = self._read(self.pc)
        self.pc = (self.pc + 1) & 0xFFFF
        return value

    def _fetch_word(self) -> int:
        low = self._fetch()
        return low | self._fetch() << 8

    def _word(self, address: int) -> int:
        return self._read(address) | self._read(address + 1) << 8

    def _word_in_page(self, address: int) -> int:
        return self._read(address) | self._read(address & 0xFF00 | (address + 1) & 0xFF) << 8

    def load(self, address: int) -> int:
        return self.a if address == _ACCUMULATOR else self._read(address)

    def store(self, address: int, value: int) -> None:
        if address == _ACCUMULATOR:
            self.a = value
        else:
            self._write(address, value)

    def push(self, value: int) -> None:
        self._write(STACK_PAGE | self.s, value)
        self.s = (self.s - 1) & 0xFF

    def pull(self) -> int:
        self.s = (self.s + 1) & 0xFF
        return self._read(STACK_PAGE | self.s)

    def push_word(self, value: int) -> None:
        self.push(value >> 8)
        self.push(value & 0xFF)

    def pull_word(self) -> int:
        low = self.pull()
        return low | self.pull() << 8

    def brk(self) -> None:
        # 0x10 is where hardware has B; in nes_py's order of the flags it is D.
        self._interrupt((self.pc + 1) & 0xFFFF, NO_IRQ | DECIMAL, BRK_VECTOR)

    def _interrupt(self, return_address: int, pushed_flags: int, vector: int) -> None:
        self.push_word(return_address)
        self.push(self.p | pushed_flags)
        self.p |= NO_IRQ
        self.pc = self._word(vector)

    def set_flag(self, flag: int, *, on: bool) -> None:
        self.p = self.p | flag if on else self.p & ~flag

    def _set_zero_and_negative(self, value: int) -> None:
        self.set_flag(ZERO, on=value == 0)
        self.set_flag(NEGATIVE, on=value >= 0x80)

    def result(self, value: int) -> int:
        self._set_zero_and_negative(value & 0xFF)
        return value & 0xFF


def _adc(cpu: ReferenceCpu, value: int) -> None:
    total = cpu.a + value + (cpu.p & CARRY != 0)
    cpu.set_flag(CARRY, on=total > 0xFF)
    cpu.set_flag(OVERFLOW, on=(cpu.a ^ total) & (value ^ total) & 0x80 != 0)
    cpu.a = cpu.result(total)


def _compare(cpu: ReferenceCpu, register: int, value: int) -> None:
    cpu.set_flag(CARRY, on=register >= value)
    cpu.result(register - value)


def _bit(cpu: ReferenceCpu, value: int) -> None:
    cpu.set_flag(ZERO, on=cpu.a & value == 0)
    cpu.set_flag(OVERFLOW, on=value & 0x40 != 0)
    cpu.set_flag(NEGATIVE, on=value & 0x80 != 0)


def _shift(cpu: ReferenceCpu, address: int, *, is_left: bool, is_rotation: bool) -> None:
    value = cpu.load(address)
    carry_in = is_rotation and cpu.p & CARRY != 0
    cpu.set_flag(CARRY, on=value & (0x80 if is_left else 0x01) != 0)
    shifted = value << 1 | carry_in if is_left else value >> 1 | carry_in << 7
    cpu.store(address, cpu.result(shifted))


def _load(register: str) -> Callable[[ReferenceCpu, int], None]:
    return lambda cpu, address: setattr(cpu, register, cpu.result(cpu.load(address)))


def _store(register: str) -> Callable[[ReferenceCpu, int], None]:
    return lambda cpu, address: cpu.store(address, getattr(cpu, register))


def _jmp(cpu: ReferenceCpu, address: int) -> None:
    cpu.pc = address


def _rts(cpu: ReferenceCpu, _: int) -> None:
    cpu.pc = (cpu.pull_word() + 1) & 0xFFFF


def _plp(cpu: ReferenceCpu, _: int) -> None:
    cpu.p = cpu.pull()


def _rti(cpu: ReferenceCpu, _: int) -> None:
    cpu.p = cpu.pull()
    cpu.pc = cpu.pull_word()


def _pla(cpu: ReferenceCpu, _: int) -> None:
    cpu.a = cpu.result(cpu.pull())


def _and(cpu: ReferenceCpu, address: int) -> None:
    cpu.a = cpu.result(cpu.a & cpu.load(address))


def _ora(cpu: ReferenceCpu, address: int) -> None:
    cpu.a = cpu.result(cpu.a | cpu.load(address))


def _eor(cpu: ReferenceCpu, address: int) -> None:
    cpu.a = cpu.result(cpu.a ^ cpu.load(address))


_OPERATIONS: dict[str, Callable[[ReferenceCpu, int], None]] = {
    "ADC": lambda cpu, address: _adc(cpu, cpu.load(address)),
    "SBC": lambda cpu, address: _adc(cpu, cpu.load(address) ^ 0xFF),
    "AND": _and,
    "ORA": _ora,
    "EOR": _eor,
    "CMP": lambda cpu, address: _compare(cpu, cpu.a, cpu.load(address)),
    "CPX": lambda cpu, address: _compare(cpu, cpu.x, cpu.load(address)),
    "CPY": lambda cpu, address: _compare(cpu, cpu.y, cpu.load(address)),
    "BIT": lambda cpu, address: _bit(cpu, cpu.load(address)),
    "ASL": lambda cpu, address: _shift(cpu, address, is_left=True, is_rotation=False),
    "LSR": lambda cpu, address: _shift(cpu, address, is_left=False, is_rotation=False),
    "ROL": lambda cpu, address: _shift(cpu, address, is_left=True, is_rotation=True),
    "ROR": lambda cpu, address: _shift(cpu, address, is_left=False, is_rotation=True),
    "INC": lambda cpu, address: cpu.store(address, cpu.result(cpu.load(address) + 1)),
    "DEC": lambda cpu, address: cpu.store(address, cpu.result(cpu.load(address) - 1)),
    "LDA": _load("a"),
    "LDX": _load("x"),
    "LDY": _load("y"),
    "STA": _store("a"),
    "STX": _store("x"),
    "STY": _store("y"),
    "JMP": _jmp,
    "JSR": _jmp,
    "RTS": _rts,
    "RTI": _rti,
    "BRK": lambda cpu, _: cpu.brk(),
    "PHA": lambda cpu, _: cpu.push(cpu.a),
    "PHP": lambda cpu, _: cpu.push(cpu.p),
    "PLA": _pla,
    "PLP": _plp,
    "NOP": lambda _cpu, _: None,
}
