/* tilewright.Device */
#include "core.h"

PyTypeObject* device_type;

/* What cuCtxGetDevice() says of the context of the device; -1 if the driver does not tell. */
static int32_t ordinal_of(tw_device* handle) {
  typedef int (*Push)(void* context);
  typedef int (*Pop)(void** context);
  typedef int (*Get)(int* device);
  const Push push = (Push)tw_device_driver_function(handle, "cuCtxPushCurrent_v2");
  const Pop pop = (Pop)tw_device_driver_function(handle, "cuCtxPopCurrent_v2");
  const Get get = (Get)tw_device_driver_function(handle, "cuCtxGetDevice");
  if (push == NULL || pop == NULL || get == NULL) return -1;
  if (push(tw_device_context(handle)) != 0) return -1;
  int ordinal = -1;
  void* context;
  if (get(&ordinal) != 0) ordinal = -1;
  pop(&context);
  return ordinal;
}

static PyObject* device_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static char* names[] = {"spec", NULL};
  const char* spec = "auto";
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|s:Device", names, &spec)) return NULL;
  if (!is_usable()) return NULL;
  status_watch_forks();
  tw_device* handle = NULL;
  tw_status status;
  Py_BEGIN_ALLOW_THREADS;
  status = tw_device_open(spec, &handle);
  Py_END_ALLOW_THREADS;
  if (status != TW_OK) return raise_status(status, NULL);
  const allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
  Device* self = (Device*)allocate(type, 0);
  if (self == NULL) {
    tw_device_close(handle);
    return NULL;
  }
  self->handle = handle;
  self->context = tw_device_context(handle);
  self->ordinal = tw_device_is_simulated(handle) ? -1 : ordinal_of(handle);
  self->spec = self->ordinal >= 0 ? PyUnicode_FromFormat("cuda:%d", (int)self->ordinal)
                                  : PyUnicode_FromString(spec);
  if (self->spec == NULL) Py_CLEAR(self);
  return (PyObject*)self;
}

static void device_dealloc(PyObject* object) {
  Device* const self = (Device*)object;
  PyTypeObject* const type = Py_TYPE(object);
  if (!is_exiting() && !is_child_of_fork()) tw_device_close(self->handle);
  Py_XDECREF(self->spec);
  ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
  Py_DECREF(type);
}

Device* as_device(PyObject* object) {
  if (!PyObject_TypeCheck(object, device_type)) {
    PyErr_Format(PyExc_TypeError, "expected a tilewright.Device, got %R", object);
    return NULL;
  }
  if (!is_usable()) return NULL;
  if (((Device*)object)->handle != NULL) return (Device*)object;
  raise_invalid("%R is closed", object);
  return NULL;
}

static PyObject* device_repr(PyObject* object) {
  return PyUnicode_FromFormat("tilewright.Device(%R)", ((Device*)object)->spec);
}

static PyObject* device_reduce(PyObject* object, PyObject* unused) {
  (void)unused;
  return Py_BuildValue("O(O)", Py_TYPE(object), ((Device*)object)->spec);
}

static PyObject* device_synchronize(PyObject* object, PyObject* unused) {
  (void)unused;
  Device* const self = as_device(object);
  if (self == NULL) return NULL;
  tw_status status;
  Py_BEGIN_ALLOW_THREADS;
  status = tw_device_synchronize(self->handle);
  Py_END_ALLOW_THREADS;
  if (status != TW_OK) return raise_status(status, NULL);
  Py_RETURN_NONE;
}

static PyObject* device_close(PyObject* object, PyObject* unused) {
  (void)unused;
  Device* const self = (Device*)object;
  if (!is_usable()) return NULL;
  tw_device_close(self->handle);
  self->handle = NULL;
  Py_RETURN_NONE;
}

static PyObject* device_enter(PyObject* object, PyObject* unused) {
  (void)unused;
  return as_device(object) == NULL ? NULL : Py_NewRef(object);
}

static PyObject* device_exit(PyObject* object, PyObject* unused) {
  (void)unused;
  return device_close(object, NULL);
}

