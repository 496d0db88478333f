"""Just enough of an assembler to write readable test programs: operations, modes, labels."""

from __future__ import annotations

from tests.native.official_opcodes import OPCODES

_CODES = {(opcode.operation, opcode.mode): code for code, opcode in OPCODES.items()}
_OPERAND_BYTES = {"imp": 0, "acc": 0, "abs": 2, "absx": 2, "absy": 2, "ind": 2}


def operand_bytes(mode: str) -> int:
    return _OPERAND_BYTES.get(mode, 1)


class Assembler:
    """Collects code that will start at `origin`; labels may be used before they are set."""

    def __init__(self, origin: int) -> None:
        self._origin = origin
        self._code = bytearray()
        self._labels: dict[str, int] = {}
        self._references: list[tuple[int, str, str]] = []

    @property
    def here(self) -> int:
        return self._origin + len(self._code)

    def label(self, name: str) -> None:
        self._labels[name] = self.here

    def address_of(self, name: str) -> int:
        return self._labels[name]

    def data(self, values: bytes) -> None:
        self._code += values

    def op(self, operation: str, mode: str = "imp", operand: int | str = 0) -> None:
        """One instruction; a label may stand for the operand of a jump or a branch."""
        self._code.append(_CODES[operation, mode])
        size = operand_bytes(mode)
        if isinstance(operand, str):
            self._references.append((len(self._code), operand, mode))
            operand = 0
        self._code += operand.to_bytes(size, "little")

    def ops(self, text: str) -> None:
        """Lines of `OPERATION [mode operand]`; `name:` sets a label, $ begins a hexadecimal."""
        for line in filter(None, map(str.strip, text.splitlines())):
            if line.endswith(":"):
                self.label(line[:-1])
                continue
            operation, mode, operand, *_ = [*line.split(), "imp", "0"]
            if mode in ("imp", "acc"):
                self.op(operation, mode)
            elif operand[0] == "$":
                self.op(operation, mode, int(operand[1:], 16))
            else:
                self.op(operation, mode, operand)

    def bytes(self) -> bytes:
        code = bytearray(self._code)
        for position, name, mode in self._references:
            target = self._labels[name]
            if mode == "rel":
                code[position] = (target - (self._origin + position + 1)) & 0xFF
            else:
                code[position : position + 2] = target.to_bytes(2, "little")
        return bytes(code)
