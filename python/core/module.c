/* tilewright._core: the C interface of libtilewright.so for Python. */
#include "core.h"

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "tilewright._core",
    .m_doc = "The C interface of libtilewright.so: devices, buffers, operators.",
    .m_size = -1, /* the library has one state for the process, and so has this */
};

static int add_version(PyObject* module) {
  return PyModule_AddStringConstant(module, "__version__", tw_version()) != 0 ||
                 PyModule_AddStringConstant(module, "COMMIT", tw_commit()) != 0
             ? -1
             : 0;
}

PyMODINIT_FUNC PyInit__core(void) {
  static int (*const parts[])(PyObject*) = {add_version,   status_init,   structs_init,
                                            tensor_init,   device_init,   buffer_init,
                                            operator_init, functions_init};
  PyObject* module = PyModule_Create(&definition);
  for (size_t i = 0; module != NULL && i < sizeof parts / sizeof parts[0]; ++i)
    if (parts[i](module) != 0) Py_CLEAR(module);
  return module;
}
