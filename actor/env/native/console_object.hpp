// A console as Python holds it, and how C++ work on it becomes a Python call.
#pragma once

#include <exception>
#include <memory>
#include <utility>

#include "arguments.hpp"
#include "machine.hpp"
#include "python_api.hpp"
#include "shrink.hpp"

namespace nes {

// What belongs to a console; apart from the Python object, whose memory is not made by `new`.
struct Body {
  explicit Body(std::shared_ptr<const Cartridge> cartridge) : machine(std::move(cartridge)) {}

  // False, with a Python error set, while another thread uses the console. To be asked after all
  // arguments are converted, because converting may run Python code.
  bool is_free() const;

  Machine machine;
  std::unique_ptr<Shrink> shrink;  // the last one used
  // Used by a thread that has released the interpreter's lock. Touched only under that lock.
  bool is_busy = false;
};

struct ConsoleObject {
  PyObject_HEAD Body* body;
};

inline Body& body_of(PyObject* self) { return *reinterpret_cast<ConsoleObject*>(self)->body; }

extern PyType_Spec console_spec;

// Sets the Python error for a C++ exception; always null, for `return`.
PyObject* set_error(const std::exception& problem);

// Lets other Python threads run while `work` runs; it must not touch Python.
template <class Work>
void unlocked(Work work) {
  std::exception_ptr problem;
  PyThreadState* const thread = PyEval_SaveThread();
  try {
    work();
  } catch (...) {
    problem = std::current_exception();
  }
  PyEval_RestoreThread(thread);
  if (problem) std::rethrow_exception(problem);
}

// The same for work on one console, which nobody else can use meanwhile.
template <class Work>
void unlocked(Body& body, Work work) {
  struct Claim {
    explicit Claim(bool& flag) : flag_(flag) { flag_ = true; }
    ~Claim() { flag_ = false; }
    bool& flag_;
  } claim(body.is_busy);
  unlocked(work);
}

using FastCall = PyObject* (*)(PyObject*, PyObject* const*, Py_ssize_t, PyObject*);

// What Python calls: lets no C++ exception out. All that is thrown here comes from
// std::exception; to catch everything would also catch the unwinding by which older Pythons end
// their threads at exit.
template <PyObject* (*Function)(PyObject*, const Call&)>
PyObject* fast_call(PyObject* self, PyObject* const* values, Py_ssize_t count, PyObject* names) {
  try {
    return Function(self, Call{values, count, names});
  } catch (const std::exception& problem) {
    return set_error(problem);
  }
}

template <PyObject* (*Function)(PyObject*, PyObject*)>
PyObject* simple_call(PyObject* self, PyObject* argument) {
  try {
    return Function(self, argument);
  } catch (const std::exception& problem) {
    return set_error(problem);
  }
}

// CPython keeps functions of all kinds in one type of pointer.
inline PyCFunction as_function(FastCall function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

constexpr int kFastCall = METH_FASTCALL | METH_KEYWORDS;

// A reference that is given back unless it is released.
struct GiveBack {
  void operator()(PyObject* object) const { Py_DECREF(object); }
};
using Owned = std::unique_ptr<PyObject, GiveBack>;

inline PyObject* none() {
  Py_INCREF(Py_None);
  return Py_None;
}

// Most frames in one call: it cannot be interrupted.
constexpr int kMostFrames = 1'000'000;

// How to step; shared by one console and many.
struct StepOrder {
  int frames = 1;
  int look = 0;

  bool take(PyObject* frames_value, PyObject* look_value) {
    return take_int(frames_value, "frames", 1, kMostFrames, &frames) &&
           take_int(look_value, "look", 0, static_cast<int>(Look::colour), &look);
  }
};

}  // namespace nes
