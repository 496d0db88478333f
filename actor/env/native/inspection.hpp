// The methods of a console that only tests need.
#pragma once

#include "console_object.hpp"

namespace nes {

PyObject* registers(PyObject* self, PyObject*);
PyObject* run_cycles(PyObject* self, PyObject* cycles);
PyObject* run_ppu(PyObject* self, PyObject* dots);
PyObject* write_ppu(PyObject* self, const Call& call);
PyObject* read_ppu(PyObject* self, PyObject* reg);
PyObject* ppu_state(PyObject* self, PyObject*);
PyObject* video_memory(PyObject* self, PyObject*);

}  // namespace nes
