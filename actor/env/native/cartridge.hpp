// What does not change: the program, the characters, and both in the form the fast path likes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "decode.hpp"

namespace nes {

constexpr int kProgramBytes = 0x8000;
constexpr int kCharacterBytes = 0x2000;

struct CartridgeError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Cartridge {
  // Refuses, with a reason, all but NTSC cartridges without a mapper (NROM).
  static std::shared_ptr<const Cartridge> parse(const std::uint8_t* bytes, std::size_t size);

  std::uint8_t character(std::uint16_t address) const {
    return address < kCharacterBytes ? characters[address] : 0;
  }

  // Where a name table address lies in the 2 KiB of video memory.
  std::uint16_t vram_offset(std::uint16_t address) const {
    const int table = address >= 0x2C00 ? 3 : (address >> 10) & 3;
    const int half = is_vertical ? table & 1 : table >> 1;
    return static_cast<std::uint16_t>(half << 10 | (address & 0x3FF));
  }

  // The eight pixels of one row of a character, one byte each, the leftmost in the lowest byte.
  // `address` is that of the row's first plane.
  std::uint64_t pixels(std::uint16_t address) const {
    return rows[(address >> 4) * 8 + (address & 7)];
  }

  std::array<std::uint8_t, kProgramBytes> program;
  std::array<std::uint8_t, kCharacterBytes> characters;
  std::array<std::uint64_t, kCharacterBytes / 2> rows;
  std::vector<Decoded> code;  // for each address from $8000, and one more that leaves the fast path
  std::uint64_t hash = 0;     // of program and characters
  bool is_vertical = false;
};

// One byte for each of eight pixels, from the two planes of a row.
std::uint64_t spread_planes(std::uint8_t low, std::uint8_t high);

// The same eight pixels from right to left.
inline std::uint64_t reversed(std::uint64_t pixels) {
  std::uint64_t mirrored = 0;
  for (int x = 0; x < 8; ++x) mirrored |= (pixels >> (8 * x) & 0xFF) << (8 * (7 - x));
  return mirrored;
}

}  // namespace nes
