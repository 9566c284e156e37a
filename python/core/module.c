/* tilewright._core: the C interface of libtilewright.so for Python. */
#define _GNU_SOURCE /* dladdr, dl_iterate_phdr */
#include "core.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

/* ---- copies of the library: a second one would have its own devices and errors */

static PyObject* library_path(PyObject* module, PyObject* unused) {
  (void)module;
  (void)unused;
  Dl_info info;
  void* function;
  const char* (*const version)(void) = tw_version;
  memcpy(&function, &version, sizeof function);
  if (dladdr(function, &info) == 0 || info.dli_fname == NULL) return PyUnicode_FromString("");
  char* const path = realpath(info.dli_fname, NULL);
  PyObject* const found = PyUnicode_DecodeFSDefault(path != NULL ? path : info.dli_fname);
  free(path);
  return found;
}

static int add_library(struct dl_phdr_info* info, size_t size, void* list) {
  (void)size;
  const char* const slash = strrchr(info->dlpi_name, '/');
  const char* const name = slash == NULL ? info->dlpi_name : slash + 1;
  if (strncmp(name, "libtilewright.so", 16) != 0) return 0;
  char* const path = realpath(info->dlpi_name, NULL);
  PyObject* const text = PyUnicode_DecodeFSDefault(path != NULL ? path : info->dlpi_name);
  free(path);
  const int status = text == NULL ? -1 : PyList_Append(list, text);
  Py_XDECREF(text);
  return status;
}

static PyObject* loaded_libraries(PyObject* module, PyObject* unused) {
  (void)module;
  (void)unused;
  PyObject* list = PyList_New(0);
  if (list != NULL && dl_iterate_phdr(add_library, list) != 0) Py_CLEAR(list);
  return list;
}

static PyMethodDef functions[] = {
    {"library_path", library_path, METH_NOARGS,
     "library_path()\n--\n\nThe libtilewright.so that this module calls."},
    {"loaded_libraries", loaded_libraries, METH_NOARGS,
     "loaded_libraries()\n--\n\nEvery libtilewright.so of this process."},
    {NULL, NULL, 0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "tilewright._core",
    .m_doc = "The C interface of libtilewright.so: devices, buffers, operators.",
    .m_methods = functions,
    .m_size = -1, /* the library has one state for the process, and so has this */
};

static int add_version(PyObject* module) {
  return PyModule_AddStringConstant(module, "__version__", tw_version()) != 0 ||
                 PyModule_AddStringConstant(module, "COMMIT", tw_commit()) != 0
             ? -1
             : 0;
}

/* What `from tilewright._core import *` takes. */
static int add_exports(PyObject* module) {
  PyObject* const classes = PyObject_GetAttrString(module, "CLASSES");
  PyObject* const others =
      Py_BuildValue("[sssssss]", "Device", "Buffer", "Operator", "attention_signs",
                    "quantize_on_host", "quantize_sizes", "rope_table");
  PyObject* const all =
      classes == NULL || others == NULL ? NULL : PySequence_InPlaceConcat(others, classes);
  const int status = all == NULL ? -1 : PyModule_AddObjectRef(module, "__all__", all);
  Py_XDECREF(all);
  Py_XDECREF(others);
  Py_XDECREF(classes);
  return status;
}

PyMODINIT_FUNC PyInit__core(void) {
  static int (*const parts[])(PyObject*) = {
      add_version, status_init,    structs_init, tensor_init,    device_init,
      buffer_init, operator_init,  plan_init,    functions_init, signature_init,
      calls_init,  torch_ops_init, xla_init,     add_exports};
  PyObject* module = PyModule_Create(&definition);
  for (size_t i = 0; module != NULL && i < sizeof parts / sizeof parts[0]; ++i)
    if (parts[i](module) != 0) Py_CLEAR(module);
  return module;
}
