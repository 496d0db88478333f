"""A slow picture unit: every dot does what nes_py's does at that dot, and nothing else.

It draws colour numbers into `picture`, which keeps what was drawn before, as the console's does.
"""

from __future__ import annotations

from collections.abc import Callable

DOTS_PER_LINE = 341
LAST_LINE = 260
VBLANK_LINE = 241
PICTURE_HEIGHT, PICTURE_WIDTH = 240, 256
HORIZONTAL_BITS, VERTICAL_BITS = 0x041F, 0x7BE0

# $2000
INCREMENT_32, SPRITE_PAGE, BACKGROUND_PAGE, TALL_SPRITES, NMI_ENABLE = 4, 8, 16, 32, 128
# $2001
LEFT_BACKGROUND, LEFT_SPRITES, SHOW_BACKGROUND, SHOW_SPRITES = 2, 4, 8, 16
SHOW_BOTH = SHOW_BACKGROUND | SHOW_SPRITES
# A sprite's attributes
BEHIND, FLIP_ACROSS, FLIP_DOWN = 32, 64, 128


class ReferencePpu:
    """`dot` is the next to be done; `line` -1 is the pre-render line."""

    def __init__(self, chr_rom: bytes, *, is_vertical: bool, on_nmi: Callable[[], None]) -> None:
        self._chr_rom, self._on_nmi = chr_rom, on_nmi
        self._tables = (0, 0x400, 0, 0x400) if is_vertical else (0, 0, 0x400, 0x400)
        self.mask = LEFT_BACKGROUND | LEFT_SPRITES  # nes_py's flags say what is hidden: nothing
        self.oam_address = self.data_buffer = 0
        self.sprite0_hit = False
        self.names, self.palette, self.oam = bytearray(2048), bytearray(32), bytearray(256)
        self.picture = bytearray(PICTURE_HEIGHT * PICTURE_WIDTH)
        self.reset()

    def reset(self) -> None:
        """What is not mentioned here stays, most of all the memories."""
        self.line, self.dot = -1, 0
        self.v = self.t = self.fine_x = 0
        self.is_first_write = self.is_even_frame = True
        self.vblank = False
        self.control = 0
        self.mask |= SHOW_BOTH
        self.sprites: list[int] = []  # the OAM indices that the current line shows

    def state(self) -> tuple[int, ...]:
        return (
            self.line, self.dot, self.v, self.t, self.fine_x, self.is_first_write, self.vblank,
            self.sprite0_hit, self.is_even_frame, self.control, self.mask, self.oam_address,
            self.data_buffer,
        )  # fmt: skip

    def video_memory(self) -> bytes:
        return bytes(self.names + self.palette + self.oam)

    # Registers

    def read(self, register: int) -> int:
        if register == 2:
            status = self.vblank << 7 | self.sprite0_hit << 6
            self.vblank, self.is_first_write = False, True
            return status
        if register == 4:
            return self.oam[self.oam_address]
        if register == 7:
            return self._read_data()
        return 0

    def write(self, register: int, value: int) -> None:
        if register == 0:
            self.control = value
            self.t = self.t & ~0x0C00 | (value & 3) << 10
        elif register == 1:
            self.mask = value
        elif register == 3:
            self.oam_address = value
        elif register == 4:
            self.oam[self.oam_address] = value
            self.oam_address = (self.oam_address + 1) & 0xFF
        elif register in (5, 6):
            self._write_twice(register, value)
        elif register == 7:
            self._bus_write(self.v, value)
            self._increment_v()

    def _write_twice(self, register: int, value: int) -> None:
        if register == 5 and self.is_first_write:
            self.t, self.fine_x = self.t & ~0x1F | value >> 3, value & 7
        elif register == 5:
            self.t = self.t & ~0x73E0 | (value & 7) << 12 | (value >> 3) << 5
        elif self.is_first_write:
            self.t = self.t & 0xFF | (value & 0x3F) << 8
        else:
            self.t = self.t & 0xFF00 | value
            self.v = self.t
        self.is_first_write = not self.is_first_write

    def dma(self, page: bytes) -> None:
        for offset, value in enumerate(page):
            self.oam[(self.oam_address + offset) & 0xFF] = value

    def _read_data(self) -> int:
        value = self._bus_read(self.v)
        self._increment_v()
        if self.v < 0x3F00:
            value, self.data_buffer = self.data_buffer, value
        return value

    def _increment_v(self) -> None:
        self.v = (self.v + (32 if self.control & INCREMENT_32 else 1)) & 0xFFFF

    # The picture bus

    def _bus_read(self, address: int) -> int:
        if address < 0x2000:
            return self._chr_rom[address]
        if address < 0x3EFF:
            return self.names[self._name_index(address)]
        return self.palette[address & 0x1F] if address < 0x3FFF else 0

    def _bus_write(self, address: int, value: int) -> None:
        if 0x2000 <= address < 0x3EFF:
            self.names[self._name_index(address)] = value
        elif 0x3EFF <= address < 0x3FFF:
            self.palette[0 if address == 0x3F10 else address & 0x1F] = value

    def _name_index(self, address: int) -> int:
        table = min((address - 0x2000) >> 10, 3)
        return self._tables[table] + (address & 0x3FF)

    # Time

    def run(self, dots: int) -> None:
        for _ in range(dots):
            line, dot = self.line, self.dot
            self.dot += 1
            if 0 <= line < PICTURE_HEIGHT:
                self._visible_dot(line, dot)
            elif line == -1:
                self._pre_render_dot(dot)
            elif line == VBLANK_LINE and dot == 1:
                self.vblank = True
                if self.control & NMI_ENABLE:
                    self._on_nmi()
            if dot == DOTS_PER_LINE:
                self._next_line()

    def _next_line(self) -> None:
        self.line, self.dot = self.line + 1, 1
        if self.line > LAST_LINE:
            self.line = -1
            self.is_even_frame = not self.is_even_frame

    def _shows_both(self) -> bool:
        return self.mask & SHOW_BOTH == SHOW_BOTH

    def _copy_from_t(self, bits: int) -> None:
        if self._shows_both():
            self.v = self.v & ~bits | self.t & bits

    def _pre_render_dot(self, dot: int) -> None:
        if dot == 1:
            self.vblank = self.sprite0_hit = False
        elif dot == 258:
            self._copy_from_t(HORIZONTAL_BITS)
        elif 281 <= dot <= 304:
            self._copy_from_t(VERTICAL_BITS)
        elif dot == DOTS_PER_LINE - 1 and not self.is_even_frame and self._shows_both():
            self._next_line()

    def _visible_dot(self, line: int, dot: int) -> None:
        if 1 <= dot <= PICTURE_WIDTH:
            self._draw(line, dot - 1)
        elif dot == 257 and self.mask & SHOW_BACKGROUND:
            self._increment_y()
        elif dot == 258:
            self._copy_from_t(HORIZONTAL_BITS)
        elif dot == DOTS_PER_LINE:
            self._list_sprites(line)

    def _increment_y(self) -> None:
        if self.v & 0x7000 != 0x7000:
            self.v += 0x1000
            return
        coarse_y = self.v >> 5 & 31
        self.v &= ~0x73E0
        if coarse_y == 29:
            self.v ^= 0x0800
        elif coarse_y != 31:
            self.v |= (coarse_y + 1) << 5

    def _increment_coarse_x(self) -> None:
        if self.v & 31 == 31:
            self.v = self.v & ~31 ^ 0x0400
        else:
            self.v += 1

    def _height(self) -> int:
        return 16 if self.control & TALL_SPRITES else 8

    def _list_sprites(self, line: int) -> None:
        height = self._height()
        candidates = range(self.oam_address // 4, 64)
        self.sprites = [i for i in candidates if 0 <= line - self.oam[4 * i] < height][:8]

    # Pixels

    def _draw(self, line: int, x: int) -> None:
        mask, background = self.mask, 0
        if mask & SHOW_BACKGROUND:
            fine_x = (self.fine_x + x) % 8
            if x >= 8 or mask & LEFT_BACKGROUND:
                background = self._background_entry(7 - fine_x)
            if fine_x == 7:
                self._increment_coarse_x()
        entry = background
        if self.sprites and mask & SHOW_SPRITES and (x >= 8 or mask & LEFT_SPRITES):
            index, sprite = self._sprite_entry(line, x)
            if sprite and background and index == 0:
                self.sprite0_hit = True
            if sprite and not (background and self.oam[4 * index + 2] & BEHIND):
                entry = sprite
        self.picture[line * PICTURE_WIDTH + x] = self.palette[entry] & 0x3F

    def _background_entry(self, bit: int) -> int:
        """The palette entry that the background shows, 0 where it is transparent."""
        v, table = self.v, self._tables[self.v >> 10 & 3]
        tile = self.names[table | v & 0x3FF]
        address = (self.control & BACKGROUND_PAGE) << 8 | tile << 4 | v >> 12 & 7
        chr_rom = self._chr_rom
        pixel = chr_rom[address] >> bit & 1 | (chr_rom[address + 8] >> bit & 1) << 1
        if pixel == 0:
            return 0
        attributes = self.names[table | 0x3C0 | v >> 4 & 0x38 | v >> 2 & 7]
        return (attributes >> (v >> 4 & 4 | v & 2) & 3) << 2 | pixel

    def _sprite_entry(self, line: int, x: int) -> tuple[int, int]:
        """The OAM index of the sprite in front at this pixel and its palette entry, 0 for none."""
        for index in self.sprites:
            across = x - self.oam[4 * index + 3]
            if not 0 <= across < 8:
                continue
            attributes = self.oam[4 * index + 2]
            bit = across if attributes & FLIP_ACROSS else 7 - across
            address = self._sprite_address(index, line)
            low, high = self._sprite_plane(address), self._sprite_plane(address + 8)
            pixel = low >> bit & 1 | (high >> bit & 1) << 1
            if pixel:
                return index, 0x10 | (attributes & 3) << 2 | pixel
        return 0, 0

    def _sprite_address(self, index: int, line: int) -> int:
        top, tile, attributes = self.oam[4 * index : 4 * index + 3]
        height = self._height()
        row = line - (top + 1) % 256
        # As C does it: the remainder has the sign of the dividend. Line 0 meets negative rows.
        row = row % height if row >= 0 else -(-row % height)
        if attributes & FLIP_DOWN:
            row ^= height - 1
        if height == 16:
            return (tile >> 1) * 32 + (row & 7 | (row & 8) << 1) | (tile & 1) << 12
        return tile * 16 + row + (0x1000 if self.control & SPRITE_PAGE else 0)

    def _sprite_plane(self, address: int) -> int:
        address &= 0xFFFF
        return self._chr_rom[address] if address < 0x2000 else 0
