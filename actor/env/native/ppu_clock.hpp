// Runs the PPU in large strides, exactly as if dot by dot.
//
// Nothing that the PPU does depends on the CPU but through its registers. So it may lag behind and
// is brought up to date only before a register is touched, and within such a stride all registers
// are constant: whole lines have closed forms. tests/native/reference_ppu.py is the slow truth.
#pragma once

#include <cstdint>

#include "cartridge.hpp"
#include "console.hpp"
#include "screen.hpp"

namespace nes {

class PpuClock {
 public:
  // Without a screen nothing is drawn, but every flag and address is as if it were.
  PpuClock(Ppu& ppu, const Cartridge& cartridge, Screen* screen)
      : ppu_(ppu), cartridge_(cartridge), screen_(screen) {}

  // Bring the PPU to this number of dots since the clock was made; it never goes back.
  void advance_to(int dots) {
    if (dots > done_) advance(dots - done_);
  }

  // Dots from now up to and including the one that begins the vertical blank, if the mask stays.
  int dots_to_vblank() const;

  // Dots, counted as in `advance_to`, with which the status byte will change next, unless a
  // register is written before. For skipping loops that poll it.
  int next_status_change() const;

  int done() const { return done_; }

  // Registers 0 to 7; the clock must have been advanced to the moment of the access.
  std::uint8_t read(int reg);
  void write(int reg, std::uint8_t value);
  void transfer_sprites(const std::uint8_t page[256]);

 private:
  void advance(int dots);
  int last_dot() const;
  void run_dots(int from, int to);
  void run_picture_dots(int from, int to);
  void end_line();
  int skip_lines(int dots);
  void run_pixels(int from_x, int to_x);
  void find_sprites(int line);
  bool may_hit_sprite0(int line) const;
  std::uint64_t sprite_row(int index, int line) const;
  std::uint64_t background_row(std::uint16_t v) const;
  void check_sprite0(int from_x, int to_x);
  int sprite0_hit_x(std::uint16_t v, int line, int from_x, int to_x) const;
  std::uint16_t address_after_line() const;

  void draw_pixels(int from_x, int to_x);
  void draw_background(int from_x, int to_x, std::uint8_t* tiles);
  void find_tiles(int count);
  void find_tiles_in_table(std::uint16_t v, int from, int to);
  void draw_sprites(int from_x, int to_x, std::uint8_t* pixels);
  // Pixels of a line, of which the first is at `from_x`.
  struct LinePart {
    std::uint8_t* pixels;
    int from_x;
  };
  void draw_sprite(int index, int from_x, int to_x, LinePart part);
  void sort_sprites();
  const std::uint8_t* palette_map();

  std::uint8_t read_memory(std::uint16_t address) const;
  void write_memory(std::uint16_t address, std::uint8_t value);
  void advance_address();

  Ppu& ppu_;
  const Cartridge& cartridge_;
  Screen* screen_;
  int done_ = 0;

  // A row of tiles, of which a line shows one line of pixels.
  struct TileRow {
    int start = -1;  // the address of the first, without the line in it
    int count = 0;
    const std::uint64_t* pixels[kScreenWidth / 8 + 1];
    std::uint64_t palettes[kScreenWidth / 8 + 1];
  };

  // Kept while drawing; each is made again after a write that could change it.
  TileRow tile_row_;
  bool has_palette_map_ = false;
  bool has_sorted_sprites_ = false;
  std::uint8_t palette_map_[32];
  SpriteList sorted_sprites_[kScreenHeight];
};

// The address of the tile that lies `tiles` to the right.
inline std::uint16_t tiles_right(std::uint16_t v, int tiles) {
  // Bit 5 of the sum is the name table to the right, which is bit 10 of the address.
  const int coarse = ((v & 0x1F) | (v >> 5 & 0x20)) + tiles;
  return static_cast<std::uint16_t>((v & ~0x041F) | (coarse & 0x1F) | (coarse & 0x20) << 5);
}

}  // namespace nes
