#include "decode.hpp"

#include <array>
#include <iterator>
#include <string>
#include <unordered_map>

namespace nes {
namespace {

// The kinds are named after both.
constexpr const char* kOperationNames[] = {
    "none", "adc", "mask", "asl", "bcc", "bcs", "beq", "bit", "bmi", "bne", "bpl", "brk",
    "bvc",  "bvs", "clc",  "cld", "cli", "clv", "cmp", "cpx", "cpy", "dec", "dex", "dey",
    "eor",  "inc", "inx",  "iny", "jmp", "jsr", "lda", "ldx", "ldy", "lsr", "nop", "ora",
    "pha",  "php", "pla",  "plp", "rol", "ror", "rti", "rts", "sbc", "sec", "sed", "sei",
    "sta",  "stx", "sty",  "tax", "tay", "tsx", "txa", "txs", "tya"};
constexpr const char* kPlaceNames[] = {
    "plain",     "implied",   "value",      "ram",    "ram_x",    "ram_y", "zero_x",  "zero_y",
    "program_x", "program_y", "indirect_y", "target", "indirect", "idle",  "nowhere", "poll"};

constexpr std::size_t kOperations = std::size(kOperationNames);
constexpr std::size_t kPlaces = std::size(kPlaceNames);
using KindTable = std::array<std::array<Kind, kPlaces>, kOperations>;

KindTable make_kind_table() {
  std::unordered_map<std::string, Kind> by_name;
#define NES_NAME(kind) by_name[#kind] = Kind::kind;
  NES_KINDS(NES_NAME)
  NES_SPECIAL_KINDS(NES_NAME)
#undef NES_NAME
  KindTable table{};
  for (std::size_t operation = 0; operation < kOperations; ++operation)
    for (std::size_t place = 0; place < kPlaces; ++place) {
      const auto found =
          by_name.find(std::string(kOperationNames[operation]) + "_" + kPlaceNames[place]);
      table[operation][place] = found == by_name.end() ? Kind::none_plain : found->second;
    }
  return table;
}

Kind kind_of(Operation operation, Place place) {
  static const KindTable table = make_kind_table();
  return table[static_cast<std::size_t>(operation)][static_cast<std::size_t>(place)];
}

// Up to three kinds that follow each other, as one number; none_plain stands for no third.
constexpr std::uint64_t chain_key(Kind first, Kind second, Kind third) {
  return static_cast<std::uint64_t>(first) << 32 | static_cast<std::uint64_t>(second) << 16 |
         static_cast<std::uint64_t>(third);
}

std::unordered_map<std::uint64_t, Kind> make_chain_table() {
  std::unordered_map<std::uint64_t, Kind> chains;
#define NES_CHAIN_2(first, second) \
  chains[chain_key(Kind::first, Kind::second, Kind::none_plain)] = Kind::first##_then_##second;
#define NES_CHAIN_3(first, second, third)                     \
  chains[chain_key(Kind::first, Kind::second, Kind::third)] = \
      Kind::first##_then_##second##_then_##third;
  NES_PAIRS(NES_CHAIN_2)
  NES_TRIPLES(NES_CHAIN_3)
#undef NES_CHAIN_2
#undef NES_CHAIN_3
  return chains;
}

constexpr int kProgramSize = 0x8000;
constexpr int kMostRepeats = 7;  // also the most that a byte can be shifted by and not be empty

class Decoder {
 public:
  explicit Decoder(const std::uint8_t* program) : program_(program) {}

  Decoded at(int offset) {
    offset_ = offset;
    const Opcode& opcode = kOpcodes[program_[offset]];
    const int length = length_bytes(opcode.mode);
    out_ = Decoded{};
    out_.cycles = opcode.cycles;
    out_.length = static_cast<std::uint8_t>(length);
    // The last instructions may reach beyond the program; the plain path knows where that is.
    const Place place = offset + length < kProgramSize ? place_of(opcode) : Place::plain;
    out_.kind = place == Place::nowhere ? Kind::nop_implied : kind_of(opcode.operation, place);
    return out_;
  }

 private:
  int byte(int ahead) const { return program_[offset_ + ahead]; }
  int word() const { return byte(1) | byte(2) << 8; }

  Place place_of(const Opcode& opcode) {
    switch (opcode.mode) {
      case Mode::implied:
      case Mode::accumulator:
        return opcode.operation == Operation::brk ? Place::plain : Place::implied;
      case Mode::immediate: out_.low = static_cast<std::uint8_t>(byte(1)); return Place::value;
      case Mode::relative: return branch();
      case Mode::zero_page: return in_ram(Place::ram, byte(1));
      case Mode::zero_page_x: return in_ram(Place::zero_x, byte(1));
      case Mode::zero_page_y: return in_ram(Place::zero_y, byte(1));
      case Mode::indirect_y: return in_ram(Place::indirect_y, byte(1));
      case Mode::absolute: return absolute(opcode.operation);
      case Mode::absolute_x: return table(Place::ram_x, Place::program_x);
      case Mode::absolute_y: return table(Place::ram_y, Place::program_y);
      case Mode::indirect:
        // A pointer at the end of a page wraps; let the plain path do that.
        return word() < 0x2000 && byte(1) != 0xFF ? in_ram(Place::indirect, word()) : Place::plain;
      default: return Place::plain;
    }
  }

