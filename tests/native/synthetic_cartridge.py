"""Builds valid NROM images out of programs made by tests; no game's data is involved."""

from __future__ import annotations

import random

PRG_BANK_BYTES = 16 * 1024
CHR_BYTES = 8 * 1024
MAGIC = b"NES\x1a"
VERTICAL = 1


def cartridge(
    program: bytes,
    chr_rom: bytes,
    *,
    vectors: tuple[int, int, int] | None = None,
    is_vertical: bool = False,
) -> bytes:
    """An image whose program fills the addresses up to $FFFF: 16 or 32 KiB, as it needs.

    The code starts at $C000 or, when longer than 16 KiB, at $8000. `vectors` are those of NMI,
    reset and BRK; without them the program's last six bytes stay what they are.
    """
    banks = 1 if len(program) <= PRG_BANK_BYTES else 2
    prg = bytearray(program.ljust(banks * PRG_BANK_BYTES, b"\xea"))
    if vectors is not None:
        prg[-6:] = b"".join(vector.to_bytes(2, "little") for vector in vectors)
    return header(banks, flags6=VERTICAL if is_vertical else 0) + bytes(prg) + chr_rom


def header(prg_banks: int, *, chr_banks: int = 1, flags6: int = 0, flags7: int = 0) -> bytes:
    return MAGIC + bytes((prg_banks, chr_banks, flags6, flags7)) + bytes(8)


def random_chr(random_source: random.Random) -> bytes:
    """Patterns with wide transparent parts, so that priority and sprite-0 hits are not trivial."""
    chr_rom = bytearray(random_source.randbytes(CHR_BYTES))
    for plane_pair in range(0, CHR_BYTES, 16):
        if random_source.random() < 0.3:
            kept = random_source.randrange(16)
            chr_rom[plane_pair : plane_pair + kept] = bytes(kept)
    return bytes(chr_rom)
