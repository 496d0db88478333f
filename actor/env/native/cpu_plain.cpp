// The CPU, one instruction at a time, without any short cut.
#include "opcodes.hpp"
#include "stretch.hpp"

namespace nes {
namespace {

constexpr std::uint16_t kBreakVector = 0xFFFE;

class Instruction {
 public:
  Instruction(Registers& registers, Stretch& stretch, int cycle)
      : r_(registers), stretch_(stretch), cycle_(cycle) {}

  int execute() {
    const Opcode opcode = kOpcodes[fetch()];
    cycles_ = opcode.cycles;
    operation_ = opcode.operation;
    mode_ = opcode.mode;
    address_ = address();
    if (mode_ == Mode::relative)
      branch();
    else if (stores(operation_))
      store();
    else if (modifies(operation_))
      modify();
    else if (mode_ == Mode::implied || operation_ == Operation::jmp || operation_ == Operation::jsr)
      control();
    else
      compute(read(address_));
    return cycles_;
  }

 private:
  std::uint8_t read(std::uint16_t address) { return stretch_.read(address, cycle_); }
  void write(std::uint16_t address, std::uint8_t value) {
    cycles_ += stretch_.write(address, value, cycle_);
  }
  std::uint8_t fetch() { return read(r_.pc++); }
  std::uint16_t fetch_word() {
    const std::uint8_t low = fetch();
    return static_cast<std::uint16_t>(low | fetch() << 8);
  }
  // Both bytes in the same page.
  std::uint16_t read_pointer(std::uint16_t at) {
    const auto second = static_cast<std::uint16_t>((at & 0xFF00) | ((at + 1) & 0x00FF));
    const std::uint8_t low = read(at);
    return static_cast<std::uint16_t>(low | read(second) << 8);
  }
  void push(int value) { stretch_.console.ram[0x100 | r_.s--] = static_cast<std::uint8_t>(value); }
  std::uint8_t pull() { return stretch_.console.ram[0x100 | ++r_.s]; }
  std::uint16_t pull_word() {
    const std::uint8_t low = pull();
    return static_cast<std::uint16_t>(low | pull() << 8);
  }

  std::uint16_t indexed(std::uint16_t base, std::uint8_t index) {
    const auto address = static_cast<std::uint16_t>(base + index);
    const bool crosses = (base ^ address) & 0xFF00;
    if (crosses && !stores(operation_))
      cycles_ += modifies(operation_) ? NES_MODIFY_CROSSING_CYCLES : 1;
    return address;
  }

  std::uint16_t address() {
    switch (mode_) {
      case Mode::implied:
      case Mode::accumulator: return 0;
      case Mode::immediate:
      case Mode::relative: return r_.pc++;
      case Mode::zero_page: return fetch();
      case Mode::zero_page_x: return static_cast<std::uint8_t>(fetch() + r_.x);
      case Mode::zero_page_y: return static_cast<std::uint8_t>(fetch() + r_.y);
      case Mode::absolute: return operation_ == Operation::jsr ? 0 : fetch_word();
      case Mode::absolute_x: return indexed(fetch_word(), r_.x);
      case Mode::absolute_y: return indexed(fetch_word(), r_.y);
      case Mode::indirect: return read_pointer(fetch_word());
      case Mode::indirect_x: return read_pointer(static_cast<std::uint8_t>(fetch() + r_.x));
      case Mode::indirect_y: return indexed(read_pointer(fetch()), r_.y);
    }
    return 0;
  }

  bool takes_branch() const {
    switch (operation_) {
      case Operation::bcc: return !r_.carry;
      case Operation::bcs: return r_.carry;
      case Operation::bne: return !r_.is_zero();
      case Operation::beq: return r_.is_zero();
      case Operation::bpl: return !r_.is_negative();
      case Operation::bmi: return r_.is_negative();
      case Operation::bvc: return !r_.overflow;
      default: return r_.overflow;
    }
  }

  void branch() {
    if (!takes_branch()) return;
    const auto target =
        static_cast<std::uint16_t>(r_.pc + static_cast<std::int8_t>(read(address_)));
    cycles_ = taken_branch_cycles(r_.pc, target);
    r_.pc = target;
  }

  void store() {
    write(address_, operation_ == Operation::sta   ? r_.a
                    : operation_ == Operation::stx ? r_.x
                                                   : r_.y);
  }

