"""The reference and two native consoles, with and without short cuts, driven alike and compared."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from actor.env.native._console import Console
from tests.native.reference_console import ReferenceConsole
from tests.native.reference_ppu import (
    DOTS_PER_LINE,
    PICTURE_HEIGHT,
    PICTURE_WIDTH,
    VBLANK_LINE,
    ReferencePpu,
)

# The bits of $2000 and $2001 that do something; whether the others are kept is nobody's business.
CONTROL_BITS, MASK_BITS = 0xBC, 0x1E
SHOW_ALL = 0x1E
_CONTROL, _MASK = 9, 10
PPU_FIELDS = (
    "line", "dot", "v", "t", "fine_x", "is_first_write", "vblank", "sprite0_hit", "is_even_frame",
    "control", "mask", "oam_address", "data_buffer",
)  # fmt: skip


def picture_of(console: Console) -> NDArray[np.uint8]:
    """Colour numbers: UInt8[240, 256]."""
    picture = np.empty((PICTURE_HEIGHT, PICTURE_WIDTH), dtype=np.uint8)
    console.colours(picture)
    return picture


def reference_picture(ppu: ReferencePpu) -> NDArray[np.uint8]:
    flat = np.frombuffer(bytes(ppu.picture), dtype=np.uint8)
    return flat.reshape(PICTURE_HEIGHT, PICTURE_WIDTH)


def ppu_fields(state: tuple[int, ...]) -> dict[str, int]:
    fields = list(map(int, state))
    fields[_CONTROL] &= CONTROL_BITS
    fields[_MASK] &= MASK_BITS
    return dict(zip(PPU_FIELDS, fields, strict=True))


def differing(name: str, expected: bytes, got: bytes) -> list[str]:
    """The first bytes that differ, for people."""
    assert len(expected) == len(got), f"{name}: {len(expected)} bytes expected, got {len(got)}"
    if expected == got:
        return []
    places = [i for i in range(len(expected)) if expected[i] != got[i]]
    shown = [f"{i:#06x}: expected {expected[i]:#04x}, got {got[i]:#04x}" for i in places[:5]]
    return [f"{name} differs in {len(places)} bytes: {'; '.join(shown)}"]


def differences(reference: ReferenceConsole, console: Console) -> list[str]:
    """Everything but the picture: registers, cycles, RAM, the picture unit and its memory."""
    found = []
    if console.registers() != reference.cpu.registers():
        found.append(f"registers: expected {reference.cpu.registers()}, got {console.registers()}")
    found += differing("RAM", bytes(reference.ram), bytes(console.ram))
    expected, got = ppu_fields(reference.ppu.state()), ppu_fields(console.ppu_state())
    found += [
        f"PPU {name}: expected {expected[name]:#x}, got {got[name]:#x}"
        for name in PPU_FIELDS
        if expected[name] != got[name]
    ]
    found += differing("video memory", reference.ppu.video_memory(), console.video_memory())
    return found


def visible_state(console: Console) -> tuple[object, ...]:
    """All that a program can come to know; a saved state also holds how the picture was made."""
    memories = bytes(console.ram), console.video_memory()
    return console.registers(), ppu_fields(console.ppu_state()), memories


class ConsoleTrio:
    def __init__(self, cartridge: bytes) -> None:
        self.reference = ReferenceConsole(cartridge)
        self.consoles = {"plain": Console(cartridge), "fast": Console(cartridge)}
        self.consoles["plain"].plain = True
        # What is shown at power-up has a test of its own; the others do not depend on it.
        self.write_ppu(1, SHOW_ALL)

    def poke(self, address: int, values: bytes) -> None:
        self.reference.ram[address : address + len(values)] = values
        for console in self.consoles.values():
            console.ram[address : address + len(values)] = values

    def run_cycles(self, cycles: int) -> None:
        self.reference.run_cycles(cycles)
        for console in self.consoles.values():
            console.run_cycles(cycles)

    def step(self, buttons: int, *, look: int) -> None:
        self.reference.step(buttons)
        for console in self.consoles.values():
            console.step(buttons, 1, look)

    def write_ppu(self, register: int, value: int) -> None:
        self.reference.ppu.write(register, value)
        for console in self.consoles.values():
            console.write_ppu(register, value)

    def skip_to(self, line: int, dot: int) -> None:
        """From power-up, bring the picture units there with nothing shown and NMIs disabled.

        The reference leaps over most lines, since only the last matters: it lists the sprites.
        """
        mask, ppu = self.reference.ppu.mask, self.reference.ppu
        self.write_ppu(1, 0)
        dots = (line - ppu.line) * DOTS_PER_LINE + dot - ppu.dot
        for console in self.consoles.values():
            console.run_ppu(dots)
        leap = max(line - 2 - ppu.line, 0)
        ppu.line += leap
        ppu.vblank = ppu.line > VBLANK_LINE
        ppu.run(dots - leap * DOTS_PER_LINE)
        self.write_ppu(1, mask)

    def check(self, moment: str) -> None:
        for name, console in self.consoles.items():
            found = differences(self.reference, console)
            assert found == [], f"{name}, {moment}: " + "\n".join(found)

    def check_picture(self, moment: str) -> None:
        expected = reference_picture(self.reference.ppu)
        for name, console in self.consoles.items():
            wrong = np.argwhere(picture_of(console) != expected)
            assert len(wrong) == 0, (
                f"{name}, {moment}: {len(wrong)} pixels, first (y, x) {wrong[0]}"
            )
