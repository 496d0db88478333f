#include "machine.hpp"

#include <cstring>

#include "checksum.hpp"
#include "stretch.hpp"

namespace nes {

Machine::Machine(std::shared_ptr<const Cartridge> cartridge) : cartridge_(std::move(cartridge)) {
  power_on();
  before_ = console_;
}

void Machine::power_on() {
  std::memset(console_.ram, NES_POWER_UP_BYTE, sizeof console_.ram);
  Cpu cpu;
  cpu.s = 0xFD;
  cpu.pc =
      static_cast<std::uint16_t>(cartridge_->program[0x7FFC] | cartridge_->program[0x7FFD] << 8);
  console_.cpu = cpu;

  Ppu& ppu = console_.ppu;
  ppu.line = -1;
  ppu.dot = 0;
  ppu.v = ppu.t = 0;
  ppu.fine_x = 0;
  ppu.is_first_write = ppu.is_even_frame = 1;
  ppu.vblank = 0;
  ppu.control = 0;
  ppu.mask = static_cast<std::uint8_t>((ppu.mask & 0x06) | (NES_RENDERING_AT_RESET ? 0x18 : 0));
  ppu.oam_address = 0;
  ppu.sprites = SpriteList{};
  console_.pads[0].buttons = 0;
}

void Machine::step(std::uint8_t buttons, int frames, Look look) {
  console_.pads[0].buttons = buttons;
  for (int left = frames; left > 0; --left) {
    if (left == 1) before_ = console_;
    play(console_, kFrameCycles, left == 1 ? look : Look::nothing);
  }
  if (frames > 0) {
    drawn_ = look;
    last_cycles_ = kFrameCycles;
  }
}

void Machine::run_cycles(int cycles) {
  before_ = console_;
  play(console_, cycles, Look::colour);
  drawn_ = Look::colour;
  last_cycles_ = cycles;
}

void Machine::play(Console& console, int cycles, Look look) {
  screen_.is_gray = look == Look::gray;
  Stretch stretch(console, *cartridge_, look == Look::nothing ? nullptr : &screen_, cycles);
  stretch.play(is_plain);
}

void Machine::draw_again(Look look) {
  if (drawn_ == look) return;
  // Less than a frame leaves parts of the picture as they were: blank.
  if (last_cycles_ < kFrameCycles) screen_.blank(look == Look::gray);
  Console copy = before_;
  play(copy, last_cycles_, look);
  drawn_ = look;
}

const std::uint8_t* Machine::colours() {
  draw_again(Look::colour);
  return screen_.pixels;
}

const std::uint8_t* Machine::grays() {
  draw_again(Look::gray);
  return screen_.pixels;
}

void Machine::run_ppu(int dots) {
  screen_.is_gray = false;
  drawn_ = Look::colour;
  PpuClock(console_.ppu, *cartridge_, &screen_).advance_to(dots);
}

void Machine::write_ppu(int reg, std::uint8_t value) {
  PpuClock(console_.ppu, *cartridge_, nullptr).write(reg, value);
}

std::uint8_t Machine::read_ppu(int reg) {
  return PpuClock(console_.ppu, *cartridge_, nullptr).read(reg);
}

std::uint64_t Machine::frame_hash() {
  const std::uint64_t picture = checksum(colours(), sizeof screen_.pixels);
  return picture ^ checksum(console_.ram, sizeof console_.ram) * 3;
}

}  // namespace nes
