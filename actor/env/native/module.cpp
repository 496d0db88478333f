// The extension module `_console`: one type, one function, a few numbers.
#include <vector>

#include "console_object.hpp"

namespace nes {
namespace {

struct State {
  PyObject* console_type;
};

State& state_of(PyObject* module) { return *static_cast<State*>(PyModule_GetState(module)); }

// Consoles that are used together: all of them are marked, or none.
class Crew {
 public:
  Crew() = default;
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;
  ~Crew() {
    for (Body* body : bodies_) body->is_busy = false;
  }

  bool add(PyObject* item, PyObject* type) {
    if (!PyObject_TypeCheck(item, reinterpret_cast<PyTypeObject*>(type))) {
      PyErr_Format(PyExc_TypeError, "consoles must hold only Console objects, got %R", item);
      return false;
    }
    Body& body = body_of(item);
    if (body.is_busy) {
      PyErr_SetString(PyExc_RuntimeError, "a console is used by another thread, or given twice");
      return false;
    }
    bodies_.push_back(&body);
    body.is_busy = true;
    return true;
  }

  const std::vector<Body*>& bodies() const { return bodies_; }

 private:
  std::vector<Body*> bodies_;
};

constexpr Signature<4> kStepAll{"step_all", {"consoles", "buttons", "frames", "look"}, 3};

PyObject* step_all(PyObject* module, const Call& call) {
  PyObject* given[4];
  StepOrder order;
  Bytes buttons;
  if (!bind(kStepAll, call, given) || !order.take(given[2], given[3]) ||
      !buttons.read(given[1], "buttons"))
    return nullptr;
  // Our own tuple keeps them alive, whatever happens to the caller's list meanwhile.
  const Owned consoles(PySequence_Tuple(given[0]));
  if (!consoles) return nullptr;
  const Py_ssize_t count = PyTuple_Size(consoles.get());
  if (static_cast<std::size_t>(count) != buttons.size()) {
    PyErr_Format(PyExc_ValueError, "buttons must have one byte for each of %zd consoles, got %zu",
                 count, buttons.size());
    return nullptr;
  }
  Crew crew;
  for (Py_ssize_t i = 0; i < count; ++i)
    if (!crew.add(PyTuple_GetItem(consoles.get(), i), state_of(module).console_type))
      return nullptr;
  unlocked([&] {
    const unsigned char* held = buttons.data();
    for (Body* body : crew.bodies())
      body->machine.step(*held++, order.frames, static_cast<Look>(order.look));
  });
  return none();
}

int set_up(PyObject* module) {
  State& state = state_of(module);
  state.console_type = PyType_FromModuleAndSpec(module, &console_spec, nullptr);
  if (state.console_type == nullptr ||
      PyModule_AddObjectRef(module, "Console", state.console_type) != 0)
    return -1;
  const std::pair<const char*, long> numbers[] = {
      {"NOTHING", static_cast<long>(Look::nothing)}, {"GRAY", static_cast<long>(Look::gray)},
      {"COLOUR", static_cast<long>(Look::colour)},   {"FRAME_CYCLES", kFrameCycles},
      {"STATE_BYTES", Machine::kStateBytes},
  };
  for (const auto& [name, value] : numbers)
    if (PyModule_AddIntConstant(module, name, value) != 0) return -1;
  return 0;
}

int visit(PyObject* module, visitproc visit, void* arg) {
  Py_VISIT(state_of(module).console_type);
  return 0;
}

int clear(PyObject* module) {
  Py_CLEAR(state_of(module).console_type);
  return 0;
}

PyMethodDef functions[] = {
    {"step_all", as_function(fast_call<step_all>), kFastCall,
     "step_all(consoles, buttons, frames, look=NOTHING): step many, one byte of buttons each."},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef_Slot slots[] = {
    {Py_mod_exec, reinterpret_cast<void*>(set_up)},
    {0, nullptr},
};

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    "_console",
    "An NES console for cartridges without a mapper, without sound, exact and quick.",
    sizeof(State),
    functions,
    slots,
    visit,
    clear,
    nullptr,
};

}  // namespace
}  // namespace nes

PyMODINIT_FUNC PyInit__console() { return PyModuleDef_Init(&nes::definition); }
