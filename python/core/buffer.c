/* tilewright.Buffer: memory of a device with a shape and a type of elements. */
#include "core.h"

#include <stdlib.h>
#include <string.h>

PyTypeObject* buffer_type;

/* One extent, or a sequence of them. */
static bool read_shape(PyObject* object, Buffer* self) {
  PyObject* shape = PyLong_Check(object) ? PyTuple_Pack(1, object) : PySequence_Tuple(object);
  if (shape == NULL) return false;
  const Py_ssize_t ndim = PyTuple_Size(shape);
  bool is_good = ndim <= MAX_DIMS;
  if (!is_good) raise_invalid("shape %R has %zd dimensions; at most %d", object, ndim, MAX_DIMS);
  for (Py_ssize_t i = 0; is_good && i < ndim; ++i) {
    self->shape[i] = PyLong_AsLongLong(PyTuple_GetItem(shape, i));
    is_good = self->shape[i] >= 0;
    if (!is_good && !PyErr_Occurred()) raise_invalid("shape %R has a negative extent", object);
  }
  Py_DECREF(shape);
  self->tensor.ndim = (int32_t)ndim;
  self->tensor.shape = self->shape;
  return is_good;
}

/* Bytes of the buffer; false with an exception if there are more than an address counts. */
static bool count_bytes(const Buffer* self, size_t* bytes) {
  size_t count = 1;
  bool is_too_large = false;
  for (int i = 0; i < self->tensor.ndim; ++i)
    is_too_large |= __builtin_mul_overflow(count, (size_t)self->shape[i], &count);
  if (is_too_large || count > SIZE_MAX / 16 / 8) {
    PyErr_SetString(PyExc_MemoryError, "tilewright.Buffer: more bytes than an address can count");
    return false;
  }
  *bytes = dtype_bytes(self->tensor.dtype, count);
  return true;
}

static bool allocate(Buffer* self, PyObject* device, PyObject* shape, PyObject* dtype) {
  Device* const on = as_device(device);
  size_t bytes = 0;
  if (on == NULL || !read_shape(shape, self)) return false;
  self->tensor.dtype = (DLDataType){DL_UINT, 8, 1};
  if (dtype != NULL && !dtype_from_object(dtype, &self->tensor.dtype)) return false;
  if (!count_bytes(self, &bytes)) return false;
  const tw_status status = tw_buffer_create(on->handle, bytes, &self->handle);
  if (status != TW_OK) raise_status(status, NULL);
  self->device = (Device*)Py_NewRef(device);
  self->tensor.data = tw_buffer_data(self->handle);
  self->tensor.device = (DLDevice){DL_CUDA, on->ordinal};
  return status == TW_OK;
}

static PyObject* buffer_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static char* names[] = {"device", "shape", "dtype", NULL};
  PyObject *device, *shape, *dtype = NULL;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|O:Buffer", names, &device, &shape, &dtype))
    return NULL;
  Buffer* self = (Buffer*)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
  if (self != NULL && !allocate(self, device, shape, dtype)) Py_CLEAR(self);
  return (PyObject*)self;
}

static void buffer_dealloc(PyObject* object) {
  Buffer* const self = (Buffer*)object;
  PyTypeObject* const type = Py_TYPE(object);
  if (!is_exiting() && !is_child_of_fork()) tw_buffer_destroy(self->handle);
  Py_XDECREF(self->device);
  ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
  Py_DECREF(type);
}

static PyObject* buffer_repr(PyObject* object) {
  const Buffer* const self = (Buffer*)object;
  PyObject* const shape = tuple_of(self->shape, self->tensor.ndim);
  if (shape == NULL) return NULL;
  PyObject* const text = PyUnicode_FromFormat(
      "<tilewright.Buffer %s %R on %U>", dtype_word(self->tensor.dtype), shape, self->device->spec);
  Py_DECREF(shape);
  return text;
}

static PyObject* buffer_upload(PyObject* object, PyObject* args, PyObject* kwargs) {
  static char* names[] = {"source", "offset", NULL};
  Buffer* const self = (Buffer*)object;
  PyObject* source;
  Py_ssize_t offset = 0;
  Tensor from;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|n:upload", names, &source, &offset) ||
      !is_usable() || !tensor_read(source, "source", &from))
    return NULL;
  PyObject* done = NULL;
  if (!tensor_is_on_host(&from) || !tensor_is_contiguous(&from)) {
    PyObject* const found = tensor_describe(&from, source);
    if (found != NULL) raise_invalid("source is %U; expected contiguous host memory", found);
    Py_XDECREF(found);
  } else if (offset < 0) {
    raise_invalid("offset = %zd; expected 0 or more", offset);
  } else {
    tw_status status;
    Py_BEGIN_ALLOW_THREADS;
    status =
        tw_buffer_upload(self->handle, (size_t)offset, tensor_address(&from), tensor_bytes(&from));
    Py_END_ALLOW_THREADS;
    done = status == TW_OK ? Py_NewRef(Py_None) : raise_status(status, NULL);
  }
  tensor_release(&from);
  return done;
}

