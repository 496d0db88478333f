"""A program that does what games do: NMI, DMA, split scrolling by sprite 0, controllers."""

from __future__ import annotations

import random

from tests.native.assembler import Assembler
from tests.native.random_programs import ORIGIN
from tests.native.synthetic_cartridge import cartridge, random_chr

FRAMES_ADDRESS = 0x10
SPLITS_ADDRESS = 0x11
BUTTONS_ADDRESS = 0x12
_SOLID_TILE = 1

_START = """
    SEI
    CLD
    LDX imm $ff
    TXS
    vblank:
    LDA abs $2002
    BPL rel vblank
    LDA imm $00
    STA abs $2001
    LDA imm $20
    STA abs $2006
    LDA imm $00
    STA abs $2006
    LDY imm $08
    LDX imm $00
    names:
    TXA
    EOR zp $20
    ADC imm $35
    STA zp $20
    STA abs $2007
    INX
    BNE rel names
    DEY
    BNE rel names
    LDA imm $3f
    STA abs $2006
    LDA imm $00
    STA abs $2006
    LDX imm $20
    palette:
    LDA absx colours
    STA abs $2007
    DEX
    BNE rel palette
    sprites:
    LDA absx sprite_table
    STA absx $0200
    INX
    BNE rel sprites
    LDA imm $1e
    STA abs $2001
    LDA imm $80
    STA abs $2000
    wait:
    INC zp $13
    JMP abs wait
"""

_NMI = """
    handler:
    PHA
    TXA
    PHA
    LDA imm $00
    STA abs $2003
    LDA imm $02
    STA abs $4014
    INC zp $10
    LDX imm $01
    STX abs $4016
    DEX
    STX abs $4016
    LDX imm $08
    joypad:
    LDA abs $4016
    LSR acc
    ROL zp $12
    DEX
    BNE rel joypad
    LDA abs $4017
    STA zp $14
    LDA abs $2002
    LDA imm $00
    STA abs $2005
    STA abs $2005
    LDA zp $12
    AND imm $30
    ORA imm $80
    STA abs $2000
    JSR abs move
    over:
    LDA abs $2002
    AND imm $40
    BNE rel over
    hit:
    LDA abs $2002
    AND imm $40
    BEQ rel hit
    INC zp $11
    LDA zp $15
    STA abs $2005
    LDA zp $10
    STA abs $2005
    PLA
    TAX
    PLA
    RTI
    move:
    LDA zp $12
    AND imm $0f
    CLC
    ADC zp $15
    STA zp $15
    LDX imm $04
    moving:
    LDA absx $0203
    ADC zp $12
    STA absx $0203
    DEC absx $0204
    INX
    INX
    INX
    INX
    BNE rel moving
    RTS
"""


def small_game(seed: int) -> bytes:
    """A 16 KiB cartridge; its picture depends on the seed, and its play on the buttons."""
    dice = random.Random(seed)
    assembler = Assembler(ORIGIN)
    assembler.label("sprite_table")
    assembler.data(_sprite_table(dice))
    assembler.label("colours")
    # Colour numbers above 63 would let nes_py read behind its table.
    assembler.data(bytes(dice.randrange(64) for _ in range(33)))
    assembler.label("start")
    assembler.ops(_START)
    assembler.ops(_NMI)
    start, handler = assembler.address_of("start"), assembler.address_of("handler")
    return cartridge(
        assembler.bytes(),
        _character_rom(dice),
        vectors=(handler, start, handler),
        is_vertical=dice.random() < 0.5,
    )


def _sprite_table(dice: random.Random) -> bytes:
    """Sprite 0 is solid and stands in line 30; the others are anywhere."""
    sprites = bytearray(dice.randbytes(256))
    sprites[:4] = bytes((30, _SOLID_TILE, 0x20, 120))
    return bytes(sprites)


def _character_rom(dice: random.Random) -> bytes:
    """The solid tile is there for 8x8 and for 8x16 sprites, in both pages."""
    chr_rom = bytearray(random_chr(dice))
    for page in (0x0000, 0x1000):
        chr_rom[page : page + 0x20] = b"\xff" * 0x20
    return bytes(chr_rom)