static PyObject* device_driver_function(PyObject* object, PyObject* name) {
  Device* const self = as_device(object);
  const char* const text = self == NULL ? NULL : PyUnicode_AsUTF8AndSize(name, NULL);
  if (text == NULL) return NULL;
  void* const function = tw_device_driver_function(self->handle, text);
  if (function == NULL) Py_RETURN_NONE;
  return PyLong_FromVoidPtr(function);
}

static PyObject* get_description(PyObject* object, void* unused) {
  (void)unused;
  Device* const self = as_device(object);
  return self == NULL ? NULL : PyUnicode_FromString(tw_device_description(self->handle));
}

static PyObject* get_is_simulated(PyObject* object, void* unused) {
  (void)unused;
  Device* const self = as_device(object);
  return self == NULL ? NULL : PyBool_FromLong(tw_device_is_simulated(self->handle));
}

static PyObject* get_can_run(PyObject* object, void* unused) {
  (void)unused;
  Device* const self = as_device(object);
  return self == NULL ? NULL : PyBool_FromLong(tw_device_can_run(self->handle));
}

static PyObject* get_context(PyObject* object, void* unused) {
  (void)unused;
  Device* const self = as_device(object);
  return self == NULL ? NULL : PyLong_FromVoidPtr(tw_device_context(self->handle));
}

static PyObject* get_spec(PyObject* object, void* unused) {
  (void)unused;
  return Py_NewRef(((Device*)object)->spec);
}

static PyObject* get_ordinal(PyObject* object, void* unused) {
  (void)unused;
  if (((Device*)object)->ordinal < 0) Py_RETURN_NONE;
  return PyLong_FromLong(((Device*)object)->ordinal);
}

static PyMethodDef methods[] = {
    {"synchronize", device_synchronize, METH_NOARGS, "Waits for all work on the device."},
    {"close", device_close, METH_NOARGS, "Operators made on the device stay valid."},
    {"driver_function", device_driver_function, METH_O,
     "driver_function(name, /)\n--\n\n"
     "The address of a function of its driver (\"cuMemAlloc_v2\"), None if the driver lacks it."},
    {"__enter__", device_enter, METH_NOARGS, NULL},
    {"__exit__", device_exit, METH_VARARGS, NULL},
    {"__reduce__", device_reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL}};

static PyGetSetDef attributes[] = {
    {"description", get_description, NULL, "Name, compute capability, SMs, memory, driver.", NULL},
    {"is_simulated", get_is_simulated, NULL,
     "Whether kernels run on the CPU; their time then says nothing about a GPU.", NULL},
    {"can_run", get_can_run, NULL, "Whether kernels can be launched; \"plan:h200\" plans alone.",
     NULL},
    {"context", get_context, NULL, "Its CUcontext, as an int.", NULL},
    {"spec", get_spec, NULL, "\"cuda:0\", \"sim:h200\"", NULL},
    {"ordinal", get_ordinal, NULL, "N of cuda:N; None if it is simulated.", NULL},
    {NULL, NULL, NULL, NULL, NULL}};

static PyType_Slot slots[] = {
    {Py_tp_doc,
     "Device(spec='auto')\n--\n\n"
     "\"auto\", \"cuda\", \"cuda:N\", \"sim:h200\", \"sim:b200\", \"sim:b300\", and to plan alone "
     "\"plan:h200\", ...; \"auto\" is what\nTILEWRIGHT_DEVICE says, else a GPU if there is one. "
     "The primary context is used: addresses "
     "and streams of PyTorch,\nCuPy, ... can be passed as they are."},
    {Py_tp_new, device_new},
    {Py_tp_dealloc, device_dealloc},
    {Py_tp_repr, device_repr},
    {Py_tp_methods, methods},
    {Py_tp_getset, attributes},
    {0, NULL}};
static PyType_Spec spec = {"tilewright.Device", sizeof(Device), 0, Py_TPFLAGS_DEFAULT, slots};

int device_init(PyObject* module) {
  device_type = (PyTypeObject*)PyType_FromModuleAndSpec(module, &spec, NULL);
  return device_type == NULL ? -1 : PyModule_AddType(module, device_type);
}
