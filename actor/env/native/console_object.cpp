#include "console_object.hpp"

#include <cstring>
#include <new>
#include <stdexcept>
#include <utility>

#include "colours.hpp"
#include "inspection.hpp"

namespace nes {
namespace {

constexpr int kPixels = kScreenHeight * kScreenWidth;

PyObject* make(PyTypeObject* type, PyObject* arguments, PyObject* keywords) {
  PyObject* content = nullptr;
  static char name[] = "";
  static char* names[] = {name, nullptr};
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O:Console", names, &content))
    return nullptr;
  Bytes cartridge;
  if (!cartridge.read(content, "cartridge")) return nullptr;
  const auto allocate = reinterpret_cast<allocfunc>(PyType_GetSlot(type, Py_tp_alloc));
  PyObject* const self = allocate(type, 0);
  if (self == nullptr) return nullptr;
  try {
    auto parsed = Cartridge::parse(cartridge.data(), cartridge.size());
    reinterpret_cast<ConsoleObject*>(self)->body = new Body(std::move(parsed));
    return self;
  } catch (const std::exception& problem) {
    Py_DECREF(self);
    return set_error(problem);
  }
}

void destroy(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  delete reinterpret_cast<ConsoleObject*>(self)->body;
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(type);
}

int export_ram(PyObject* self, Py_buffer* view, int flags) {
  return PyBuffer_FillInfo(view, self, body_of(self).machine.console().ram, kRamBytes, 0, flags);
}

PyObject* get_ram(PyObject* self, void*) { return PyMemoryView_FromObject(self); }

PyObject* get_plain(PyObject* self, void*) {
  return PyBool_FromLong(body_of(self).machine.is_plain);
}

int set_plain(PyObject* self, PyObject* value, void*) {
  if (value == nullptr) {
    PyErr_SetString(PyExc_TypeError, "plain cannot be deleted");
    return -1;
  }
  bool is_plain = false;
  if (!take_bool(value, &is_plain) || !body_of(self).is_free()) return -1;
  body_of(self).machine.is_plain = is_plain;
  return 0;
}

PyObject* power_on(PyObject* self, PyObject*) {
  if (!body_of(self).is_free()) return nullptr;
  body_of(self).machine.power_on();
  return none();
}

constexpr Signature<3> kStep{"step", {"buttons", "frames", "look"}, 1};

PyObject* step(PyObject* self, const Call& call) {
  PyObject* given[3];
  int buttons = 0;
  StepOrder order;
  Body& body = body_of(self);
  if (!bind(kStep, call, given) || !take_int(given[0], "buttons", 0, 255, &buttons) ||
      !order.take(given[1], given[2]) || !body.is_free())
    return nullptr;
  unlocked(body, [&] {
    body.machine.step(static_cast<std::uint8_t>(buttons), order.frames,
                      static_cast<Look>(order.look));
  });
  return none();
}

PyObject* colours(PyObject* self, PyObject* out) {
  Body& body = body_of(self);
  Bytes picture;
  if (!picture.write(out, "out", kPixels) || !body.is_free()) return nullptr;
  unlocked(body, [&] { std::memcpy(picture.data(), body.machine.colours(), kPixels); });
  return none();
}

PyObject* rgb(PyObject* self, PyObject* out) {
  Body& body = body_of(self);
  Bytes picture;
  if (!picture.write(out, "out", 3 * kPixels) || !body.is_free()) return nullptr;
  unlocked(body, [&] {
    const std::uint8_t* const numbers = body.machine.colours();
    for (int i = 0; i < kPixels; ++i)
      std::memcpy(picture.data() + 3 * i, kColourRgb[numbers[i] & 63], 3);
  });
  return none();
}

constexpr Signature<4> kGray{"gray", {"out", "height", "width", "crop_top"}, 3};

PyObject* gray(PyObject* self, const Call& call) {
  PyObject* given[4];
  int height = 0, width = 0, crop_top = 0;
  Body& body = body_of(self);
  Bytes picture;
  if (!bind(kGray, call, given) || !take_int(given[1], "height", 1, kScreenHeight, &height) ||
      !take_int(given[2], "width", 1, kScreenWidth, &width) ||
      !take_int(given[3], "crop_top", 0, kScreenHeight - 1, &crop_top) ||
      !picture.write(given[0], "out", height * width) || !body.is_free())
    return nullptr;
  unlocked(body, [&] {
    if (!body.shrink || !body.shrink->is_for(height, width, crop_top))
      body.shrink = std::make_unique<Shrink>(height, width, crop_top);
    body.shrink->write(body.machine.grays(), picture.data());
  });
  return none();
}

PyObject* save(PyObject* self, PyObject*) {
  Owned state(PyBytes_FromStringAndSize(nullptr, Machine::kStateBytes));
  if (!state || !body_of(self).is_free()) return nullptr;
  body_of(self).machine.save(reinterpret_cast<std::uint8_t*>(PyBytes_AsString(state.get())));
  return state.release();
}

constexpr Signature<2> kLoad{"load", {"state", "keep_controllers"}, 1};

PyObject* load(PyObject* self, const Call& call) {
  PyObject* given[2];
  bool keep_controllers = false;
  Bytes state;
  if (!bind(kLoad, call, given) || !take_bool(given[1], &keep_controllers) ||
      !state.read(given[0], "state") || !body_of(self).is_free())
    return nullptr;
  body_of(self).machine.load(state.data(), state.size(), keep_controllers);
  return none();
}

PyObject* frame_hash(PyObject* self, PyObject*) {
  if (!body_of(self).is_free()) return nullptr;
  std::uint64_t hash = 0;
  unlocked(body_of(self), [&] { hash = body_of(self).machine.frame_hash(); });
  return PyLong_FromUnsignedLongLong(hash);
}

PyMethodDef methods[] = {
    {"power_on", simple_call<power_on>, METH_NOARGS,
     "Clear the work RAM and reset; video memory stays as it was."},
    {"step", as_function(fast_call<step>), kFastCall,
     "step(buttons, frames=1, look=NOTHING): play while the first controller holds the buttons."},
    {"colours", simple_call<colours>, METH_O, "Write the picture as 240*256 colour numbers."},
    {"rgb", simple_call<rgb>, METH_O, "Write the picture as 240*256*3 bytes."},
    {"gray", as_function(fast_call<gray>), kFastCall,
     "gray(out, height, width, crop_top=0): write the area-averaged gray picture."},
    {"save", simple_call<save>, METH_NOARGS, "The whole state as STATE_BYTES bytes."},
    {"load", as_function(fast_call<load>), kFastCall,
     "load(state, keep_controllers=False): return to a saved state."},
    {"frame_hash", simple_call<frame_hash>, METH_NOARGS, "64 bits of the picture and the RAM."},
    {"registers", simple_call<registers>, METH_NOARGS,
     "pc, a, x, y, s, p, and the cycle from now in which the next instruction executes."},
    {"run_cycles", simple_call<run_cycles>, METH_O, "Play any number of CPU cycles."},
    {"run_ppu", simple_call<run_ppu>, METH_O, "Run the PPU alone for a number of dots."},
    {"write_ppu", as_function(fast_call<write_ppu>), kFastCall, "write_ppu(register, value)"},
    {"read_ppu", simple_call<read_ppu>, METH_O, "Read PPU register 0 to 7."},
    {"ppu_state", simple_call<ppu_state>, METH_NOARGS,
     "line, dot, v, t, fine_x, is_first_write, vblank, sprite0_hit, is_even_frame, control, mask, "
     "oam_address, data_buffer"},
    {"video_memory", simple_call<video_memory>, METH_NOARGS,
     "2,048 name table bytes, 32 of the palette, 256 of the sprites."},
    {nullptr, nullptr, 0, nullptr},
};

PyGetSetDef attributes[] = {
    {"ram", get_ram, nullptr, "The 2,048 bytes of work RAM: a live view that can be written.",
     nullptr},
    {"plain", get_plain, set_plain, "Whether every short cut is off.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

char documentation[] = "Console(cartridge): one console without sound, just switched on.";

PyType_Slot slots[] = {
    {Py_tp_doc, documentation},
    {Py_tp_new, reinterpret_cast<void*>(make)},
    {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
    {Py_bf_getbuffer, reinterpret_cast<void*>(export_ram)},
    {Py_tp_methods, methods},
    {Py_tp_getset, attributes},
    {0, nullptr},
};

}  // namespace

PyType_Spec console_spec = {
    "actor.env.native._console.Console",
    sizeof(ConsoleObject),
    0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    slots,
};

bool Body::is_free() const {
  if (is_busy) PyErr_SetString(PyExc_RuntimeError, "another thread is using this console");
  return !is_busy;
}

PyObject* set_error(const std::exception& problem) {
  PyObject* kind = PyExc_RuntimeError;
  if (dynamic_cast<const std::bad_alloc*>(&problem) != nullptr) kind = PyExc_MemoryError;
  if (dynamic_cast<const CartridgeError*>(&problem) != nullptr ||
      dynamic_cast<const StateError*>(&problem) != nullptr ||
      dynamic_cast<const std::invalid_argument*>(&problem) != nullptr)
    kind = PyExc_ValueError;
  PyErr_SetString(kind, problem.what());
  return nullptr;
}

}  // namespace nes
