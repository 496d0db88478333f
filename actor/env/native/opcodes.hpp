// The official instructions of the 6502: what they do, how they address, what they cost.
#pragma once

#include <array>
#include <cstdint>

namespace nes {

// AND is called mask, because C++ has the word.
enum class Operation : std::uint8_t {
  none,
  adc,
  mask,
  asl,
  bcc,
  bcs,
  beq,
  bit,
  bmi,
  bne,
  bpl,
  brk,
  bvc,
  bvs,
  clc,
  cld,
  cli,
  clv,
  cmp,
  cpx,
  cpy,
  dec,
  dex,
  dey,
  eor,
  inc,
  inx,
  iny,
  jmp,
  jsr,
  lda,
  ldx,
  ldy,
  lsr,
  nop,
  ora,
  pha,
  php,
  pla,
  plp,
  rol,
  ror,
  rti,
  rts,
  sbc,
  sec,
  sed,
  sei,
  sta,
  stx,
  sty,
  tax,
  tay,
  tsx,
  txa,
  txs,
  tya,
};

enum class Mode : std::uint8_t {
  implied,
  accumulator,
  immediate,
  relative,
  zero_page,
  zero_page_x,
  zero_page_y,
  absolute,
  absolute_x,
  absolute_y,
  indirect,
  indirect_x,
  indirect_y,
};

struct Opcode {
  // Unofficial codes are one byte long, take one cycle and do nothing.
  Operation operation = Operation::none;
  Mode mode = Mode::implied;
  std::uint8_t cycles = 1;
};

struct OpcodeRow {
  std::uint8_t code;
  Opcode opcode;
};

// BRK costs 14: nes_py counts the interrupt and the instruction.
constexpr OpcodeRow kOfficial[] = {
    {0x69, {Operation::adc, Mode::immediate, 2}},    {0x65, {Operation::adc, Mode::zero_page, 3}},
    {0x75, {Operation::adc, Mode::zero_page_x, 4}},  {0x6D, {Operation::adc, Mode::absolute, 4}},
    {0x7D, {Operation::adc, Mode::absolute_x, 4}},   {0x79, {Operation::adc, Mode::absolute_y, 4}},
    {0x61, {Operation::adc, Mode::indirect_x, 6}},   {0x71, {Operation::adc, Mode::indirect_y, 5}},
    {0x29, {Operation::mask, Mode::immediate, 2}},   {0x25, {Operation::mask, Mode::zero_page, 3}},
    {0x35, {Operation::mask, Mode::zero_page_x, 4}}, {0x2D, {Operation::mask, Mode::absolute, 4}},
    {0x3D, {Operation::mask, Mode::absolute_x, 4}},  {0x39, {Operation::mask, Mode::absolute_y, 4}},
    {0x21, {Operation::mask, Mode::indirect_x, 6}},  {0x31, {Operation::mask, Mode::indirect_y, 5}},
    {0x0A, {Operation::asl, Mode::accumulator, 2}},  {0x06, {Operation::asl, Mode::zero_page, 5}},
    {0x16, {Operation::asl, Mode::zero_page_x, 6}},  {0x0E, {Operation::asl, Mode::absolute, 6}},
    {0x1E, {Operation::asl, Mode::absolute_x, 7}},   {0x90, {Operation::bcc, Mode::relative, 2}},
    {0xB0, {Operation::bcs, Mode::relative, 2}},     {0xF0, {Operation::beq, Mode::relative, 2}},
    {0x24, {Operation::bit, Mode::zero_page, 3}},    {0x2C, {Operation::bit, Mode::absolute, 4}},
    {0x30, {Operation::bmi, Mode::relative, 2}},     {0xD0, {Operation::bne, Mode::relative, 2}},
    {0x10, {Operation::bpl, Mode::relative, 2}},     {0x00, {Operation::brk, Mode::implied, 14}},
    {0x50, {Operation::bvc, Mode::relative, 2}},     {0x70, {Operation::bvs, Mode::relative, 2}},
    {0x18, {Operation::clc, Mode::implied, 2}},      {0xD8, {Operation::cld, Mode::implied, 2}},
    {0x58, {Operation::cli, Mode::implied, 2}},      {0xB8, {Operation::clv, Mode::implied, 2}},
    {0xC9, {Operation::cmp, Mode::immediate, 2}},    {0xC5, {Operation::cmp, Mode::zero_page, 3}},
    {0xD5, {Operation::cmp, Mode::zero_page_x, 4}},  {0xCD, {Operation::cmp, Mode::absolute, 4}},
    {0xDD, {Operation::cmp, Mode::absolute_x, 4}},   {0xD9, {Operation::cmp, Mode::absolute_y, 4}},
    {0xC1, {Operation::cmp, Mode::indirect_x, 6}},   {0xD1, {Operation::cmp, Mode::indirect_y, 5}},
    {0xE0, {Operation::cpx, Mode::immediate, 2}},    {0xE4, {Operation::cpx, Mode::zero_page, 3}},
    {0xEC, {Operation::cpx, Mode::absolute, 4}},     {0xC0, {Operation::cpy, Mode::immediate, 2}},
    {0xC4, {Operation::cpy, Mode::zero_page, 3}},    {0xCC, {Operation::cpy, Mode::absolute, 4}},
    {0xC6, {Operation::dec, Mode::zero_page, 5}},    {0xD6, {Operation::dec, Mode::zero_page_x, 6}},
    {0xCE, {Operation::dec, Mode::absolute, 6}},     {0xDE, {Operation::dec, Mode::absolute_x, 7}},
    {0xCA, {Operation::dex, Mode::implied, 2}},      {0x88, {Operation::dey, Mode::implied, 2}},
    {0x49, {Operation::eor, Mode::immediate, 2}},    {0x45, {Operation::eor, Mode::zero_page, 3}},
    {0x55, {Operation::eor, Mode::zero_page_x, 4}},  {0x4D, {Operation::eor, Mode::absolute, 4}},
    {0x5D, {Operation::eor, Mode::absolute_x, 4}},   {0x59, {Operation::eor, Mode::absolute_y, 4}},
    {0x41, {Operation::eor, Mode::indirect_x, 6}},   {0x51, {Operation::eor, Mode::indirect_y, 5}},
    {0xE6, {Operation::inc, Mode::zero_page, 5}},    {0xF6, {Operation::inc, Mode::zero_page_x, 6}},
    {0xEE, {Operation::inc, Mode::absolute, 6}},     {0xFE, {Operation::inc, Mode::absolute_x, 7}},
    {0xE8, {Operation::inx, Mode::implied, 2}},      {0xC8, {Operation::iny, Mode::implied, 2}},
    {0x4C, {Operation::jmp, Mode::absolute, 3}},     {0x6C, {Operation::jmp, Mode::indirect, 5}},
    {0x20, {Operation::jsr, Mode::absolute, 6}},     {0xA9, {Operation::lda, Mode::immediate, 2}},
    {0xA5, {Operation::lda, Mode::zero_page, 3}},    {0xB5, {Operation::lda, Mode::zero_page_x, 4}},
    {0xAD, {Operation::lda, Mode::absolute, 4}},     {0xBD, {Operation::lda, Mode::absolute_x, 4}},
    {0xB9, {Operation::lda, Mode::absolute_y, 4}},   {0xA1, {Operation::lda, Mode::indirect_x, 6}},
    {0xB1, {Operation::lda, Mode::indirect_y, 5}},   {0xA2, {Operation::ldx, Mode::immediate, 2}},
    {0xA6, {Operation::ldx, Mode::zero_page, 3}},    {0xB6, {Operation::ldx, Mode::zero_page_y, 4}},
    {0xAE, {Operation::ldx, Mode::absolute, 4}},     {0xBE, {Operation::ldx, Mode::absolute_y, 4}},
    {0xA0, {Operation::ldy, Mode::immediate, 2}},    {0xA4, {Operation::ldy, Mode::zero_page, 3}},
    {0xB4, {Operation::ldy, Mode::zero_page_x, 4}},  {0xAC, {Operation::ldy, Mode::absolute, 4}},
    {0xBC, {Operation::ldy, Mode::absolute_x, 4}},   {0x4A, {Operation::lsr, Mode::accumulator, 2}},
    {0x46, {Operation::lsr, Mode::zero_page, 5}},    {0x56, {Operation::lsr, Mode::zero_page_x, 6}},
    {0x4E, {Operation::lsr, Mode::absolute, 6}},     {0x5E, {Operation::lsr, Mode::absolute_x, 7}},
    {0xEA, {Operation::nop, Mode::implied, 2}},      {0x09, {Operation::ora, Mode::immediate, 2}},
    {0x05, {Operation::ora, Mode::zero_page, 3}},    {0x15, {Operation::ora, Mode::zero_page_x, 4}},
    {0x0D, {Operation::ora, Mode::absolute, 4}},     {0x1D, {Operation::ora, Mode::absolute_x, 4}},
    {0x19, {Operation::ora, Mode::absolute_y, 4}},   {0x01, {Operation::ora, Mode::indirect_x, 6}},
    {0x11, {Operation::ora, Mode::indirect_y, 5}},   {0x48, {Operation::pha, Mode::implied, 3}},
    {0x08, {Operation::php, Mode::implied, 3}},      {0x68, {Operation::pla, Mode::implied, 4}},
    {0x28, {Operation::plp, Mode::implied, 4}},      {0x2A, {Operation::rol, Mode::accumulator, 2}},
    {0x26, {Operation::rol, Mode::zero_page, 5}},    {0x36, {Operation::rol, Mode::zero_page_x, 6}},
    {0x2E, {Operation::rol, Mode::absolute, 6}},     {0x3E, {Operation::rol, Mode::absolute_x, 7}},
    {0x6A, {Operation::ror, Mode::accumulator, 2}},  {0x66, {Operation::ror, Mode::zero_page, 5}},
    {0x76, {Operation::ror, Mode::zero_page_x, 6}},  {0x6E, {Operation::ror, Mode::absolute, 6}},
    {0x7E, {Operation::ror, Mode::absolute_x, 7}},   {0x40, {Operation::rti, Mode::implied, 6}},
    {0x60, {Operation::rts, Mode::implied, 6}},      {0xE9, {Operation::sbc, Mode::immediate, 2}},
    {0xE5, {Operation::sbc, Mode::zero_page, 3}},    {0xF5, {Operation::sbc, Mode::zero_page_x, 4}},
    {0xED, {Operation::sbc, Mode::absolute, 4}},     {0xFD, {Operation::sbc, Mode::absolute_x, 4}},
    {0xF9, {Operation::sbc, Mode::absolute_y, 4}},   {0xE1, {Operation::sbc, Mode::indirect_x, 6}},
    {0xF1, {Operation::sbc, Mode::indirect_y, 5}},   {0x38, {Operation::sec, Mode::implied, 2}},
    {0xF8, {Operation::sed, Mode::implied, 2}},      {0x78, {Operation::sei, Mode::implied, 2}},
    {0x85, {Operation::sta, Mode::zero_page, 3}},    {0x95, {Operation::sta, Mode::zero_page_x, 4}},
    {0x8D, {Operation::sta, Mode::absolute, 4}},     {0x9D, {Operation::sta, Mode::absolute_x, 5}},
    {0x99, {Operation::sta, Mode::absolute_y, 5}},   {0x81, {Operation::sta, Mode::indirect_x, 6}},
    {0x91, {Operation::sta, Mode::indirect_y, 6}},   {0x86, {Operation::stx, Mode::zero_page, 3}},
    {0x96, {Operation::stx, Mode::zero_page_y, 4}},  {0x8E, {Operation::stx, Mode::absolute, 4}},
    {0x84, {Operation::sty, Mode::zero_page, 3}},    {0x94, {Operation::sty, Mode::zero_page_x, 4}},
    {0x8C, {Operation::sty, Mode::absolute, 4}},     {0xAA, {Operation::tax, Mode::implied, 2}},
    {0xA8, {Operation::tay, Mode::implied, 2}},      {0xBA, {Operation::tsx, Mode::implied, 2}},
    {0x8A, {Operation::txa, Mode::implied, 2}},      {0x9A, {Operation::txs, Mode::implied, 2}},
    {0x98, {Operation::tya, Mode::implied, 2}},
};

constexpr std::array<Opcode, 256> make_opcodes() {
  std::array<Opcode, 256> table{};
  for (const OpcodeRow& row : kOfficial) table[row.code] = row.opcode;
  return table;
}

constexpr std::array<Opcode, 256> kOpcodes = make_opcodes();

constexpr int length_bytes(Mode mode) {
  switch (mode) {
    case Mode::implied:
    case Mode::accumulator: return 1;
    case Mode::absolute:
    case Mode::absolute_x:
    case Mode::absolute_y:
    case Mode::indirect: return 3;
    default: return 2;
  }
}

constexpr bool stores(Operation operation) {
  return operation == Operation::sta || operation == Operation::stx || operation == Operation::sty;
}

constexpr bool modifies(Operation operation) {
  return operation == Operation::asl || operation == Operation::lsr ||
         operation == Operation::rol || operation == Operation::ror ||
         operation == Operation::inc || operation == Operation::dec;
}

}  // namespace nes