  Place in_ram(Place place, int address) {
    out_.address = static_cast<std::uint16_t>(address & 0x07FF);
    out_.low = static_cast<std::uint8_t>(address);
    return place;
  }

  Place absolute(Operation operation) {
    if (operation == Operation::jmp || operation == Operation::jsr) return jump(operation);
    if (is_poll(operation)) return Place::poll;
    if (word() < 0x2000) return in_ram(Place::ram, word());
    if (stores(operation) && is_deaf(word())) return Place::nowhere;
    if (word() < kProgramStart || stores(operation) || modifies(operation)) return Place::plain;
    out_.low = program_[word() - kProgramStart];
    return Place::value;
  }

  // Addresses where writing does nothing: there is no sound, and the program cannot change.
  static bool is_deaf(int address) {
    return address >= 0x4000 && address != 0x4014 && address != 0x4016;
  }

  Place table(Place in_ram_place, Place in_program_place) {
    out_.low = static_cast<std::uint8_t>(word());
    if (word() + 0xFF < 0x2000) return in_ram(in_ram_place, word());
    if (word() < kProgramStart || word() + 0xFF > 0xFFFF) return Place::plain;
    out_.address = static_cast<std::uint16_t>(word() - kProgramStart);
    return in_program_place;
  }

  Place jump(Operation operation) {
    if (word() < kProgramStart) return Place::plain;
    out_.address = static_cast<std::uint16_t>(word() - kProgramStart);
    return operation == Operation::jmp && out_.address == offset_ ? Place::idle : Place::target;
  }

  Place branch() {
    const int next = offset_ + 2;
    const int target = next + static_cast<std::int8_t>(byte(1));
    if (target < 0 || target >= kProgramSize) return Place::plain;
    out_.address = static_cast<std::uint16_t>(target);
    out_.low =
        taken_branch_cycles(static_cast<std::uint16_t>(next), static_cast<std::uint16_t>(target));
    return Place::target;
  }

  // Keeps the mask in `low`, whether it waits for a bit to be set in `address`, and in `cycles`
  // what one turn of the loop takes.
  bool is_poll(Operation operation) {
    constexpr int kTurnBytes = 7;
    if (operation != Operation::lda || word() != 0x2002) return false;
    if (offset_ + kTurnBytes >= kProgramSize || byte(3) != 0x29 || byte(6) != 0x100 - kTurnBytes)
      return false;
    const Operation closing = kOpcodes[static_cast<std::size_t>(byte(5))].operation;
    if (closing != Operation::beq && closing != Operation::bne) return false;
    out_.low = static_cast<std::uint8_t>(byte(4));
    out_.address = closing == Operation::beq;
    const auto next = static_cast<std::uint16_t>(offset_ + kTurnBytes);
    out_.cycles = static_cast<std::uint8_t>(
        4 + 2 + taken_branch_cycles(next, static_cast<std::uint16_t>(offset_)));
    out_.length = kTurnBytes;
    return true;
  }

  const std::uint8_t* program_;
  int offset_ = 0;
  Decoded out_;
};

// Some instructions simply add up when they are repeated.
void join_repeats(std::vector<Decoded>& code) {
  // From the end, so that each finds what is left of its row.
  for (std::size_t at = code.size() - 1; at-- > 0;) {
    Decoded& op = code[at];
    const bool adds_up = op.kind == Kind::inx_implied || op.kind == Kind::iny_implied ||
                         op.kind == Kind::dex_implied || op.kind == Kind::dey_implied ||
                         op.kind == Kind::asl_implied || op.kind == Kind::lsr_implied;
    const Decoded& next = code[at + 1];
    if (!adds_up || next.kind != op.kind || next.low == kMostRepeats) continue;
    op.low = static_cast<std::uint8_t>(op.low + next.low);
    op.cycles = static_cast<std::uint8_t>(op.cycles + next.cycles);
    op.length = static_cast<std::uint8_t>(op.length + next.length);
  }
}

// With one cycle for each crossing of a page, and the dearest branch.
bool is_short(const Decoded& first, const Decoded& second, const Decoded* third) {
  constexpr int kMostExtraCycles = 3 * 3;
  return first.cycles + second.cycles + (third ? third->cycles : 0) + kMostExtraCycles <
         kLongestChainCycles;
}

void join_chains(std::vector<Decoded>& code) {
  static const auto chains = make_chain_table();
  // Only the kinds of later instructions are looked at, which are not yet joined to chains.
  for (std::size_t at = 0; at + 1 < code.size(); ++at) {
    Decoded& op = code[at];
    const std::size_t second = at + op.length;
    if (op.kind == Kind::none_plain || second + 1 >= code.size()) continue;
    const std::size_t third = second + code[second].length;
    auto found = chains.end();
    if (third < code.size())
      found = chains.find(chain_key(op.kind, code[second].kind, code[third].kind));
    if (found == chains.end())
      found = chains.find(chain_key(op.kind, code[second].kind, Kind::none_plain));
    if (found != chains.end() &&
        is_short(op, code[second], third < code.size() ? &code[third] : nullptr))
      op.kind = found->second;
  }
}

}  // namespace

std::vector<Decoded> decode(const std::uint8_t* program) {
  Decoder decoder(program);
  std::vector<Decoded> code(kProgramSize + 1);
  for (int offset = 0; offset < kProgramSize; ++offset)
    code[static_cast<std::size_t>(offset)] = decoder.at(offset);
  join_repeats(code);
  join_chains(code);
  return code;
}

}  // namespace nes
