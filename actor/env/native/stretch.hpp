// A stretch of play that nobody interrupts from outside: the clocks of CPU and PPU, and the memory
// as the CPU sees it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "cartridge.hpp"
#include "console.hpp"
#include "ppu_clock.hpp"
#include "registers.hpp"

namespace nes {

class Stretch {
 public:
  Stretch(Console& console, const Cartridge& cartridge, Screen* screen, int cycles)
      : console(console),
        cartridge(cartridge),
        ppu(console.ppu, cartridge, screen),
        next(console.cpu.wait),
        end_(cycles) {
    expect_vblank();
  }

  // Plays to the end. The plain path and the fast path must leave exactly the same console.
  void play(bool is_plain);

  // `cycle` is the first of the instruction. All memory but RAM and the program is slow.
  std::uint8_t read(std::uint16_t address, int cycle) {
    if (address < 0x2000) return console.ram[address & 0x07FF];
    if (address >= 0x8000) return cartridge.program[address - 0x8000];
    return read_register(address, cycle);
  }

  // Returns the cycles that the CPU has to wait beyond those of the instruction.
  int write(std::uint16_t address, std::uint8_t value, int cycle) {
    if (address >= 0x2000) return write_register(address, value, cycle);
    console.ram[address & 0x07FF] = value;
    return 0;
  }

  Console& console;
  const Cartridge& cartridge;
  PpuClock ppu;
  int next;       // the cycle, from 1, in which the next instruction executes
  int limit = 0;  // instructions up to this cycle run undisturbed; a write may move it

 private:
  std::uint8_t read_register(std::uint16_t address, int cycle);
  int write_register(std::uint16_t address, std::uint8_t value, int cycle);
  int transfer_sprites(std::uint8_t page, int cycle);
  void interrupt();

  // In each cycle the PPU goes first.
  static int dots_at(int cycle) {
    return kDotsPerCycle * (NES_IO_IN_FIRST_CYCLE ? cycle : cycle + 3);
  }

  void expect_vblank() {
    vblank_ = (ppu.done() + ppu.dots_to_vblank() + kDotsPerCycle - 1) / kDotsPerCycle;
    limit = std::min(end_, vblank_ - 1);
  }

  int end_;
  int vblank_ = 0;  // the cycle in which the vertical blank begins
};

// Executes one instruction that begins in `cycle`; returns the cycles until the next.
int execute_plain(Registers& registers, Stretch& stretch, int cycle);

// Both run until the next instruction lies beyond the limit.
void run_plain(Stretch& stretch);
void run_fast(Stretch& stretch);

}  // namespace nes
