"""What the native console refuses to play, and that it says why."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actor.env.native._console import Console
from tests.native.console_trio import visible_state
from tests.native.synthetic_cartridge import CHR_BYTES, MAGIC, PRG_BANK_BYTES, cartridge, header

PRG, CHR = bytes(PRG_BANK_BYTES), bytes(CHR_BYTES)
WHOLE = header(1) + PRG + CHR
PAL_OFFSET = 9


@pytest.mark.parametrize(
    ("image", "reason"),
    [
        (b"", "too short"),
        (WHOLE[:15], "too short"),
        (b"NES\x1b" + WHOLE[4:], "header"),
        (bytes(len(WHOLE)), "header"),
        (header(1, flags6=0x10) + PRG + CHR, "mapper 1 "),
        (header(1, flags7=0x40) + PRG + CHR, "mapper 64 "),
        (header(1, flags6=0xF0, flags7=0xF0) + PRG + CHR, "mapper 255 "),
        (header(0) + PRG + CHR, "program banks.* 0"),
        (header(3) + 3 * PRG + CHR, "program banks.* 3"),
        (header(255) + PRG + CHR, "program banks.* 255"),
        (header(1, chr_banks=0) + PRG, "character bank.* 0"),
        (header(1, chr_banks=2) + PRG + 2 * CHR, "character bank.* 2"),
        (WHOLE[:-1], "truncated: expected 24592 bytes, got 24591"),
        (header(2) + PRG + CHR, "truncated: expected 40976 bytes, got 24592"),
        (WHOLE[:16], "truncated: expected 24592 bytes, got 16"),
        (header(1, flags6=0x08) + PRG + CHR, "four-screen"),
        (header(1, flags6=0x02) + PRG + CHR, "battery"),
        (header(1, flags6=0x04) + bytes(512) + PRG + CHR, "trainer"),
        (WHOLE[:PAL_OFFSET] + b"\x01" + WHOLE[PAL_OFFSET + 1 :], "PAL"),
    ],
)
def test_a_cartridge_that_cannot_be_played_is_refused_with_the_reason(
    image: bytes, reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        Console(image)


@pytest.mark.parametrize("banks", [1, 2])
@pytest.mark.parametrize("is_vertical", [False, True])
def test_both_sizes_and_both_mirrorings_are_played(banks: int, is_vertical: bool) -> None:
    Console(cartridge(banks * PRG, CHR, is_vertical=is_vertical)).step(0)


def test_sixteen_kib_are_seen_twice() -> None:
    program = bytearray(PRG)
    program[-4:-2] = (0x9234).to_bytes(2, "little")
    small = Console(cartridge(bytes(program), CHR))
    large = Console(cartridge(bytes(program) * 2, CHR))

    for console in (small, large):
        console.step(0)

    assert small.registers() == large.registers()
    assert bytes(small.ram) == bytes(large.ram)


def test_the_cartridge_is_copied() -> None:
    image = bytearray(WHOLE)
    console, untouched = Console(image), Console(WHOLE)

    image[16:] = b"\xea" * (len(image) - 16)
    console.step(0)
    untouched.step(0)

    assert console.save() == untouched.save()


def test_something_that_is_not_bytes_is_refused() -> None:
    with pytest.raises(TypeError, match="bytes-like"):
        Console("cartridge")  # type: ignore[arg-type]  # the point of the test


def play_if_possible(image: bytes) -> None:
    try:
        console = Console(image)
    except ValueError:
        return
    console.step(0, 2)


@given(st.binary(max_size=64))
def test_any_bytes_are_played_or_refused(image: bytes) -> None:
    play_if_possible(image)


@settings(max_examples=60)
@given(st.binary(min_size=12, max_size=12), st.integers(0, 3 * PRG_BANK_BYTES))
def test_any_header_is_played_or_refused(fields: bytes, size: int) -> None:
    play_if_possible(MAGIC + fields + bytes(size))


@pytest.mark.parametrize("seed", range(60))
def test_any_program_is_played(seed: int) -> None:
    """Random bytes, not only official instructions, with random vectors."""
    dice = random.Random(seed)
    rom = header(2) + dice.randbytes(2 * PRG_BANK_BYTES + CHR_BYTES)
    fast, plain = Console(rom), Console(rom)
    plain.plain = True

    for console in (fast, plain):
        console.step(0x5A, 5)

    assert visible_state(fast) == visible_state(plain)
