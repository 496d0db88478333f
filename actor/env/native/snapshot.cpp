// Save states: every field in a fixed order and width, so that they mean the same on every host.
//
// A state holds the console twice, as it is and as it was one frame ago: the picture is not kept,
// it is drawn again by playing that frame when somebody looks.
#include <cstring>
#include <string>
#include <type_traits>

#include "checksum.hpp"
#include "machine.hpp"

namespace nes {
namespace {

constexpr char kMagic[8] = {'W', 'Z', 'N', 'E', 'S', 'S', 'T', '\n'};
constexpr std::uint32_t kVersion = 1;

// Counts, writes or reads, so that the order of fields stands in one place.
struct Counter {
  int bytes = 0;
  template <typename T>
  constexpr void operator()(const T&) {
    bytes += sizeof(T);
  }
};

struct Writer {
  std::uint8_t* at;
  template <typename T>
  void operator()(const T& field) {
    std::memcpy(at, &field, sizeof field);
    at += sizeof field;
  }
};

struct Reader {
  const std::uint8_t* at;
  template <typename T>
  void operator()(T& field) {
    std::memcpy(&field, at, sizeof field);
    at += sizeof field;
  }
};

template <typename ConsoleType, typename Visitor>
constexpr void visit_registers(ConsoleType& console, Visitor& field) {
  auto& cpu = console.cpu;
  field(cpu.pc), field(cpu.a), field(cpu.x), field(cpu.y), field(cpu.s), field(cpu.p);
  field(cpu.is_odd_cycle), field(cpu.wait);
  auto& ppu = console.ppu;
  field(ppu.line), field(ppu.dot), field(ppu.v), field(ppu.t), field(ppu.fine_x);
  field(ppu.is_first_write), field(ppu.is_even_frame), field(ppu.vblank), field(ppu.sprite0_hit);
  field(ppu.control), field(ppu.mask), field(ppu.oam_address), field(ppu.data_buffer);
  field(ppu.sprites.count), field(ppu.sprites.index);
  for (auto& pad : console.pads) field(pad.is_strobing), field(pad.buttons), field(pad.latched);
}

template <typename ConsoleType, typename Visitor>
constexpr void visit_memory(ConsoleType& console, Visitor& field) {
  field(console.ppu.palette), field(console.ppu.oam), field(console.ppu.vram), field(console.ram);
}

constexpr int console_bytes() {
  Console console;
  Counter counter;
  visit_registers(console, counter);
  visit_memory(console, counter);
  return counter.bytes;
}

// A console without its memory.
struct Small {
  Cpu cpu;
  PpuRegisters ppu;
  Pad pads[2];

  void copy_to(Console& console) const {
    console.cpu = cpu;
    static_cast<PpuRegisters&>(console.ppu) = ppu;
    std::memcpy(console.pads, pads, sizeof pads);
  }
};

constexpr int kHeaderBytes = 8 + 4 + 8;  // magic, version, cartridge
constexpr int kChecksumBytes = 8;
constexpr int kBytes = kHeaderBytes + 4 + 2 * console_bytes() + kChecksumBytes;

// A checksum finds accidents; this keeps a forged state from leading outside the arrays.
bool is_sound(const Small& console) {
  const PpuRegisters& ppu = console.ppu;
  bool is_sound = console.cpu.wait >= 1 && console.cpu.wait < 2 * kFrameCycles;
  is_sound &= console.cpu.is_odd_cycle <= 1 && ppu.is_first_write <= 1 && ppu.is_even_frame <= 1;
  is_sound &= ppu.vblank <= 1 && ppu.sprite0_hit <= 1 && ppu.fine_x < 8;
  is_sound &= ppu.line >= -1 && ppu.line <= 260 && ppu.dot >= 0 && ppu.dot <= 341;
  is_sound &= ppu.dot > 0 || ppu.line == -1;
  is_sound &= ppu.sprites.count <= kSpritesPerLine;
  for (const std::uint8_t index : ppu.sprites.index) is_sound &= index < 64;
  return is_sound && console.pads[0].is_strobing <= 1 && console.pads[1].is_strobing <= 1;
}

void require(bool holds, const char* complaint) {
  if (!holds) throw StateError(complaint);
}

}  // namespace

const int Machine::kStateBytes = kBytes;

void Machine::save(std::uint8_t* out) const {
  Writer write{out};
  write(kMagic), write(kVersion), write(cartridge_->hash), write(last_cycles_);
  visit_registers(console_, write), visit_registers(before_, write);
  visit_memory(console_, write), visit_memory(before_, write);
  write(checksum(out, kBytes - kChecksumBytes));
}

void Machine::check_state(const std::uint8_t* bytes, std::size_t size) const {
  require(size >= sizeof kMagic && std::memcmp(bytes, kMagic, sizeof kMagic) == 0,
          "not a save state of this emulator");
  Reader read{bytes + sizeof kMagic};
  std::uint32_t version = kVersion;
  if (size >= sizeof kMagic + sizeof version) read(version);
  if (version != kVersion)
    throw StateError("a save state of version " + std::to_string(version) + ", expected version " +
                     std::to_string(kVersion));
  if (size != kBytes)
    throw StateError("expected a save state of " + std::to_string(kBytes) + " bytes, got " +
                     std::to_string(size));
  std::uint64_t sum = 0, hash = 0;
  std::memcpy(&sum, bytes + kBytes - kChecksumBytes, sizeof sum);
  require(sum == checksum(bytes, kBytes - kChecksumBytes),
          "the save state is damaged: its checksum is wrong");
  read(hash);
  require(hash == cartridge_->hash, "the save state belongs to another cartridge");
}

void Machine::load(const std::uint8_t* bytes, std::size_t size, bool keep_controllers) {
  check_state(bytes, size);
  Reader read{bytes + kHeaderBytes};
  std::int32_t last_cycles = 0;
  read(last_cycles);
  Small now, before;
  visit_registers(now, read), visit_registers(before, read);
  require(is_sound(now) && is_sound(before) && last_cycles >= 0 && last_cycles <= kMostCycles,
          "the save state is damaged: impossible values");

  if (keep_controllers && NES_RESTORE_KEEPS_CONTROLLERS)
    std::memcpy(now.pads, console_.pads, sizeof now.pads);
  now.copy_to(console_), before.copy_to(before_);
  visit_memory(console_, read), visit_memory(before_, read);
  last_cycles_ = last_cycles;
  drawn_ = Look::nothing;
}

}  // namespace nes
