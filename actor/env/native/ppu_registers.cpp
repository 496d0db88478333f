// What the CPU sees of the PPU: its eight registers and the memory behind two of them.
#include <cstring>

#include "ppu_clock.hpp"

namespace nes {

std::uint8_t PpuClock::read(int reg) {
  switch (reg) {
    case 2: {
      const int status = ppu_.vblank << 7 | ppu_.sprite0_hit << 6;
      ppu_.vblank = 0;
      ppu_.is_first_write = 1;
      return static_cast<std::uint8_t>(status);
    }
    case 4: return ppu_.oam[ppu_.oam_address];
    case 7: {
      std::uint8_t value = read_memory(ppu_.v);
      advance_address();
      // It is the address after the access that decides whether the buffer is used.
      if (ppu_.v < 0x3F00) std::swap(value, ppu_.data_buffer);
      return value;
    }
    default: return 0;
  }
}

void PpuClock::write(int reg, std::uint8_t value) {
  switch (reg) {
    case 0:
      if ((ppu_.control ^ value) & 0x20) has_sorted_sprites_ = false;
      if ((ppu_.control ^ value) & 0x10) tile_row_.start = -1;
      ppu_.control = value;
      ppu_.t = static_cast<std::uint16_t>((ppu_.t & ~0x0C00) | (value & 3) << 10);
      break;
    case 1: ppu_.mask = value; break;
    case 3:
      ppu_.oam_address = value;
      has_sorted_sprites_ = false;
      break;
    case 4:
      ppu_.oam[ppu_.oam_address++] = value;
      has_sorted_sprites_ = false;
      break;
    case 5:
      if (ppu_.is_first_write) {
        ppu_.t = static_cast<std::uint16_t>((ppu_.t & ~0x001F) | value >> 3);
        ppu_.fine_x = value & 7;
      } else {
        ppu_.t = static_cast<std::uint16_t>((ppu_.t & ~0x73E0) | (value & 7) << 12 |
                                            (value & 0xF8) << 2);
      }
      ppu_.is_first_write = !ppu_.is_first_write;
      break;
    case 6:
      if (ppu_.is_first_write) {
        ppu_.t = static_cast<std::uint16_t>((ppu_.t & 0x00FF) | (value & 0x3F) << 8);
      } else {
        ppu_.t = static_cast<std::uint16_t>((ppu_.t & 0xFF00) | value);
        ppu_.v = ppu_.t;
      }
      ppu_.is_first_write = !ppu_.is_first_write;
      break;
    case 7:
      write_memory(ppu_.v, value);
      advance_address();
      break;
    default: break;
  }
}

void PpuClock::transfer_sprites(const std::uint8_t page[256]) {
  const int start = ppu_.oam_address;
  std::memcpy(ppu_.oam + start, page, static_cast<std::size_t>(kOamBytes - start));
  std::memcpy(ppu_.oam, page + (kOamBytes - start), static_cast<std::size_t>(start));
  has_sorted_sprites_ = false;
}

void PpuClock::advance_address() {
  ppu_.v = static_cast<std::uint16_t>(ppu_.v + (ppu_.control & 0x04 ? 32 : 1));
}

// The borders are nes_py's: the palette begins one byte early and ends one byte early.
constexpr int kPaletteStart = 0x3EFF;
constexpr int kPaletteEnd = 0x3FFF;

std::uint8_t PpuClock::read_memory(std::uint16_t address) const {
  if (address < kCharacterBytes) return cartridge_.characters[address];
  if (address < kPaletteStart) return ppu_.vram[cartridge_.vram_offset(address)];
  return address < kPaletteEnd ? ppu_.palette[address & 0x1F] : 0;
}

void PpuClock::write_memory(std::uint16_t address, std::uint8_t value) {
  if (address < kCharacterBytes || address >= kPaletteEnd) return;
  if (address < kPaletteStart) {
    ppu_.vram[cartridge_.vram_offset(address)] = value;
    tile_row_.start = -1;
    return;
  }
  ppu_.palette[address == 0x3F10 ? 0 : address & 0x1F] = value;
  has_palette_map_ = false;
}

}  // namespace nes
