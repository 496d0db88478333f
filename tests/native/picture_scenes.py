"""Random pictures and random meddling with the picture unit's registers while it draws."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

WriteRegister = Callable[[int, int], None]
SHOW_ALL = 0x1E


@dataclass(frozen=True, slots=True)
class Access:
    """One access to a register, some dots after the last; a write when there is a value."""

    dots_before: int
    register: int
    value: int | None


def write_scene(write: WriteRegister, dice: random.Random) -> None:
    """Fill name tables, palette and sprites; call it before the first line."""
    write_video_memory(write, 0x2000, dice.randbytes(0xC00))
    write_video_memory(write, 0x3F00, bytes(dice.randrange(256) for _ in range(32)))
    write(3, 0)
    for value in random_sprites(dice):
        write(4, value)
    write_scroll(write, dice)
    write(0, dice.randrange(256))
    write(1, SHOW_ALL)


def write_video_memory(write: WriteRegister, address: int, values: bytes) -> None:
    write(0, 0)
    write(6, address >> 8)
    write(6, address & 0xFF)
    for value in values:
        write(7, value)


def write_scroll(write: WriteRegister, dice: random.Random) -> None:
    """Both bytes of an address, then both of a scroll position, as games do."""
    for register in (6, 6, 5, 5):
        write(register, dice.randrange(256))


def random_sprites(dice: random.Random) -> bytes:
    """Crowds on the same lines, edges of the screen, and rows that only line 0 of a frame shows."""
    crowd = dice.randrange(256)
    sprites = bytearray()
    for _ in range(64):
        top = dice.choice(
            (crowd + dice.randrange(6), dice.randrange(256), dice.randrange(222, 256))
        )
        left = dice.choice((dice.randrange(256), dice.randrange(12), dice.randrange(244, 256)))
        # Low tiles matter: the negative rows of line 0 leave the character ROM there.
        tile = dice.choice((dice.randrange(256), dice.randrange(3)))
        sprites += bytes((top & 0xFF, tile, dice.randrange(256), left))
    return bytes(sprites)


def random_accesses(dice: random.Random, count: int) -> list[Access]:
    """Bursts within a line, pauses of many lines."""
    accesses: list[Access] = []
    while len(accesses) < count:
        pause = dice.choice((dice.randrange(12), dice.randrange(400), dice.randrange(9_000)))
        for register, value in dice.choice(_MEDDLINGS)(dice):
            accesses.append(Access(pause, register, value))
            pause = dice.choice((0, 3, dice.randrange(60)))
    return accesses


Meddling = list[tuple[int, int | None]]


def _scroll(dice: random.Random) -> Meddling:
    return [(5, dice.randrange(256)), (5, dice.randrange(256))]


def _half_a_scroll(dice: random.Random) -> Meddling:
    return [(dice.choice((5, 6)), dice.randrange(256))]


def _address(dice: random.Random) -> Meddling:
    return [(6, dice.randrange(256)), (6, dice.randrange(256))]


def _control(dice: random.Random) -> Meddling:
    return [(0, dice.randrange(256))]


def _mask(dice: random.Random) -> Meddling:
    """Mostly everything stays shown, or there would be little to see."""
    return [(1, dice.choice((SHOW_ALL, SHOW_ALL, 0x18, 0x1A, 0x1C, dice.randrange(256))))]


def _blank_and_show(dice: random.Random) -> Meddling:
    return [(1, dice.choice((0, 0x08, 0x10))), *_palette(dice), *_scroll(dice), (1, SHOW_ALL)]


def _palette(dice: random.Random) -> Meddling:
    address = dice.choice((0x3F00 + dice.randrange(32), 0x3F10, dice.randrange(0x3EFE, 0x4000)))
    return [(6, address >> 8), (6, address & 0xFF), (7, dice.randrange(256))]


def _names(dice: random.Random) -> Meddling:
    address = dice.randrange(0x1FF0, 0x3F00)
    values = [(7, dice.randrange(256)) for _ in range(dice.randrange(1, 5))]
    return [(6, address >> 8), (6, address & 0xFF), *values]


def _data(dice: random.Random) -> Meddling:
    """Reads and writes wherever the picture unit's address happens to be."""
    return [(7, dice.choice((None, dice.randrange(256)))) for _ in range(dice.randrange(1, 4))]


def _sprites(dice: random.Random) -> Meddling:
    values = [(4, dice.randrange(256)) for _ in range(dice.randrange(1, 6))]
    return [(3, dice.choice((0, dice.randrange(256)))), *values]


def _sprite_start(dice: random.Random) -> Meddling:
    return [(3, dice.choice((0, 0, dice.randrange(256))))]


def _read(dice: random.Random) -> Meddling:
    return [(dice.choice((2, 4, 7, dice.randrange(8))), None)]


def _status_is_not_written(dice: random.Random) -> Meddling:
    return [(2, dice.randrange(256))]


_MEDDLINGS = (
    _scroll, _half_a_scroll, _address, _control, _mask, _blank_and_show, _palette, _names, _data,
    _sprites, _sprite_start, _read, _read, _status_is_not_written,
)  # fmt: skip
