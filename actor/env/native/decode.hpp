// The program in the form that the fast path executes, one entry for each address.
#pragma once

#include <cstdint>
#include <vector>

#include "chains.hpp"
#include "opcodes.hpp"
#include "quirks.hpp"

namespace nes {

// Where an operand lies, as far as it is known before the program runs.
enum class Place : std::uint8_t {
  plain,    // anywhere: the plain path executes this instruction
  implied,  // no operand
  value,    // known: an immediate byte, or a byte of the program
  ram,      // a fixed place in work RAM
  ram_x,    // a table in work RAM
  ram_y,
  zero_x,  // in the zero page, where indices wrap
  zero_y,
  program_x,  // a table in the program
  program_y,
  indirect_y,  // behind a pointer in the zero page
  target,      // a jump or branch inside the program
  indirect,    // a jump through a pointer in work RAM
  idle,        // a jump to itself: only an interrupt ends it
  nowhere,     // where a store has no effect
  poll,        // LDA $2002, AND #, BEQ or BNE back: waits for the PPU
};

// What the fast path knows: operation and place. All others are left to the plain path.
// clang-format off
#define NES_READ_KINDS(X, operation)                                                              \
  X(operation##_value) X(operation##_ram) X(operation##_ram_x) X(operation##_ram_y)               \
  X(operation##_zero_x) X(operation##_program_x) X(operation##_program_y) X(operation##_indirect_y)
#define NES_STORE_KINDS(X, operation)                                                             \
  X(operation##_ram) X(operation##_ram_x) X(operation##_ram_y)                                    \
  X(operation##_zero_x) X(operation##_zero_y)
#define NES_MODIFY_KINDS(X, operation)                                                            \
  X(operation##_implied) X(operation##_ram) X(operation##_ram_x) X(operation##_zero_x)
#define NES_KINDS(X)                                                                              \
  NES_READ_KINDS(X, lda) NES_READ_KINDS(X, ldx) NES_READ_KINDS(X, ldy) NES_READ_KINDS(X, mask)    \
  NES_READ_KINDS(X, ora) NES_READ_KINDS(X, eor) NES_READ_KINDS(X, adc) NES_READ_KINDS(X, sbc)     \
  NES_READ_KINDS(X, cmp) NES_READ_KINDS(X, cpx) NES_READ_KINDS(X, cpy) NES_READ_KINDS(X, bit)     \
  NES_STORE_KINDS(X, sta) NES_STORE_KINDS(X, stx) NES_STORE_KINDS(X, sty)                         \
  NES_MODIFY_KINDS(X, asl) NES_MODIFY_KINDS(X, lsr) NES_MODIFY_KINDS(X, rol)                      \
  NES_MODIFY_KINDS(X, ror) X(inc_ram) X(inc_ram_x) X(inc_zero_x)                                  \
  X(dec_ram) X(dec_ram_x) X(dec_zero_x)                                                           \
  X(bcc_target) X(bcs_target) X(bne_target) X(beq_target)                                         \
  X(bpl_target) X(bmi_target) X(bvc_target) X(bvs_target)                                         \
  X(tax_implied) X(tay_implied) X(txa_implied) X(tya_implied) X(tsx_implied) X(txs_implied)       \
  X(inx_implied) X(iny_implied) X(dex_implied) X(dey_implied) X(clc_implied) X(sec_implied)       \
  X(nop_implied) X(pha_implied) X(pla_implied) X(jsr_target) X(jmp_target)

// These may end a run of the fast path, so they never stand in a chain.
#define NES_SPECIAL_KINDS(X)                                                                      \
  X(none_plain) X(sta_indirect_y) X(rts_implied) X(jmp_indirect) X(jmp_idle) X(lda_poll)
// clang-format on

enum class Kind : std::uint16_t {
#define NES_KIND(kind) kind,
#define NES_KIND_2(first, second) first##_then_##second,
#define NES_KIND_3(first, second, third) first##_then_##second##_then_##third,
  NES_KINDS(NES_KIND) NES_SPECIAL_KINDS(NES_KIND) NES_PAIRS(NES_KIND_2) NES_TRIPLES(NES_KIND_3)
#undef NES_KIND
#undef NES_KIND_2
#undef NES_KIND_3
};

constexpr int kProgramStart = 0x8000;
// Chains of instructions take fewer cycles than this.
constexpr int kLongestChainCycles = 48;

struct Decoded {
  Kind kind = Kind::none_plain;
  std::uint16_t address = 0;
  // The value, the address's low byte, the cycles of a taken branch, or how often it is repeated.
  std::uint8_t low = 1;
  std::uint8_t cycles = 0;
  std::uint8_t length = 0;
};

std::vector<Decoded> decode(const std::uint8_t* program);

// Cycles of a branch that is taken, from the instruction after it to its target.
constexpr std::uint8_t taken_branch_cycles(std::uint16_t from, std::uint16_t to) {
  return (from & 0xFF00) == (to & 0xFF00) ? 3 : 3 + NES_BRANCH_CROSSING_CYCLES;
}

}  // namespace nes
