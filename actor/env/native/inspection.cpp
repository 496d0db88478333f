#include "inspection.hpp"

#include <cstring>

namespace nes {
namespace {

// A minute of the game: one call cannot be interrupted.
constexpr int kMostDots = kDotsPerCycle * kMostCycles;
constexpr int kLastRegister = 7;

}  // namespace

PyObject* registers(PyObject* self, PyObject*) {
  if (!body_of(self).is_free()) return nullptr;
  const Cpu& cpu = body_of(self).machine.console().cpu;
  return Py_BuildValue("(iiiiiii)", cpu.pc, cpu.a, cpu.x, cpu.y, cpu.s, cpu.p, cpu.wait);
}

PyObject* run_cycles(PyObject* self, PyObject* cycles) {
  int count = 0;
  Body& body = body_of(self);
  if (!take_int(cycles, "cycles", 0, kMostCycles, &count) || !body.is_free()) return nullptr;
  unlocked(body, [&] { body.machine.run_cycles(count); });
  return none();
}

PyObject* run_ppu(PyObject* self, PyObject* dots) {
  int count = 0;
  Body& body = body_of(self);
  if (!take_int(dots, "dots", 0, kMostDots, &count) || !body.is_free()) return nullptr;
  unlocked(body, [&] { body.machine.run_ppu(count); });
  return none();
}

PyObject* write_ppu(PyObject* self, const Call& call) {
  static constexpr Signature<2> kWrite{"write_ppu", {"register", "value"}, 2};
  PyObject* given[2];
  int reg = 0, value = 0;
  if (!bind(kWrite, call, given) || !take_int(given[0], "register", 0, kLastRegister, &reg) ||
      !take_int(given[1], "value", 0, 255, &value) || !body_of(self).is_free())
    return nullptr;
  body_of(self).machine.write_ppu(reg, static_cast<std::uint8_t>(value));
  return none();
}

PyObject* read_ppu(PyObject* self, PyObject* reg) {
  int number = 0;
  if (!take_int(reg, "register", 0, kLastRegister, &number) || !body_of(self).is_free())
    return nullptr;
  return PyLong_FromLong(body_of(self).machine.read_ppu(number));
}

PyObject* ppu_state(PyObject* self, PyObject*) {
  if (!body_of(self).is_free()) return nullptr;
  const Ppu& ppu = body_of(self).machine.console().ppu;
  return Py_BuildValue("(iiiiiiiiiiiii)", ppu.line, ppu.dot, ppu.v, ppu.t, ppu.fine_x,
                       ppu.is_first_write, ppu.vblank, ppu.sprite0_hit, ppu.is_even_frame,
                       ppu.control, ppu.mask, ppu.oam_address, ppu.data_buffer);
}

PyObject* video_memory(PyObject* self, PyObject*) {
  Owned bytes(PyBytes_FromStringAndSize(nullptr, kVramBytes + kPaletteBytes + kOamBytes));
  if (!bytes || !body_of(self).is_free()) return nullptr;
  const Ppu& ppu = body_of(self).machine.console().ppu;
  char* out = PyBytes_AsString(bytes.get());
  std::memcpy(out, ppu.vram, kVramBytes);
  std::memcpy(out + kVramBytes, ppu.palette, kPaletteBytes);
  std::memcpy(out + kVramBytes + kPaletteBytes, ppu.oam, kOamBytes);
  return bytes.release();
}

}  // namespace nes
