// From Python's values to C++ ones. Every function here returns false with a Python error set.
#pragma once

#include <cstddef>

#include "python_api.hpp"

namespace nes {

// A call as METH_FASTCALL | METH_KEYWORDS hands it over.
struct Call {
  PyObject* const* values;
  Py_ssize_t positional;
  PyObject* names;  // of the values after the positional ones; may be null
};

// The parameters of a function; the first `required` of them must be given.
template <std::size_t N>
struct Signature {
  const char* function;
  const char* parameters[N];
  std::size_t required;
};

// Puts what was given into the order of the parameters; what was not given stays null.
bool bind(const char* function, const char* const* parameters, std::size_t count,
          std::size_t required, const Call& call, PyObject** bound);

template <std::size_t N>
bool bind(const Signature<N>& signature, const Call& call, PyObject* (&bound)[N]) {
  return bind(signature.function, signature.parameters, N, signature.required, call, bound);
}

// A whole number from `low` to `high`. Leaves `out` alone, as a default, when `value` is null.
bool take_int(PyObject* value, const char* name, int low, int high, int* out);

// Whether Python finds it true. Leaves `out` alone when `value` is null.
bool take_bool(PyObject* value, bool* out);

// The bytes of an object for as long as this lives.
class Bytes {
 public:
  Bytes() = default;
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;
  ~Bytes() {
    if (is_held_) PyBuffer_Release(&view_);
  }

  bool read(PyObject* object, const char* name);
  // Refuses all but exactly `size` bytes that lie together and may be written.
  bool write(PyObject* object, const char* name, Py_ssize_t size);

  unsigned char* data() const { return static_cast<unsigned char*>(view_.buf); }
  std::size_t size() const { return static_cast<std::size_t>(view_.len); }

 private:
  bool hold(PyObject* object, const char* name, int flags, const char* demand);

  Py_buffer view_ = {};
  bool is_held_ = false;
};

}  // namespace nes
