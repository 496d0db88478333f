"""The 151 official instructions of the 6502, in the console's own account of their costs."""

from __future__ import annotations

from typing import NamedTuple


class Opcode(NamedTuple):
    operation: str
    mode: str
    cycles: int


# operation: mode, opcode, base cycles. BRK pays for the interrupt and for the opcode.
_TABLE = """
ADC imm 69 2 zp 65 3 zpx 75 4 abs 6D 4 absx 7D 4 absy 79 4 indx 61 6 indy 71 5
AND imm 29 2 zp 25 3 zpx 35 4 abs 2D 4 absx 3D 4 absy 39 4 indx 21 6 indy 31 5
CMP imm C9 2 zp C5 3 zpx D5 4 abs CD 4 absx DD 4 absy D9 4 indx C1 6 indy D1 5
EOR imm 49 2 zp 45 3 zpx 55 4 abs 4D 4 absx 5D 4 absy 59 4 indx 41 6 indy 51 5
LDA imm A9 2 zp A5 3 zpx B5 4 abs AD 4 absx BD 4 absy B9 4 indx A1 6 indy B1 5
ORA imm 09 2 zp 05 3 zpx 15 4 abs 0D 4 absx 1D 4 absy 19 4 indx 01 6 indy 11 5
SBC imm E9 2 zp E5 3 zpx F5 4 abs ED 4 absx FD 4 absy F9 4 indx E1 6 indy F1 5
STA zp 85 3 zpx 95 4 abs 8D 4 absx 9D 5 absy 99 5 indx 81 6 indy 91 6
LDX imm A2 2 zp A6 3 zpy B6 4 abs AE 4 absy BE 4
LDY imm A0 2 zp A4 3 zpx B4 4 abs AC 4 absx BC 4
STX zp 86 3 zpy 96 4 abs 8E 4
STY zp 84 3 zpx 94 4 abs 8C 4
CPX imm E0 2 zp E4 3 abs EC 4
CPY imm C0 2 zp C4 3 abs CC 4
BIT zp 24 3 abs 2C 4
ASL acc 0A 2 zp 06 5 zpx 16 6 abs 0E 6 absx 1E 7
LSR acc 4A 2 zp 46 5 zpx 56 6 abs 4E 6 absx 5E 7
ROL acc 2A 2 zp 26 5 zpx 36 6 abs 2E 6 absx 3E 7
ROR acc 6A 2 zp 66 5 zpx 76 6 abs 6E 6 absx 7E 7
INC zp E6 5 zpx F6 6 abs EE 6 absx FE 7
DEC zp C6 5 zpx D6 6 abs CE 6 absx DE 7
BPL rel 10 2
BMI rel 30 2
BVC rel 50 2
BVS rel 70 2
BCC rel 90 2
BCS rel B0 2
BNE rel D0 2
BEQ rel F0 2
JMP abs 4C 3 ind 6C 5
JSR abs 20 6
RTS imp 60 6
RTI imp 40 6
BRK imp 00 14
PHA imp 48 3
PHP imp 08 3
PLA imp 68 4
PLP imp 28 4
CLC imp 18 2
SEC imp 38 2
CLI imp 58 2
SEI imp 78 2
CLV imp B8 2
CLD imp D8 2
SED imp F8 2
DEX imp CA 2
DEY imp 88 2
INX imp E8 2
INY imp C8 2
TAX imp AA 2
TAY imp A8 2
TSX imp BA 2
TXA imp 8A 2
TXS imp 9A 2
TYA imp 98 2
NOP imp EA 2
"""


def _parse(table: str) -> dict[int, Opcode]:
    opcodes = {}
    for line in table.strip().splitlines():
        operation, *cells = line.split()
        for mode, code, cycles in zip(cells[::3], cells[1::3], cells[2::3], strict=True):
            opcodes[int(code, 16)] = Opcode(operation, mode, int(cycles))
    return opcodes


OPCODES = _parse(_TABLE)