static PyObject* buffer_download(PyObject* object, PyObject* args, PyObject* kwargs) {
  static char* names[] = {"offset", "size", NULL};
  Buffer* const self = (Buffer*)object;
  Py_ssize_t offset = 0, size = -1;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|nn:download", names, &offset, &size) ||
      !is_usable())
    return NULL;
  const Py_ssize_t all = (Py_ssize_t)tw_buffer_size_bytes(self->handle);
  if (offset < 0 || offset > all || size < -1 || size > all - offset)
    return raise_invalid("offset = %zd, size = %zd; the buffer has %zd bytes", offset, size, all);
  if (size == -1) size = all - offset;
  PyObject* bytes = PyByteArray_FromStringAndSize(NULL, size);
  if (bytes == NULL) return NULL;
  tw_status status;
  char* const to = PyByteArray_AsString(bytes);
  Py_BEGIN_ALLOW_THREADS;
  status = tw_buffer_download(self->handle, (size_t)offset, to, (size_t)size);
  Py_END_ALLOW_THREADS;
  if (status == TW_OK) return bytes;
  Py_DECREF(bytes);
  return raise_status(status, NULL);
}

static PyObject* buffer_fill(PyObject* object, PyObject* value) {
  const long byte = PyLong_AsLong(value);
  if (byte == -1 && PyErr_Occurred()) return NULL;
  if (byte < 0 || byte > 255) return raise_invalid("value = %ld; expected a byte", byte);
  if (!is_usable()) return NULL;
  const tw_status status = tw_buffer_fill(((Buffer*)object)->handle, (unsigned char)byte);
  return status == TW_OK ? Py_NewRef(Py_None) : raise_status(status, NULL);
}

static PyObject* buffer_numpy(PyObject* object, PyObject* unused) {
  (void)unused;
  PyObject* const module = PyImport_ImportModule("tilewright._hosts");
  PyObject* const array =
      module == NULL ? NULL : PyObject_CallMethod(module, "to_numpy", "O", object);
  Py_XDECREF(module);
  return array;
}

/* ---- DLPack */

typedef struct Export {
  DLManagedTensorVersioned managed; /* the old form has its tensor at the front */
  DLManagedTensor old;
  PyObject* owner;
} Export;

static void drop_export(Export* made) {
  const PyGILState_STATE gil = PyGILState_Ensure();
  Py_DECREF(made->owner);
  PyGILState_Release(gil);
  free(made);
}

static void delete_managed(DLManagedTensorVersioned* managed) {
  drop_export(managed->context);
}

static void delete_old(DLManagedTensor* managed) {
  drop_export(managed->context);
}

/* Of a capsule that nobody took. */
static void drop_capsule(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
    delete_managed(PyCapsule_GetPointer(capsule, "dltensor_versioned"));
  } else if (PyCapsule_IsValid(capsule, "dltensor")) {
    delete_old(PyCapsule_GetPointer(capsule, "dltensor"));
  }
}

/* Whether max_version=(major, minor) asks for the form with a version. */
static bool wants_version(PyObject* max_version) {
  PyObject* const major =
      max_version == NULL || max_version == Py_None ? NULL : PySequence_GetItem(max_version, 0);
  const long number = major == NULL ? 0 : PyLong_AsLong(major);
  Py_XDECREF(major);
  return number >= 1;
}

