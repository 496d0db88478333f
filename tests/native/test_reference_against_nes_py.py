"""The reference console against nes_py itself, so that what is judged by it is judged rightly.

The cartridges are synthetic: nes_py plays them from a temporary folder, a frame at a time.
"""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from actor.env.native._console import COLOUR, Console
from actor.env.nes_core import NesPyCore
from tests.native.assembler import Assembler
from tests.native.random_programs import ORIGIN, ProgramMaker
from tests.native.reference_console import ReferenceConsole
from tests.native.small_game import small_game
from tests.native.synthetic_cartridge import CHR_BYTES, cartridge

MORE_SEEDS = [pytest.param(seed, marks=pytest.mark.nightly) for seed in range(1000, 1100)]
RAM_PAGES = 0x20
HEADER_BYTES = 16
PRG_BANK_BYTES = 0x4000


def nes_py_core(rom: bytes, folder: Path) -> NesPyCore:
    path = folder / "synthetic.nes"
    path.write_bytes(rom)
    core = NesPyCore(path)
    core.power_on()
    return core


def settled(rom: bytes) -> bytes:
    """The same program after a few instructions that fill what nes_py leaves uninitialised.

    Its PPU's data buffer and the two bits that hide the left edge hold whatever was in memory.
    """
    end = HEADER_BYTES + rom[4] * PRG_BANK_BYTES
    start_low, start_high = rom[end - 4 : end - 2]
    first = bytes((0xA9, 0x1E, 0x8D, 0x01, 0x20))  # LDA #$1E, STA $2001
    first += bytes((0xAD, 0x07, 0x20, 0xA9, 0x00))  # LDA $2007, LDA #$00
    first += bytes((0x4C, start_low, start_high))  # JMP to where it would have begun
    place = end - 0x100
    patched = bytearray(rom)
    patched[place : place + len(first)] = first
    patched[end - 4 : end - 2] = bytes((0x00, 0xFF))
    return bytes(patched)


def program_that_nes_py_survives(
    dice: random.Random, buttons: int
) -> tuple[bytes, ReferenceConsole]:
    """And the reference a frame later. DMA from behind RAM would read memory not nes_py's own."""
    while True:
        reference = ReferenceConsole(rom := settled(ProgramMaker(dice).tame_cartridge()))
        reference.step(buttons)
        if all(page < RAM_PAGES for page in reference.dma_pages):
            return rom, reference


def colours_shown(core: NesPyCore, reference: ReferenceConsole) -> dict[int, set[int]]:
    """Which of nes_py's colours, as one number each, stand where the reference has a number."""
    shown = core.screen().astype(np.int64) @ np.array((65536, 256, 1))
    numbers: NDArray[np.uint8] = np.frombuffer(bytes(reference.ppu.picture), dtype=np.uint8)
    return {int(n): set(shown.ravel()[numbers == n].tolist()) for n in np.unique(numbers)}


@pytest.mark.parametrize("seed", [*range(6), *MORE_SEEDS])
def test_a_random_program_leaves_the_same_ram(seed: int, tmp_path: Path) -> None:
    dice = random.Random(seed)
    buttons = dice.randrange(256)
    rom, reference = program_that_nes_py_survives(dice, buttons)

    core = nes_py_core(rom, tmp_path)
    core.step(buttons)

    assert bytes(core.ram) == bytes(reference.ram)


# By night: nes_py leaves the bit uninitialised, so this holds only where its memory was fresh.
@pytest.mark.nightly
def test_at_power_up_the_left_edge_is_shown(tmp_path: Path) -> None:
    """All sprites are at its very corner then, so only there can sprite 0 be hit."""
    assembler = Assembler(ORIGIN)
    assembler.ops("hit:\nLDA abs $2002\nAND imm $40\nSTA zp $10\nBEQ rel hit\nend:\nJMP abs end")
    rom = cartridge(assembler.bytes(), b"\xff" * CHR_BYTES, vectors=(ORIGIN, ORIGIN, ORIGIN))
    core, reference = nes_py_core(rom, tmp_path), ReferenceConsole(rom)

    core.step(0)
    reference.step(0)

    assert core.ram[0x10] == reference.ram[0x10] == 0x40


@pytest.mark.parametrize("seed", [0, *MORE_SEEDS[:20]])
def test_the_small_game_looks_and_plays_the_same(seed: int, tmp_path: Path) -> None:
    reference = ReferenceConsole(rom := small_game(seed))
    core = nes_py_core(rom, tmp_path)

    for frame in range(5):
        buttons = 0x35 * (frame + seed) & 0xFF
        core.step(buttons)
        reference.step(buttons)

        assert bytes(core.ram) == bytes(reference.ram), frame
        assert all(len(shown) == 1 for shown in colours_shown(core, reference).values()), frame


def test_the_native_console_has_the_colours_of_nes_py(tmp_path: Path) -> None:
    """Over several games, since one shows at most 25 of the 64 colours."""
    seen: set[int] = set()
    for seed in range(14):
        core, console = nes_py_core(small_game(seed), tmp_path), Console(small_game(seed))
        core.step(0, 4)
        console.step(0, 4, COLOUR)
        rgb, numbers = np.empty((240, 256, 3), np.uint8), np.empty((240, 256), np.uint8)
        console.rgb(rgb)
        console.colours(numbers)

        assert np.array_equal(rgb, core.screen())
        seen |= set(np.unique(numbers).tolist())
    assert len(seen) == 64
