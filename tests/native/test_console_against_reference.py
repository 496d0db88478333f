"""The whole native console on a small game, frame by frame, against the reference console."""

from __future__ import annotations

import random

import numpy as np
import pytest

from actor.env.native import _console
from actor.env.native._console import Console
from tests.native.console_trio import (
    ConsoleTrio,
    differences,
    picture_of,
    reference_picture,
    visible_state,
)
from tests.native.reference_console import FRAME_CYCLES, ReferenceConsole
from tests.native.reference_ppu import PICTURE_HEIGHT, PICTURE_WIDTH
from tests.native.small_game import (
    BUTTONS_ADDRESS,
    FRAMES_ADDRESS,
    SPLITS_ADDRESS,
    small_game,
)
from tests.native.synthetic_cartridge import cartridge

MORE_SEEDS = [pytest.param(seed, marks=pytest.mark.nightly) for seed in range(1000, 1100)]


def reversed_bits(value: int) -> int:
    return int(f"{value:08b}"[::-1], 2)


def test_a_step_is_as_long_as_one_of_nes_py() -> None:
    assert _console.FRAME_CYCLES == FRAME_CYCLES


def test_at_power_up_nothing_of_the_left_edge_is_hidden() -> None:
    rom = cartridge(b"", bytes(8192))

    assert differences(ReferenceConsole(rom), Console(rom)) == []


@pytest.mark.parametrize("seed", [*range(3), *MORE_SEEDS])
def test_a_small_game_frame_by_frame(seed: int) -> None:
    dice = random.Random(seed)
    trio = ConsoleTrio(small_game(seed))

    for frame in range(5):
        buttons = dice.randrange(256)
        trio.step(buttons, look=_console.COLOUR)
        trio.check(f"frame {frame}")
        trio.check_picture(f"frame {frame}")

    ram = trio.reference.ram
    assert ram[FRAMES_ADDRESS] >= 3
    assert ram[SPLITS_ADDRESS] >= 2
    assert reversed_bits(ram[BUTTONS_ADDRESS]) == buttons


@pytest.mark.parametrize("seed", range(2))
def test_a_picture_that_nobody_announced_is_the_same(seed: int) -> None:
    """Asking for it changes nothing, neither the state nor the game that follows."""
    rom = small_game(seed)
    reference = ReferenceConsole(rom)
    consoles = {look: Console(rom) for look in (_console.NOTHING, _console.GRAY, _console.COLOUR)}

    for frame in range(4):
        reference.step(0x81)
        for look, console in consoles.items():
            console.step(0x81, 1, look)
            before = console.save()
            picture = picture_of(console)

            assert np.array_equal(picture, reference_picture(reference.ppu)), (frame, look)
            assert console.save() == before
            assert np.array_equal(picture_of(console), picture)
    for console in consoles.values():
        assert differences(reference, console) == []


@pytest.mark.parametrize("plain", [False, True])
def test_many_frames_in_one_call_are_as_many_calls(plain: bool) -> None:
    rom = small_game(5)
    one_by_one, at_once, by_cycles = Console(rom), Console(rom), Console(rom)
    at_once.plain = plain

    for _ in range(12):
        one_by_one.step(0x42, look=_console.COLOUR)
    at_once.step(0x42, 12, _console.COLOUR)
    by_cycles.step(0x42)
    by_cycles.run_cycles(11 * FRAME_CYCLES)

    assert at_once.save() == one_by_one.save()
    assert visible_state(by_cycles) == visible_state(at_once)
    assert np.array_equal(picture_of(at_once), picture_of(one_by_one))
    assert at_once.frame_hash() == one_by_one.frame_hash()


def test_power_on_clears_ram_and_restarts() -> None:
    trio = ConsoleTrio(small_game(6))
    trio.step(0xFF, look=_console.NOTHING)
    trio.step(0xFF, look=_console.NOTHING)

    trio.reference.power_on()
    for console in trio.consoles.values():
        console.power_on()

    trio.check("after power-on")
    for frame in range(2):
        trio.step(frame, look=_console.COLOUR)
        trio.check(f"frame {frame}")
        trio.check_picture(f"frame {frame}")


def test_many_consoles_step_as_each_alone() -> None:
    roms = [small_game(seed) for seed in range(3)]
    together, alone = [Console(rom) for rom in roms], [Console(rom) for rom in roms]
    buttons = bytes((0x01, 0x80, 0x24))

    _console.step_all(together, buttons, 5, _console.COLOUR)
    for console, byte in zip(alone, buttons, strict=True):
        console.step(byte, 5, _console.COLOUR)

    assert [c.save() for c in together] == [c.save() for c in alone]
    assert [c.frame_hash() for c in together] == [c.frame_hash() for c in alone]


def test_the_frame_hash_sees_ram_and_picture() -> None:
    rom = small_game(7)
    console = Console(rom)
    console.step(0, 3, _console.COLOUR)
    first = console.frame_hash()

    console.ram[0x700] ^= 1
    with_other_ram = console.frame_hash()
    console.ram[0x700] ^= 1

    assert console.frame_hash() == first != with_other_ram
    console.run_ppu(1)
    console.write_ppu(1, 0)
    console.run_ppu(262 * 341)
    assert console.frame_hash() != first


def test_ram_is_live_and_outlives_the_console() -> None:
    console = Console(small_game(8))
    ram = console.ram
    console.step(0, 4)
    frames = ram[FRAMES_ADDRESS]

    console.step(0)
    del console

    assert (len(ram), ram.readonly) == (2048, False)
    assert ram[FRAMES_ADDRESS] == frames + 1


def test_pictures_need_room() -> None:
    console = Console(small_game(9))

    with pytest.raises(ValueError, match="byte"):
        console.colours(bytearray(PICTURE_HEIGHT * PICTURE_WIDTH - 1))
    with pytest.raises(ValueError, match="byte"):
        console.rgb(bytearray(PICTURE_HEIGHT * PICTURE_WIDTH))
