// The whole changing state of a console, as plain values. Copying it is a save state.
#pragma once

#include <cstdint>

#include "quirks.hpp"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "save states and pixels are kept in little-endian order"
#endif

namespace nes {

constexpr int kScreenWidth = 256;
constexpr int kScreenHeight = 240;
constexpr int kRamBytes = 2048;
constexpr int kVramBytes = 2048;
constexpr int kPaletteBytes = 32;
constexpr int kOamBytes = 256;
constexpr int kSpritesPerLine = 8;
constexpr int kFrameCycles = NES_FRAME_CYCLES;
constexpr int kDotsPerCycle = 3;

// Bits of the status byte.
#if NES_STATUS_REVERSED
constexpr std::uint8_t kNegative = 0x01, kOverflow = 0x02, kUnused = 0x04, kBreak = 0x08;
constexpr std::uint8_t kDecimal = 0x10, kInterruptsOff = 0x20, kZero = 0x40, kCarry = 0x80;
#else
constexpr std::uint8_t kNegative = 0x80, kOverflow = 0x40, kUnused = 0x20, kBreak = 0x10;
constexpr std::uint8_t kDecimal = 0x08, kInterruptsOff = 0x04, kZero = 0x02, kCarry = 0x01;
#endif
// Literally these bits, whatever they mean in the order above.
constexpr std::uint8_t kSetByInterrupt = 0x20, kSetByBreak = 0x10, kStatusAtReset = 0x34;

struct Cpu {
  std::uint16_t pc = 0;
  std::uint8_t a = 0, x = 0, y = 0, s = 0;
  std::uint8_t p = kStatusAtReset;
  std::uint8_t is_odd_cycle = 0;  // whether the number of cycles since the reset is odd
  std::int32_t wait = 1;          // the next instruction executes in this cycle from now
};

struct SpriteList {
  std::uint8_t count = 0;
  std::uint8_t index[kSpritesPerLine] = {};
};

struct PpuRegisters {
  std::int16_t line = -1;  // -1 before the picture, 0 to 239 in it, up to 260 after it
  std::int16_t dot = 0;    // the next one, 1 to 341; 0 only after a reset
  std::uint16_t v = 0, t = 0;
  std::uint8_t fine_x = 0;
  std::uint8_t is_first_write = 1;
  std::uint8_t is_even_frame = 1;
  std::uint8_t vblank = 0;
  std::uint8_t sprite0_hit = 0;
  std::uint8_t control = 0;
  std::uint8_t mask = 0x06;  // the left edge is shown until the program says otherwise
  std::uint8_t oam_address = 0;
  std::uint8_t data_buffer = 0;
  SpriteList sprites;  // of the line that is drawn next or now

  bool shows_background() const { return mask & 0x08; }
  bool shows_sprites() const { return mask & 0x10; }
  bool shows_both() const { return (mask & 0x18) == 0x18; }
  bool shows_left_background() const { return mask & 0x02; }
  bool shows_left_sprites() const { return mask & 0x04; }
  bool interrupts() const { return control & 0x80; }
  int sprite_height() const { return control & 0x20 ? 16 : 8; }
};

struct Ppu : PpuRegisters {
  std::uint8_t palette[kPaletteBytes] = {};
  std::uint8_t oam[kOamBytes] = {};
  std::uint8_t vram[kVramBytes] = {};
};

struct Pad {
  std::uint8_t is_strobing = 1, buttons = 0, latched = 0;

  void strobe(std::uint8_t value) {
    is_strobing = value & 1;
    if (!is_strobing) latched = buttons;
  }

  std::uint8_t read() {
    std::uint8_t bit = is_strobing ? buttons & 1 : latched & 1;
    if (!is_strobing) latched >>= 1;
    return bit | 0x40;
  }
};

struct Console {
  std::uint8_t ram[kRamBytes] = {};
  Cpu cpu;
  Ppu ppu;
  Pad pads[2];
};

}  // namespace nes
