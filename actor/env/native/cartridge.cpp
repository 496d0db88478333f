#include "cartridge.hpp"

#include <cstring>
#include <mutex>
#include <utility>

#include "checksum.hpp"

namespace nes {
namespace {

constexpr std::size_t kHeaderBytes = 16;
constexpr std::size_t kProgramBankBytes = 0x4000;

void require(bool holds, const std::string& complaint) {
  if (!holds) throw CartridgeError(complaint);
}

std::string number(std::size_t value) { return std::to_string(value); }

void check_header(const std::uint8_t* header, std::size_t size) {
  require(size >= kHeaderBytes, "too short for a cartridge: " + number(size) + " bytes");
  require(std::memcmp(header, "NES\x1a", 4) == 0, "not an iNES cartridge: it has no NES header");
  const int mapper = (header[6] >> 4) | (header[7] & 0xF0);
  require(mapper == 0, "mapper " + number(mapper) + " is not supported, only 0 (NROM)");
  require(!(header[6] & 0x08), "four-screen mirroring is not supported");
  require(!(header[6] & 0x04), "a trainer is not supported");
  require(!(header[6] & 0x02), "battery RAM is not supported");
  require(!(header[9] & 0x01), "PAL cartridges are not supported, only NTSC");
  require(header[4] == 1 || header[4] == 2,
          "expected 1 or 2 program banks of 16 KiB, got " + number(header[4]));
  require(header[5] == 1, "expected 1 character bank of 8 KiB, got " + number(header[5]));
}

void spread_characters(Cartridge& cartridge) {
  for (std::size_t row = 0; row < cartridge.rows.size(); ++row) {
    const std::size_t address = row / 8 * 16 + row % 8;
    cartridge.rows[row] =
        spread_planes(cartridge.characters[address], cartridge.characters[address + 8]);
  }
}

bool is_same(const Cartridge& a, const Cartridge& b) {
  return a.hash == b.hash && a.is_vertical == b.is_vertical && a.program == b.program &&
         a.characters == b.characters;
}

// All consoles with the same cartridge share one: what is decoded stays in the processor's cache.
std::shared_ptr<const Cartridge> share(std::shared_ptr<Cartridge> fresh) {
  static std::mutex mutex;
  static std::weak_ptr<const Cartridge> newest;
  const std::lock_guard<std::mutex> lock(mutex);
  if (auto known = newest.lock(); known && is_same(*known, *fresh)) return known;
  fresh->code = decode(fresh->program.data());
  spread_characters(*fresh);
  newest = fresh;
  return fresh;
}

}  // namespace

std::uint64_t spread_planes(std::uint8_t low, std::uint8_t high) {
  std::uint64_t pixels = 0;
  for (int x = 0; x < 8; ++x) {
    const std::uint64_t pixel = ((low >> (7 - x)) & 1) | ((high >> (7 - x)) & 1) << 1;
    pixels |= pixel << (8 * x);
  }
  return pixels;
}

std::shared_ptr<const Cartridge> Cartridge::parse(const std::uint8_t* bytes, std::size_t size) {
  check_header(bytes, size);
  const std::size_t program_bytes = bytes[4] * kProgramBankBytes;
  const std::size_t expected = kHeaderBytes + program_bytes + kCharacterBytes;
  require(size >= expected,
          "truncated: expected " + number(expected) + " bytes, got " + number(size));

  auto cartridge = std::make_shared<Cartridge>();
  const std::uint8_t* program = bytes + kHeaderBytes;
  // A single bank is seen twice.
  std::memcpy(cartridge->program.data(), program, kProgramBankBytes);
  std::memcpy(cartridge->program.data() + kProgramBankBytes,
              program + (program_bytes - kProgramBankBytes), kProgramBankBytes);
  std::memcpy(cartridge->characters.data(), program + program_bytes, kCharacterBytes);
  cartridge->is_vertical = bytes[6] & 1;
  cartridge->hash = checksum(program, program_bytes + kCharacterBytes) ^ cartridge->is_vertical;
  return share(std::move(cartridge));
}

}  // namespace nes