static PyObject* buffer_dlpack(PyObject* object, PyObject* args, PyObject* kwargs) {
  static char* names[] = {"stream", "max_version", "dl_device", "copy", NULL};
  Buffer* const self = (Buffer*)object;
  PyObject *stream = NULL, *max_version = NULL, *device = NULL, *copy = NULL;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOOO:__dlpack__", names, &stream, &max_version,
                                   &device, &copy))
    return NULL;
  if (self->device->ordinal < 0) {
    PyErr_SetString(PyExc_BufferError,
                    "memory of a simulated device has addresses of its own; "
                    "buffer.numpy() copies it to the host");
    return NULL;
  }
  const bool is_versioned = wants_version(max_version);
  if (PyErr_Occurred()) return NULL;
  Export* const made = calloc(1, sizeof *made);
  if (made == NULL) return PyErr_NoMemory();
  made->managed = (DLManagedTensorVersioned){{1, 1}, made, delete_managed, 0, self->tensor};
  made->old = (DLManagedTensor){self->tensor, made, delete_old};
  made->owner = Py_NewRef(object);
  PyObject* const capsule = is_versioned
                                ? PyCapsule_New(&made->managed, "dltensor_versioned", drop_capsule)
                                : PyCapsule_New(&made->old, "dltensor", drop_capsule);
  if (capsule == NULL) drop_export(made);
  return capsule;
}

static PyObject* buffer_dlpack_device(PyObject* object, PyObject* unused) {
  (void)unused;
  const int32_t ordinal = ((Buffer*)object)->device->ordinal;
  return Py_BuildValue("ii", ordinal < 0 ? 12 : DL_CUDA, ordinal < 0 ? 0 : (int)ordinal);
}

static PyObject* get_address(PyObject* object, void* unused) {
  (void)unused;
  return PyLong_FromVoidPtr(((Buffer*)object)->tensor.data);
}

static PyObject* get_nbytes(PyObject* object, void* unused) {
  (void)unused;
  return PyLong_FromSize_t(tw_buffer_size_bytes(((Buffer*)object)->handle));
}

static PyObject* get_shape(PyObject* object, void* unused) {
  (void)unused;
  return tuple_of(((Buffer*)object)->shape, ((Buffer*)object)->tensor.ndim);
}

static PyObject* get_dtype(PyObject* object, void* unused) {
  (void)unused;
  return PyUnicode_FromString(dtype_word(((Buffer*)object)->tensor.dtype));
}

static PyObject* get_device(PyObject* object, void* unused) {
  (void)unused;
  return Py_NewRef(((Buffer*)object)->device);
}

static PyMethodDef methods[] = {
    {"upload", (PyCFunction)(void*)buffer_upload, METH_VARARGS | METH_KEYWORDS,
     "upload($self, /, source, offset=0)\n--\n\n"
     "Copies contiguous host memory (numpy, PyTorch, bytes, ...) to `offset` bytes."},
    {"download", (PyCFunction)(void*)buffer_download, METH_VARARGS | METH_KEYWORDS,
     "download($self, /, offset=0, size=-1)\n--\n\nA bytearray of its bytes; -1: all behind "
     "offset."},
    {"fill", buffer_fill, METH_O,
     "fill($self, value, /)\n--\n\nEvery byte becomes `value`; 0xff makes a NaN of every number."},
    {"numpy", buffer_numpy, METH_NOARGS,
     "numpy($self, /)\n--\n\nA copy as a numpy array; bf16 and 8-bit types need ml_dtypes."},
    {"__dlpack__", (PyCFunction)(void*)buffer_dlpack, METH_VARARGS | METH_KEYWORDS, NULL},
    {"__dlpack_device__", buffer_dlpack_device, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL}};

static PyGetSetDef attributes[] = {
    {"address", get_address, NULL, "On the device, as an int; not for use by the host.", NULL},
    {"nbytes", get_nbytes, NULL, NULL, NULL},
    {"shape", get_shape, NULL, NULL, NULL},
    {"dtype", get_dtype, NULL, "Its word: \"bf16\".", NULL},
    {"device", get_device, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL}};

static PyType_Slot slots[] = {
    {Py_tp_doc,
     "Buffer(device, shape, dtype='u8')\n--\n\n"
     "Uninitialised memory of a device, contiguous, 256-byte aligned. PyTorch, CuPy, ... take it "
     "by\nDLPack if the device is a GPU; it is freed with the last reference."},
    {Py_tp_new, buffer_new},
    {Py_tp_dealloc, buffer_dealloc},
    {Py_tp_repr, buffer_repr},
    {Py_tp_methods, methods},
    {Py_tp_getset, attributes},
    {0, NULL}};
static PyType_Spec spec = {"tilewright.Buffer", sizeof(Buffer), 0, Py_TPFLAGS_DEFAULT, slots};

int buffer_init(PyObject* module) {
  buffer_type = (PyTypeObject*)PyType_FromModuleAndSpec(module, &spec, NULL);
  return buffer_type == NULL ? -1 : PyModule_AddType(module, buffer_type);
}
