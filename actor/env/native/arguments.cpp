#include "arguments.hpp"

namespace nes {
namespace {

bool refuse_unknown(const char* function, PyObject* name) {
  PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument '%U'", function, name);
  return false;
}

bool bind_named(const char* function, const char* const* parameters, std::size_t count,
                const Call& call, PyObject** bound) {
  const Py_ssize_t named = call.names == nullptr ? 0 : PyTuple_Size(call.names);
  for (Py_ssize_t i = 0; i < named; ++i) {
    PyObject* const name = PyTuple_GetItem(call.names, i);
    std::size_t at = 0;
    while (at < count && PyUnicode_CompareWithASCIIString(name, parameters[at]) != 0) ++at;
    if (at == count) return refuse_unknown(function, name);
    if (bound[at] != nullptr) {
      PyErr_Format(PyExc_TypeError, "%s() got '%s' twice", function, parameters[at]);
      return false;
    }
    bound[at] = call.values[call.positional + i];
  }
  return true;
}

}  // namespace

bool bind(const char* function, const char* const* parameters, std::size_t count,
          std::size_t required, const Call& call, PyObject** bound) {
  if (call.positional > static_cast<Py_ssize_t>(count)) {
    PyErr_Format(PyExc_TypeError, "%s() takes at most %zu arguments, got %zd", function, count,
                 call.positional);
    return false;
  }
  for (std::size_t i = 0; i < count; ++i)
    bound[i] = static_cast<Py_ssize_t>(i) < call.positional ? call.values[i] : nullptr;
  if (!bind_named(function, parameters, count, call, bound)) return false;
  for (std::size_t i = 0; i < required; ++i) {
    if (bound[i] != nullptr) continue;
    PyErr_Format(PyExc_TypeError, "%s() needs the argument '%s'", function, parameters[i]);
    return false;
  }
  return true;
}

bool take_int(PyObject* value, const char* name, int low, int high, int* out) {
  if (value == nullptr) return true;
  int overflow = 0;
  const long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
  if (number == -1 && overflow == 0 && PyErr_Occurred() != nullptr) return false;
  if (overflow != 0 || number < low || number > high) {
    PyErr_Format(PyExc_ValueError, "%s must be from %d to %d, got %R", name, low, high, value);
    return false;
  }
  *out = static_cast<int>(number);
  return true;
}

bool take_bool(PyObject* value, bool* out) {
  if (value == nullptr) return true;
  const int truth = PyObject_IsTrue(value);
  if (truth < 0) return false;
  *out = truth != 0;
  return true;
}

bool Bytes::hold(PyObject* object, const char* name, int flags, const char* demand) {
  if (PyObject_GetBuffer(object, &view_, flags) != 0) {
    if (PyErr_ExceptionMatches(PyExc_BufferError) || PyErr_ExceptionMatches(PyExc_ValueError)) {
      PyErr_Clear();
      PyErr_Format(PyExc_ValueError, "%s must be %s", name, demand);
    }
    return false;
  }
  is_held_ = true;
  return true;
}

bool Bytes::read(PyObject* object, const char* name) {
  return hold(object, name, PyBUF_SIMPLE, "contiguous bytes");
}

bool Bytes::write(PyObject* object, const char* name, Py_ssize_t size) {
  if (!hold(object, name, PyBUF_CONTIG, "contiguous bytes that can be written")) return false;
  if (view_.len == size && view_.itemsize == 1) return true;
  PyErr_Format(PyExc_ValueError, "%s must have %zd items of 1 byte, got %zd bytes in items of %zd",
               name, size, view_.len, view_.itemsize);
  return false;
}

}  // namespace nes
