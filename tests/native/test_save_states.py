"""Saved states of the native console: at any moment, in another process, and damaged ones."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from actor.env.native import _console
from actor.env.native._console import Console
from tests.native.assembler import Assembler
from tests.native.console_trio import picture_of, visible_state
from tests.native.random_programs import ORIGIN, ProgramMaker
from tests.native.small_game import small_game
from tests.native.synthetic_cartridge import cartridge

ROOT = Path(__file__).resolve().parents[2]
VERSION_OFFSET = 8
PROCESS_DEADLINE_S = 60
IN_ANOTHER_PROCESS = """
import sys
from pathlib import Path
from actor.env.native._console import COLOUR, Console
folder = Path(sys.argv[1])
console = Console((folder / "game.nes").read_bytes())
console.load((folder / "state").read_bytes())
console.run_cycles(12_345)
console.step(0x91, 3, COLOUR)
(folder / "later state").write_bytes(console.save())
sys.stdout.write(str(console.frame_hash()))
"""


def played(seed: int, *, frames: int = 5) -> Console:
    console = Console(small_game(seed))
    console.step(seed & 0xFF, frames, _console.COLOUR)
    return console


def controller_cartridge() -> bytes:
    """Latches the buttons when $10 is set, and reads a bit of controller 1 when $11 is."""
    assembler = Assembler(ORIGIN)
    assembler.ops("""
        loop:
        LDA zp $10
        BEQ rel no_latch
        LDA imm $01
        STA abs $4016
        LDA imm $00
        STA abs $4016
        STA zp $10
        no_latch:
        LDA zp $11
        BEQ rel loop
        LDA abs $4016
        STA zp $12
        LDA imm $00
        STA zp $11
        JMP abs loop
    """)
    return cartridge(assembler.bytes(), bytes(8192), vectors=(ORIGIN, ORIGIN, ORIGIN))


def latch(console: Console) -> None:
    console.ram[0x10] = 1
    console.run_cycles(200)


def read_bits(console: Console, count: int) -> list[int]:
    bits = []
    for _ in range(count):
        console.ram[0x11] = 1
        console.run_cycles(200)
        bits.append(console.ram[0x12] & 1)
    return bits


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_a_game_goes_on_as_if_never_interrupted(seed: int, plain: bool) -> None:
    dice = random.Random(seed)
    whole, interrupted = Console(small_game(seed)), Console(small_game(seed))
    whole.plain = interrupted.plain = plain

    for moment in range(25):
        cycles, buttons = dice.randrange(1, 20_000), dice.randrange(256)
        for console in (whole, interrupted):
            console.step(buttons)
            console.run_cycles(cycles)
        state = interrupted.save()
        interrupted.step(dice.randrange(256), 2, _console.GRAY)
        interrupted.load(state)

        assert visible_state(interrupted) == visible_state(whole), f"moment {moment}"
        assert interrupted.save() == state


@pytest.mark.parametrize("seed", range(30))
def test_a_wild_program_goes_on_in_another_console(seed: int) -> None:
    dice = random.Random(seed)
    rom = ProgramMaker(dice).wild_cartridge()
    whole = Console(rom)
    whole.ram[:] = dice.randbytes(2048)

    for moment in range(20):
        whole.run_cycles(dice.choice((1, dice.randrange(300), dice.randrange(30_000))))
        fresh = Console(rom)
        fresh.load(whole.save())
        cycles = dice.randrange(1, 3000)
        fresh.run_cycles(cycles)
        whole.run_cycles(cycles)

        assert visible_state(fresh) == visible_state(whole), f"moment {moment}"


def test_the_picture_comes_with_the_state() -> None:
    console = played(1)
    state, picture, frame_hash = console.save(), picture_of(console), console.frame_hash()
    console.step(0xFF, 3, _console.COLOUR)
    assert not np.array_equal(picture_of(console), picture)

    console.load(state)

    assert np.array_equal(picture_of(console), picture)
    assert console.frame_hash() == frame_hash


@pytest.mark.integration
def test_a_state_goes_on_in_another_process(tmp_path: Path) -> None:
    console = played(2)
    console.run_cycles(17_001)
    (tmp_path / "game.nes").write_bytes(small_game(2))
    (tmp_path / "state").write_bytes(console.save())

    result = subprocess.run(
        [sys.executable, "-c", IN_ANOTHER_PROCESS, str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PROCESS_DEADLINE_S,
        check=True,
    )
    console.run_cycles(12_345)
    console.step(0x91, 3, _console.COLOUR)

    assert (tmp_path / "later state").read_bytes() == console.save()
    assert int(result.stdout) == console.frame_hash()


def test_a_state_is_small() -> None:
    assert len(played(3).save()) == _console.STATE_BYTES < 16 * 1024


def test_a_truncated_or_prolonged_state_is_refused() -> None:
    console = played(4)
    state, before = console.save(), visible_state(console)

    for wrong in (*(state[:length] for length in range(0, len(state), 7)), state + b"\0"):
        with pytest.raises(ValueError, match="save state"):
            console.load(wrong)

    assert console.save() == state
    assert visible_state(console) == before


def test_a_flipped_bit_anywhere_is_refused_and_changes_nothing() -> None:
    console = played(5)
    state, before = console.save(), visible_state(console)
    other = Console(small_game(5))
    other.step(0xAA, 9)
    damaged = bytearray(other.save())

    for place in range(len(damaged)):
        bit = 1 << place % 8
        damaged[place] ^= bit
        with pytest.raises(ValueError, match="save state"):
            console.load(damaged)
        damaged[place] ^= bit

    assert console.save() == state
    assert visible_state(console) == before
    console.load(damaged)
    assert visible_state(console) == visible_state(other)


def test_a_state_of_another_version_is_refused_by_name() -> None:
    console = played(6)
    state = bytearray(console.save())
    state[VERSION_OFFSET] += 1

    with pytest.raises(ValueError, match="version 2, expected version 1"):
        console.load(state)


def test_a_state_of_another_cartridge_is_refused() -> None:
    console, other = played(7), played(8)
    state = console.save()

    with pytest.raises(ValueError, match="another cartridge"):
        console.load(other.save())

    assert console.save() == state


@pytest.mark.parametrize("seed", range(50))
def test_random_bytes_are_no_state(seed: int) -> None:
    dice = random.Random(seed)
    console = played(9, frames=1)
    garbage = console.save()[: dice.randrange(40)] + dice.randbytes(_console.STATE_BYTES)

    for length in (dice.randrange(len(garbage)), _console.STATE_BYTES):
        with pytest.raises(ValueError, match="save state"):
            console.load(garbage[:length])


@pytest.mark.parametrize(
    ("keep", "latched", "held"),
    [(False, [0, 1, 0, 1, 0, 0], [1, 0, 1, 0]), (True, [1, 1, 1, 1, 0, 0], [1, 1, 1, 1])],
)
def test_controllers_stay_as_they_are_when_asked(
    keep: bool, latched: list[int], held: list[int]
) -> None:
    saved, console = Console(controller_cartridge()), Console(controller_cartridge())
    saved.step(0b0101_0101)
    latch(saved)
    assert read_bits(saved, 3) == [1, 0, 1]
    console.step(0b0000_1111)
    latch(console)

    console.load(saved.save(), keep_controllers=keep)

    assert visible_state(console) == visible_state(saved)
    assert read_bits(console, 6) == latched
    latch(console)
    assert read_bits(console, 4) == held


@pytest.mark.parametrize(("keep", "bits"), [(False, [0, 1, 0]), (True, [1, 1, 1])])
def test_a_strobe_stays_as_it_is_when_asked(keep: bool, bits: list[int]) -> None:
    """A console whose program has not latched yet is strobing: it shows the first button."""
    saved, console = Console(controller_cartridge()), Console(controller_cartridge())
    saved.step(0b0000_0010)
    latch(saved)
    console.step(0b0000_0001)

    console.load(saved.save(), keep_controllers=keep)

    assert read_bits(console, 3) == bits
