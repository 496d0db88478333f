// Python's API. setup.py narrows it to the limited one of 3.11, so that one build serves all later
// versions; nothing here needs more.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
