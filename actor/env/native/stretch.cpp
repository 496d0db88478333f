#include "stretch.hpp"

#include <cstring>

namespace nes {
namespace {

constexpr std::uint16_t kSpriteTransfer = 0x4014;
constexpr std::uint16_t kPad1 = 0x4016;
constexpr std::uint16_t kPad2 = 0x4017;
constexpr std::uint16_t kInterruptVector = 0xFFFA;
constexpr int kTransferCycles = 513;

}  // namespace

void Stretch::play(bool is_plain) {
  for (;;) {
    is_plain ? run_plain(*this) : run_fast(*this);
    if (limit == end_) break;
    ppu.advance_to(kDotsPerCycle * vblank_);
    // Only the instant matters: allowing interrupts later in the blank raises none.
    if (console.ppu.interrupts()) interrupt();
    expect_vblank();
  }
  ppu.advance_to(kDotsPerCycle * end_);
  console.cpu.wait = next - end_;
  console.cpu.is_odd_cycle ^= end_ & 1;
}

// Pushes at once, even when the last instruction has cycles left and the stretch ends in them.
void Stretch::interrupt() {
  if (!NES_INTERRUPTS_AT_ONCE && next > end_) return;
  Cpu& cpu = console.cpu;
  const auto push = [&](int value) {
    console.ram[0x100 | cpu.s--] = static_cast<std::uint8_t>(value);
  };
  push(cpu.pc >> 8);
  push(cpu.pc);
  push(cpu.p | kSetByInterrupt);
  cpu.p |= kInterruptsOff;
  cpu.pc =
      static_cast<std::uint16_t>(read(kInterruptVector, 0) | read(kInterruptVector + 1, 0) << 8);
  next += NES_INTERRUPT_CYCLES;
}

std::uint8_t Stretch::read_register(std::uint16_t address, int cycle) {
  if (address < 0x4000) {
    ppu.advance_to(dots_at(cycle));
    return ppu.read(address & 7);
  }
  if (address == kPad1) return console.pads[0].read();
  if (address == kPad2) return console.pads[1].read();
  return 0;
}

int Stretch::write_register(std::uint16_t address, std::uint8_t value, int cycle) {
  if (address < 0x4000) {
    ppu.advance_to(dots_at(cycle));
    ppu.write(address & 7, value);
    // The mask decides how long the picture takes.
    if ((address & 7) == 1) expect_vblank();
  } else if (address == kSpriteTransfer) {
    return transfer_sprites(value, cycle);
  } else if (address == kPad1) {
    for (Pad& pad : console.pads) pad.strobe(value);
  }
  return 0;
}

int Stretch::transfer_sprites(std::uint8_t page, int cycle) {
  std::uint8_t bytes[kOamBytes] = {};
  if (page < 0x20)
    std::memcpy(bytes, console.ram + (page & 7) * 256, sizeof bytes);
  else if (page >= 0x80)
    std::memcpy(bytes, cartridge.program.data() + (page - 0x80) * 256, sizeof bytes);
  ppu.advance_to(dots_at(cycle));
  ppu.transfer_sprites(bytes);
  const bool is_odd = (console.cpu.is_odd_cycle + cycle) & 1;
  return kTransferCycles + (NES_DMA_PARITY && is_odd);
}

}  // namespace nes
