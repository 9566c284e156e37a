/* CPython's stable interface as of 3.10: one binary for that and every later version. */
#ifndef TILEWRIGHT_PYTHON_ABI_H
#define TILEWRIGHT_PYTHON_ABI_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030a0000
#include <Python.h>

/* The buffer protocol is in the stable interface as of 3.11. What it says there, 3.10 already does
 * and exports; only its header is silent. */
typedef struct BufferView {
  void* buf;
  PyObject* obj;
  Py_ssize_t len;
  Py_ssize_t itemsize;
  int readonly;
  int ndim;
  char* format;
  Py_ssize_t* shape;
  Py_ssize_t* strides;
  Py_ssize_t* suboffsets;
  void* internal;
} BufferView;

/* PyBUF_STRIDES | PyBUF_FORMAT, and the PyBUF_WRITE of memoryviews. */
enum { BUFFER_STRIDED_WITH_FORMAT = 0x0018 | 0x0004, BUFFER_WRITE = 0x0200 };

int PyObject_GetBuffer(PyObject* object, BufferView* view, int flags);
void PyBuffer_Release(BufferView* view);

#endif /* TILEWRIGHT_PYTHON_ABI_H */
