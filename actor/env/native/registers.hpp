// The CPU's registers while it runs, with flags in the form that costs least, and the arithmetic.
#pragma once

#include <cstdint>

#include "console.hpp"

namespace nes {

struct Registers {
  std::uint16_t pc;
  std::uint8_t a, x, y, s;
  // Zero when the low byte is; negative when bit 7 or bit 8 is set. So a result is stored as it
  // is, and BIT, which takes the two flags from different values, still fits.
  std::uint32_t zero_negative;
  std::uint32_t carry;     // 0 or 1
  std::uint32_t overflow;  // 0 or not
  std::uint8_t others;     // the remaining bits, in their places

  bool is_zero() const { return (zero_negative & 0xFF) == 0; }
  bool is_negative() const { return zero_negative & 0x180; }

  void set_status(std::uint8_t p) {
    zero_negative = (p & kZero ? 0u : 1u) | (p & kNegative ? 0x100u : 0u);
    carry = p & kCarry ? 1 : 0;
    overflow = p & kOverflow;
    others = p & (kUnused | kBreak | kDecimal | kInterruptsOff);
  }

  std::uint8_t status() const {
    return static_cast<std::uint8_t>(others | (is_negative() ? kNegative : 0) |
                                     (overflow ? kOverflow : 0) | (is_zero() ? kZero : 0) |
                                     (carry ? kCarry : 0));
  }

  void load(std::uint8_t& target, std::uint8_t value) { zero_negative = target = value; }

  void add(std::uint8_t value) {
    const std::uint32_t sum = a + value + carry;
    overflow = (a ^ sum) & (value ^ sum) & 0x80;
    carry = sum >> 8;
    load(a, static_cast<std::uint8_t>(sum));
  }

  void subtract(std::uint8_t value) { add(static_cast<std::uint8_t>(~value)); }

  void compare(std::uint8_t left, std::uint8_t right) {
    carry = left >= right;
    zero_negative = static_cast<std::uint8_t>(left - right);
  }

  void test_bits(std::uint8_t value) {
    zero_negative = (a & value) | (value & 0x80u) << 1;
    overflow = value & 0x40;
  }

  std::uint8_t shifted_left(std::uint8_t value, std::uint32_t entering) {
    carry = value >> 7;
    zero_negative = static_cast<std::uint8_t>(value << 1 | entering);
    return static_cast<std::uint8_t>(zero_negative);
  }

  std::uint8_t shifted_right(std::uint8_t value, std::uint32_t entering) {
    carry = value & 1;
    zero_negative = value >> 1 | entering << 7;
    return static_cast<std::uint8_t>(zero_negative);
  }

  std::uint8_t counted(std::uint8_t value, int by) {
    zero_negative = static_cast<std::uint8_t>(value + by);
    return static_cast<std::uint8_t>(zero_negative);
  }
};

inline Registers unpack(const Cpu& cpu) {
  Registers r{cpu.pc, cpu.a, cpu.x, cpu.y, cpu.s, 0, 0, 0, 0};
  r.set_status(cpu.p);
  return r;
}

inline void pack(const Registers& r, Cpu& cpu) {
  cpu.pc = r.pc;
  cpu.a = r.a;
  cpu.x = r.x;
  cpu.y = r.y;
  cpu.s = r.s;
  cpu.p = r.status();
}

}  // namespace nes
