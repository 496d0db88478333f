// The CPU on the decoded program. What an instruction does is that of cpu_plain.cpp; what is saved
// is fetching, finding the operand's kind of memory, going from one instruction to the next where
// they often follow each other, and turns of loops that only wait.
#include "decode.hpp"
#include "stretch.hpp"

#if defined(__GNUC__)
#define NES_INLINE __attribute__((always_inline))
#else
#define NES_INLINE
#endif

namespace nes {
namespace {

// Turns that a waiting loop takes from `cycle` to `limit` while the status cannot have changed.
int quiet_turns(const Stretch& stretch, int cycle, int limit, int turn_cycles) {
  const int quiet_dots = stretch.ppu.next_status_change() - 1 - kDotsPerCycle * cycle;
  if (quiet_dots < 0 || cycle > limit) return 0;
  return std::min(quiet_dots / (kDotsPerCycle * turn_cycles), (limit - cycle) / turn_cycles) + 1;
}

}  // namespace

// Bodies of instructions. Each leaves `at` and `cycle` at the next one.
#define NES_DO(name, ...)              \
  const auto name = [&]() NES_INLINE { \
    __VA_ARGS__;                       \
    cycle += at->cycles;               \
    at += at->length;                  \
  };

// The operand of a reading instruction, by its place. A table costs a cycle when it is read across
// a page; `low` is the low byte of its address.
#define NES_READ(name, operand, extra_cycles, action) \
  NES_DO(name, const std::uint8_t value = operand; cycle += extra_cycles; action)

#define NES_READING(name, action)                                                               \
  NES_READ(name##_value, at->low, 0, action)                                                    \
  NES_READ(name##_ram, ram[at->address], 0, action)                                             \
  NES_READ(name##_ram_x, ram[(at->address + r.x) & 0x07FF], (at->low + r.x) >> 8, action)       \
  NES_READ(name##_ram_y, ram[(at->address + r.y) & 0x07FF], (at->low + r.y) >> 8, action)       \
  NES_READ(name##_zero_x, ram[static_cast<std::uint8_t>(at->low + r.x)], 0, action)             \
  NES_READ(name##_program_x, program[at->address + r.x], (at->low + r.x) >> 8, action)          \
  NES_READ(name##_program_y, program[at->address + r.y], (at->low + r.y) >> 8, action)          \
  NES_READ(name##_indirect_y, stretch.read(static_cast<std::uint16_t>(pointer() + r.y), cycle), \
           (ram[at->low] + r.y) >> 8, action)

#define NES_STORING(name, register_)                                                 \
  NES_DO(name##_ram, ram[at->address] = r.register_)                                 \
  NES_DO(name##_ram_x, ram[(at->address + r.x) & 0x07FF] = r.register_)              \
  NES_DO(name##_ram_y, ram[(at->address + r.y) & 0x07FF] = r.register_)              \
  NES_DO(name##_zero_x, ram[static_cast<std::uint8_t>(at->low + r.x)] = r.register_) \
  NES_DO(name##_zero_y, ram[static_cast<std::uint8_t>(at->low + r.y)] = r.register_)

#define NES_MODIFY(name, place, extra_cycles, change) \
  NES_DO(name, std::uint8_t& byte = place; byte = r.change; cycle += extra_cycles)

#define NES_MODIFYING(name, change)                                       \
  NES_MODIFY(name##_ram, ram[at->address], 0, change)                     \
  NES_MODIFY(name##_ram_x, ram[(at->address + r.x) & 0x07FF],             \
             ((at->low + r.x) >> 8) * NES_MODIFY_CROSSING_CYCLES, change) \
  NES_MODIFY(name##_zero_x, ram[static_cast<std::uint8_t>(at->low + r.x)], 0, change)

#define NES_BRANCHING(name, condition)          \
  const auto name##_target = [&]() NES_INLINE { \
    if (condition) {                            \
      cycle += at->low;                         \
      at = code + at->address;                  \
    } else {                                    \
      cycle += at->cycles;                      \
      at += at->length;                         \
    }                                           \
  };

// Each instruction jumps to the next by itself, where the compiler can say that: the processor then
// learns for each what follows it. Otherwise all of them share one jump.
#if defined(__GNUC__) && !defined(NES_PORTABLE)
#define NES_HAS_LABELS 1
#define NES_DISPATCH() goto* labels[static_cast<int>(at->kind)]
#else
#define NES_DISPATCH() goto dispatch
#endif

#define NES_GO_ON()               \
  do {                            \
    if (cycle > limit) goto stop; \
    NES_DISPATCH();               \
  } while (0)

#define NES_RUN(kind) \
  kind:               \
  kind();             \
  NES_GO_ON();

#define NES_RUN_2(first, second)   \
  first##_then_##second : first(); \
  second();                        \
  NES_GO_ON();

#define NES_RUN_3(first, second, third)           \
  first##_then_##second##_then_##third : first(); \
  second();                                       \
  third();                                        \
  NES_GO_ON();

// Runs inside the program until kLongestChainCycles before the limit, which no chain can cross, or
// until the plain path has to go on elsewhere. One long function, because its local variables are
// the CPU's registers and its labels the instructions.
static void run_program(Registers& registers, Stretch& stretch) {
#if NES_HAS_LABELS
#define NES_LABEL(kind) &&kind,
#define NES_LABEL_2(first, second) &&first##_then_##second,
#define NES_LABEL_3(first, second, third) &&first##_then_##second##_then_##third,
  static const void* const labels[] = {NES_KINDS(NES_LABEL) NES_SPECIAL_KINDS(NES_LABEL)
                                           NES_PAIRS(NES_LABEL_2) NES_TRIPLES(NES_LABEL_3)};
#endif
  std::uint8_t* const ram = stretch.console.ram;
  const std::uint8_t* const program = stretch.cartridge.program.data();
  const Decoded* const code = stretch.cartridge.code.data();
  Registers r = registers;
  int cycle = stretch.next;
  int limit = stretch.limit - kLongestChainCycles;
  const Decoded* at = code + (r.pc - kProgramStart);

  const auto pointer = [&]() NES_INLINE {
    return ram[at->low] | ram[static_cast<std::uint8_t>(at->low + 1)] << 8;
  };
  const auto push = [&](int value)
                        NES_INLINE { ram[0x100 | r.s--] = static_cast<std::uint8_t>(value); };

  NES_READING(lda, r.load(r.a, value))
  NES_READING(ldx, r.load(r.x, value))
  NES_READING(ldy, r.load(r.y, value))
  NES_READING(mask, r.load(r.a, r.a & value))
  NES_READING(ora, r.load(r.a, r.a | value))
  NES_READING(eor, r.load(r.a, r.a ^ value))
  NES_READING(adc, r.add(value))
  NES_READING(sbc, r.subtract(value))
  NES_READING(cmp, r.compare(r.a, value))
  NES_READING(cpx, r.compare(r.x, value))
  NES_READING(cpy, r.compare(r.y, value))
  NES_READING(bit, r.test_bits(value))
  NES_STORING(sta, a)
  NES_STORING(stx, x)
  NES_STORING(sty, y)
  NES_MODIFYING(asl, shifted_left(byte, 0))
  NES_MODIFYING(rol, shifted_left(byte, r.carry))
  NES_MODIFYING(lsr, shifted_right(byte, 0))
  NES_MODIFYING(ror, shifted_right(byte, r.carry))
  NES_MODIFYING(inc, counted(byte, 1))
  NES_MODIFYING(dec, counted(byte, -1))
  NES_BRANCHING(bcc, !r.carry)
  NES_BRANCHING(bcs, r.carry)
  NES_BRANCHING(bne, !r.is_zero())
  NES_BRANCHING(beq, r.is_zero())
  NES_BRANCHING(bpl, !r.is_negative())
  NES_BRANCHING(bmi, r.is_negative())
  NES_BRANCHING(bvc, !r.overflow)
  NES_BRANCHING(bvs, r.overflow)
  NES_DO(tax_implied, r.load(r.x, r.a))
  NES_DO(tay_implied, r.load(r.y, r.a))
  NES_DO(txa_implied, r.load(r.a, r.x))
  NES_DO(tya_implied, r.load(r.a, r.y))
  NES_DO(tsx_implied, r.load(r.x, r.s))
  NES_DO(txs_implied, r.s = r.x)
  // `low` is how often the instruction is repeated.
  NES_DO(inx_implied, r.x = r.counted(r.x, at->low))
  NES_DO(iny_implied, r.y = r.counted(r.y, at->low))
  NES_DO(dex_implied, r.x = r.counted(r.x, -at->low))
  NES_DO(dey_implied, r.y = r.counted(r.y, -at->low))
  NES_DO(asl_implied, r.a = r.shifted_left(static_cast<std::uint8_t>(r.a << (at->low - 1)), 0))
  NES_DO(lsr_implied, r.a = r.shifted_right(static_cast<std::uint8_t>(r.a >> (at->low - 1)), 0))
  NES_DO(rol_implied, r.a = r.shifted_left(r.a, r.carry))
  NES_DO(ror_implied, r.a = r.shifted_right(r.a, r.carry))
  NES_DO(clc_implied, r.carry = 0)
  NES_DO(sec_implied, r.carry = 1)
  NES_DO(nop_implied, static_cast<void>(0))
  NES_DO(pha_implied, push(r.a))
  NES_DO(pla_implied, r.load(r.a, ram[0x100 | ++r.s]))

  const auto jmp_target = [&]() NES_INLINE {
    cycle += at->cycles;
    at = code + at->address;
  };
  const auto jsr_target = [&]() NES_INLINE {
    const auto last_byte = static_cast<int>(at - code) + kProgramStart + 2;
    push(last_byte >> 8);
    push(last_byte);
    jmp_target();
  };

  NES_GO_ON();

#if !NES_HAS_LABELS
#define NES_CASE(kind) \
  case Kind::kind: goto kind;
#define NES_CASE_2(first, second) NES_CASE(first##_then_##second)
#define NES_CASE_3(first, second, third) NES_CASE(first##_then_##second##_then_##third)
dispatch:
  switch (at->kind) {
    NES_KINDS(NES_CASE) NES_SPECIAL_KINDS(NES_CASE) NES_PAIRS(NES_CASE_2) NES_TRIPLES(NES_CASE_3)
  }
#endif

  NES_KINDS(NES_RUN)
  NES_PAIRS(NES_RUN_2)
  NES_TRIPLES(NES_RUN_3)

sta_indirect_y:
  cycle += stretch.write(static_cast<std::uint16_t>(pointer() + r.y), r.a, cycle) + at->cycles;
  at += at->length;
  limit = stretch.limit - kLongestChainCycles;
  NES_GO_ON();

jmp_idle:
  cycle += ((stretch.limit - cycle) / at->cycles + 1) * at->cycles;
  goto stop;

jmp_indirect:
  {
    const int target = ram[at->address] | ram[at->address + 1] << 8;
    if (target < kProgramStart) goto none_plain;
    cycle += at->cycles;
    at = code + (target - kProgramStart);
    NES_GO_ON();
  }

rts_implied:
  {
    const int low = ram[0x100 | ++r.s];
    const int target = ((low | ram[0x100 | ++r.s] << 8) + 1) & 0xFFFF;
    cycle += at->cycles;
    if (target < kProgramStart) {
      r.pc = static_cast<std::uint16_t>(target);
      goto leave;
    }
    at = code + (target - kProgramStart);
    NES_GO_ON();
  }

lda_poll:
  {
    const std::uint8_t status = stretch.read(0x2002, cycle);
    r.load(r.a, status & at->low);
    const bool waits_for_bit = at->address;
    if (waits_for_bit != r.is_zero()) {
      // Out of the loop: one instruction that reads, one that masks, a branch not taken.
      cycle += 4 + 2 + 2;
      at += at->length;
    } else {
      cycle += at->cycles;
      // Reading has taken the vertical blank back, so the next turn may see another status.
      if (!(status & 0x80)) cycle += quiet_turns(stretch, cycle, limit, at->cycles) * at->cycles;
    }
    NES_GO_ON();
  }

none_plain:
  {
    Registers now = r;
    now.pc = static_cast<std::uint16_t>(at - code + kProgramStart);
    cycle += execute_plain(now, stretch, cycle);
    r = now;
    limit = stretch.limit - kLongestChainCycles;
    if (r.pc < kProgramStart) goto leave;
    at = code + (r.pc - kProgramStart);
    NES_GO_ON();
  }

stop:
  r.pc = static_cast<std::uint16_t>(at - code + kProgramStart);
leave:
  registers = r;
  stretch.next = cycle;
}

void run_fast(Stretch& stretch) {
  Registers registers = unpack(stretch.console.cpu);
  while (stretch.next <= stretch.limit) {
    if (registers.pc >= kProgramStart && stretch.next <= stretch.limit - kLongestChainCycles)
      run_program(registers, stretch);
    else
      stretch.next += execute_plain(registers, stretch, stretch.next);
  }
  pack(registers, stretch.console.cpu);
}

}  // namespace nes