  std::uint8_t modified(std::uint8_t value) {
    switch (operation_) {
      case Operation::asl: return r_.shifted_left(value, 0);
      case Operation::rol: return r_.shifted_left(value, r_.carry);
      case Operation::lsr: return r_.shifted_right(value, 0);
      case Operation::ror: return r_.shifted_right(value, r_.carry);
      case Operation::inc: return r_.counted(value, 1);
      default: return r_.counted(value, -1);
    }
  }

  void modify() {
    if (mode_ == Mode::accumulator)
      r_.a = modified(r_.a);
    else
      write(address_, modified(read(address_)));
  }

  void compute(std::uint8_t value) {
    switch (operation_) {
      case Operation::lda: return r_.load(r_.a, value);
      case Operation::ldx: return r_.load(r_.x, value);
      case Operation::ldy: return r_.load(r_.y, value);
      case Operation::mask: return r_.load(r_.a, r_.a & value);
      case Operation::ora: return r_.load(r_.a, r_.a | value);
      case Operation::eor: return r_.load(r_.a, r_.a ^ value);
      case Operation::adc: return r_.add(value);
      case Operation::sbc: return r_.subtract(value);
      case Operation::cmp: return r_.compare(r_.a, value);
      case Operation::cpx: return r_.compare(r_.x, value);
      case Operation::cpy: return r_.compare(r_.y, value);
      default: return r_.test_bits(value);
    }
  }

  void control() {
    switch (operation_) {
      case Operation::brk: return interrupt();
      case Operation::jmp: r_.pc = address_; return;
      case Operation::jsr:
        // The return address is that of the last byte of this instruction.
        push((r_.pc + 1) >> 8);
        push(r_.pc + 1);
        r_.pc = fetch_word();
        return;
      case Operation::rts: r_.pc = static_cast<std::uint16_t>(pull_word() + 1); return;
      case Operation::rti:
        r_.set_status(pull());
        r_.pc = pull_word();
        return;
      case Operation::php: return push(r_.status());
      case Operation::plp: return r_.set_status(pull());
      case Operation::pha: return push(r_.a);
      case Operation::pla: return r_.load(r_.a, pull());
      default: return transfer();
    }
  }

  void interrupt() {
    ++r_.pc;
    push(r_.pc >> 8);
    push(r_.pc);
    push(r_.status() | kSetByInterrupt | kSetByBreak);
    r_.others |= kInterruptsOff;
    r_.pc = read_pointer(kBreakVector);
  }

  void transfer() {
    switch (operation_) {
      case Operation::tax: return r_.load(r_.x, r_.a);
      case Operation::tay: return r_.load(r_.y, r_.a);
      case Operation::txa: return r_.load(r_.a, r_.x);
      case Operation::tya: return r_.load(r_.a, r_.y);
      case Operation::tsx: return r_.load(r_.x, r_.s);
      case Operation::txs: r_.s = r_.x; return;
      case Operation::inx: r_.x = r_.counted(r_.x, 1); return;
      case Operation::iny: r_.y = r_.counted(r_.y, 1); return;
      case Operation::dex: r_.x = r_.counted(r_.x, -1); return;
      case Operation::dey: r_.y = r_.counted(r_.y, -1); return;
      case Operation::clc: r_.carry = 0; return;
      case Operation::sec: r_.carry = 1; return;
      case Operation::clv: r_.overflow = 0; return;
      case Operation::cld: return set_other(kDecimal, false);
      case Operation::sed: return set_other(kDecimal, true);
      case Operation::cli: return set_other(kInterruptsOff, false);
      case Operation::sei: return set_other(kInterruptsOff, true);
      default: return;
    }
  }

  void set_other(std::uint8_t bit, bool is_on) {
    r_.others = static_cast<std::uint8_t>(is_on ? r_.others | bit : r_.others & ~bit);
  }

  Registers& r_;
  Stretch& stretch_;
  int cycle_;
  int cycles_ = 0;
  Operation operation_ = Operation::none;
  Mode mode_ = Mode::implied;
  std::uint16_t address_ = 0;
};

}  // namespace

int execute_plain(Registers& registers, Stretch& stretch, int cycle) {
  return Instruction(registers, stretch, cycle).execute();
}

void run_plain(Stretch& stretch) {
  Registers registers = unpack(stretch.console.cpu);
  while (stretch.next <= stretch.limit)
    stretch.next += execute_plain(registers, stretch, stretch.next);
  pack(registers, stretch.console.cpu);
}

}  // namespace nes
