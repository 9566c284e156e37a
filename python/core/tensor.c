/* Tensors of every library: by DLPack's table of C functions, numpy's description of an array,
 * a DLPack capsule, or the buffer protocol, in this order. */
#include "core.h"

#include <string.h>

/* ---- the table of C functions, which is found once for each type */

typedef struct KnownType {
  PyTypeObject* type; /* a reference: the type stays */
  const DLExchange* exchange;
} KnownType;

static KnownType known_types[16];

static const DLExchange* ask_for_exchange(PyTypeObject* type) {
  PyObject* const capsule = PyObject_GetAttrString((PyObject*)type, "__dlpack_c_exchange_api__");
  const DLExchange* table = NULL;
  if (capsule != NULL && PyCapsule_IsValid(capsule, "dlpack_exchange_api"))
    table = PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
  while (table != NULL && table->version.major != 1) table = table->older;
  Py_XDECREF(capsule);
  PyErr_Clear();
  return table != NULL && table->borrow != NULL ? table : NULL;
}

static const DLExchange* exchange_of(PyTypeObject* type) {
  const int size = sizeof known_types / sizeof known_types[0];
  int i = 0;
  for (; i < size && known_types[i].type != NULL; ++i)
    if (known_types[i].type == type) return known_types[i].exchange;
  const DLExchange* const exchange = ask_for_exchange(type);
  if (exchange != NULL && i < size) {
    known_types[i] = (KnownType){type, exchange};
    Py_INCREF(type);
  }
  return exchange;
}

/* ---- numpy: x.__array_interface__, with the name of x.dtype, which knows bf16 */

static bool read_dims(PyObject* tuple, int64_t* dims, int32_t* ndim) {
  const Py_ssize_t size = PyTuple_Check(tuple) ? PyTuple_Size(tuple) : MAX_DIMS + 1;
  if (size > MAX_DIMS) return false;
  for (Py_ssize_t i = 0; i < size; ++i) {
    dims[i] = PyLong_AsLongLong(PyTuple_GetItem(tuple, i));
    if (dims[i] == -1 && PyErr_Occurred()) return false;
  }
  *ndim = (int32_t)size;
  return true;
}

/* Bytes become elements. */
static bool read_strides(PyObject* strides, Tensor* tensor) {
  int32_t ndim = tensor->dl.ndim;
  if (strides == NULL || strides == Py_None) return true;
  tensor->dl.strides = tensor->dims + MAX_DIMS;
  if (!read_dims(strides, tensor->dl.strides, &ndim) || ndim != tensor->dl.ndim) return false;
  const int64_t size = (int64_t)dtype_bytes(tensor->dl.dtype, 1);
  for (int32_t i = 0; i < ndim; ++i) {
    if (tensor->dl.strides[i] % size != 0) return false;
    tensor->dl.strides[i] /= size;
  }
  return true;
}

static bool read_interface(PyObject* interface, Tensor* tensor) {
  PyObject* const data = PyDict_GetItemString(interface, "data");
  PyObject* const shape = PyDict_GetItemString(interface, "shape");
  PyObject* const typestr = PyDict_GetItemString(interface, "typestr");
  const char* const order = typestr ? PyUnicode_AsUTF8AndSize(typestr, NULL) : NULL;
  if (data == NULL || shape == NULL || order == NULL || *order == '>') return false;
  if (!PyTuple_Check(data) || PyTuple_Size(data) != 2) return false;
  tensor->dl.data = PyLong_AsVoidPtr(PyTuple_GetItem(data, 0));
  if (PyErr_Occurred()) return false;
  tensor->is_read_only = PyObject_IsTrue(PyTuple_GetItem(data, 1)) != 0;
  tensor->dl.shape = tensor->dims;
  return read_dims(shape, tensor->dims, &tensor->dl.ndim) &&
         read_strides(PyDict_GetItemString(interface, "strides"), tensor);
}

/* An attribute, or NULL without an exception. */
static PyObject* attribute(PyObject* object, const char* name) {
  PyObject* const found = PyObject_GetAttrString(object, name);
  if (found == NULL) PyErr_Clear();
  return found;
}

static bool read_array(PyObject* object, Tensor* tensor) {
  PyObject* const interface = attribute(object, "__array_interface__");
  PyObject* const dtype = interface == NULL ? NULL : attribute(object, "dtype");
  bool is_read = dtype != NULL && PyDict_Check(interface) &&
                 dtype_from_object(dtype, &tensor->dl.dtype) && read_interface(interface, tensor);
  if (is_read) tensor->owner = Py_NewRef(object);
  Py_XDECREF(interface);
  Py_XDECREF(dtype);
  PyErr_Clear();
  return is_read;
}

/* ---- x.__dlpack__() */

/* Arrays of JAX are constants, and their capsules do not say so. */
static bool is_of_jax(PyObject* object) {
  PyObject* const module = attribute((PyObject*)Py_TYPE(object), "__module__");
  const char* const name =
      module != NULL && PyUnicode_Check(module) ? PyUnicode_AsUTF8AndSize(module, NULL) : NULL;
  const bool is_jax = name != NULL && strncmp(name, "jax", 3) == 0;
  Py_XDECREF(module);
  PyErr_Clear();
  return is_jax;
}

/* On a GPU without waiting for anything: the caller orders the streams. JAX knows no -1, which says
 * so, and waits on the legacy stream. */
static PyObject* ask_for_capsule(PyObject* object) {
  PyObject* const method = attribute(object, "__dlpack__");
  PyObject* const device =
      method == NULL ? NULL : PyObject_CallMethod(object, "__dlpack_device__", NULL);
  int type = 0, id = 0;
  PyObject* capsule = NULL;
  if (device != NULL && PyArg_ParseTuple(device, "ii", &type, &id)) {
    PyObject* const empty = PyTuple_New(0);
    PyObject* const kwargs = type == DL_CUDA && !is_of_jax(object)
                                 ? Py_BuildValue("{s(ii)si}", "max_version", 1, 3, "stream", -1)
                                 : Py_BuildValue("{s(ii)}", "max_version", 1, 3);
    if (empty != NULL && kwargs != NULL) capsule = PyObject_Call(method, empty, kwargs);
    if (capsule == NULL && PyErr_ExceptionMatches(PyExc_TypeError)) { /* before DLPack 1.0 */
      PyErr_Clear();
      capsule = PyObject_CallNoArgs(method);
    }
    Py_XDECREF(empty);
    Py_XDECREF(kwargs);
  }
  Py_XDECREF(device);
  Py_XDECREF(method);
  return capsule;
}

static bool read_capsule(PyObject* object, Tensor* tensor) {
  PyObject* const capsule = ask_for_capsule(object);
  PyErr_Clear();
  if (capsule == NULL) return false;
  if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
    const DLManagedTensorVersioned* const managed =
        PyCapsule_GetPointer(capsule, "dltensor_versioned");
    if (managed->version.major == 1) {
      tensor->dl = managed->tensor;
      tensor->is_read_only = (managed->flags & DL_READ_ONLY) != 0 || is_of_jax(object);
      tensor->owner = capsule;
      return true;
    }
  } else if (PyCapsule_IsValid(capsule, "dltensor")) {
    tensor->dl = ((const DLManagedTensor*)PyCapsule_GetPointer(capsule, "dltensor"))->tensor;
    tensor->is_read_only = is_of_jax(object);
    tensor->owner = capsule;
    return true;
  }
  Py_DECREF(capsule);
  return false;
}

/* ---- the buffer protocol */

static bool dtype_from_format(const char* format, Py_ssize_t size, DLDataType* dtype) {
  if (format == NULL) format = "B";
  if (strchr("@=<", *format) != NULL && *format != '\0') ++format;
  if (format[0] == '\0' || format[1] != '\0' || size < 1 || size > 8) return false;
  const uint8_t bits = (uint8_t)(8 * size);
  if (strchr("Bc", *format) != NULL || strchr("HILQN", *format) != NULL) {
    *dtype = (DLDataType){DL_UINT, bits, 1};
  } else if (strchr("bhilqn", *format) != NULL) {
    *dtype = (DLDataType){DL_INT, bits, 1};
  } else if (strchr("efd", *format) != NULL) {
    *dtype = (DLDataType){DL_FLOAT, bits, 1};
  } else if (*format == '?') {
    *dtype = (DLDataType){DL_BOOL, 8, 1};
  } else {
    return false;
  }
  return true;
}

static bool read_buffer(PyObject* object, Tensor* tensor) {
  BufferView* const view = &tensor->view;
  if (PyObject_GetBuffer(object, view, BUFFER_STRIDED_WITH_FORMAT) != 0) {
    PyErr_Clear();
    return false;
  }
  tensor->has_view = true;
  bool is_good =
      view->ndim <= MAX_DIMS && dtype_from_format(view->format, view->itemsize, &tensor->dl.dtype);
  for (int i = 0; is_good && i < view->ndim; ++i) {
    tensor->dims[i] = view->shape[i];
    tensor->dims[MAX_DIMS + i] = view->strides[i] / view->itemsize;
    is_good = view->strides[i] % view->itemsize == 0;
  }
  tensor->dl.data = view->buf;
  tensor->dl.ndim = view->ndim;
  tensor->dl.shape = tensor->dims;
  tensor->dl.strides = tensor->dims + MAX_DIMS;
  tensor->is_read_only = view->readonly != 0;
  if (!is_good) tensor_release(tensor);
  return is_good;
}

/* ---- all of them */

/* Whether extents and strides are numbers that bytes can be counted with. */
static bool is_sane(const DLTensor* tensor) {
  int64_t count = 1, reach, span = 0;
  if (tensor->ndim < 0 || (tensor->ndim > 0 && tensor->shape == NULL)) return false;
  for (int32_t i = 0; i < tensor->ndim; ++i) {
    const int64_t extent = tensor->shape[i];
    if (extent < 0 || __builtin_mul_overflow(count, extent, &count)) return false;
    if (tensor->strides == NULL || extent == 0) continue;
    const int64_t stride = tensor->strides[i];
    if (stride == INT64_MIN) return false;
    if (__builtin_mul_overflow(extent - 1, stride < 0 ? -stride : stride, &reach)) return false;
    if (__builtin_add_overflow(span, reach, &span)) return false;
  }
  return count < INT64_MAX / 64 && span < INT64_MAX / 64;
}

/* Libraries that have a table of C functions are believed; anybody may say anything of an object
 * that answers in Python. */
static bool read_carefully(PyObject* object, Tensor* tensor) {
  if (!read_array(object, tensor) && !read_capsule(object, tensor) && !read_buffer(object, tensor))
    return false;
  if (is_sane(&tensor->dl)) return true;
  tensor_release(tensor);
  return false;
}

static void begin(Tensor* tensor) {
  tensor->dl.device = (DLDevice){DL_CPU, 0};
  tensor->dl.strides = NULL;
  tensor->dl.byte_offset = 0;
  tensor->is_read_only = false;
  tensor->exchange = NULL;
  tensor->owner = NULL;
  tensor->has_view = false;
}

static bool complain(PyObject* object, const char* name) {
  PyObject* const type = PyObject_GetAttrString((PyObject*)Py_TYPE(object), "__name__");
  if (type != NULL)
    PyErr_Format(PyExc_TypeError,
                 "%s is a %U; expected a tensor: PyTorch, CuPy, JAX or numpy, a tilewright.Buffer, "
                 "an address (int), or None",
                 name, type);
  Py_XDECREF(type);
  return false;
}

bool tensor_read(PyObject* object, const char* name, Tensor* tensor) {
  begin(tensor);
  PyTypeObject* const type = Py_TYPE(object);
  tensor->exchange = exchange_of(type);
  if (tensor->exchange != NULL) return tensor->exchange->borrow(object, &tensor->dl) == 0;
  if (type == buffer_type) {
    tensor->dl = ((Buffer*)object)->tensor;
    return true;
  }
  if (PyUnicode_Check(object) || PyType_Check(object)) return complain(object, name);
  return read_carefully(object, tensor) || complain(object, name);
}

void tensor_release(Tensor* tensor) {
  Py_CLEAR(tensor->owner);
  if (tensor->has_view) PyBuffer_Release(&tensor->view);
  tensor->has_view = false;
}

size_t tensor_bytes(const Tensor* tensor) {
  size_t count = 1;
  for (int32_t i = 0; i < tensor->dl.ndim; ++i) count *= (size_t)tensor->dl.shape[i];
  return dtype_bytes(tensor->dl.dtype, count);
}

bool tensor_is_contiguous(const Tensor* tensor) {
  if (tensor->dl.strides == NULL) return true;
  int64_t stride = 1;
  for (int32_t i = tensor->dl.ndim - 1; i >= 0; --i) {
    if (tensor->dl.shape[i] != 1 && tensor->dl.strides[i] != stride) return false;
    stride *= tensor->dl.shape[i];
  }
  return true;
}

/* ---- what messages and Python see */

PyObject* tuple_of(const int64_t* numbers, int32_t count) {
  PyObject* tuple = PyTuple_New(count);
  for (int32_t i = 0; tuple != NULL && i < count; ++i) {
    PyObject* const number = PyLong_FromLongLong(numbers[i]);
    if (number == NULL || PyTuple_SetItem(tuple, i, number) != 0) Py_CLEAR(tuple);
  }
  return tuple;
}

static PyObject* strides_of(const Tensor* tensor) {
  if (tensor->dl.strides != NULL) return tuple_of(tensor->dl.strides, tensor->dl.ndim);
  int64_t strides[MAX_DIMS], stride = 1;
  if (tensor->dl.ndim > MAX_DIMS) return PyTuple_New(0);
  for (int32_t i = tensor->dl.ndim - 1; i >= 0; --i) {
    strides[i] = stride;
    stride *= tensor->dl.shape[i];
  }
  return tuple_of(strides, tensor->dl.ndim);
}

static PyObject* place_of(const Tensor* tensor, PyObject* object) {
  if (tensor_is_on_host(tensor)) return PyUnicode_FromString("host");
  if (Py_TYPE(object) == buffer_type) return Py_NewRef(((Buffer*)object)->device->spec);
  return PyUnicode_FromFormat("cuda:%d", (int)tensor->dl.device.id);
}

PyObject* tensor_describe(const Tensor* tensor, PyObject* object) {
  PyObject* const type = PyObject_GetAttrString((PyObject*)Py_TYPE(object), "__name__");
  PyObject* const shape = tuple_of(tensor->dl.shape, tensor->dl.ndim);
  PyObject* const strides = strides_of(tensor);
  PyObject* const place = place_of(tensor, object);
  PyObject* text = NULL;
  if (type != NULL && shape != NULL && strides != NULL && place != NULL)
    text = PyUnicode_FromFormat("a %U, %s %R, strides %R, on %U", type,
                                dtype_word(tensor->dl.dtype), shape, strides, place);
  Py_XDECREF(type);
  Py_XDECREF(shape);
  Py_XDECREF(strides);
  Py_XDECREF(place);
  return text;
}

/* The part of memory that a tensor's elements lie in: its first byte, and bytes. */
static void span_of(const Tensor* tensor, uintptr_t* begin_of, size_t* bytes) {
  int64_t first = 0, last = 0;
  bool is_empty = false;
  for (int32_t i = 0; i < tensor->dl.ndim; ++i) {
    is_empty |= tensor->dl.shape[i] == 0;
    if (tensor->dl.strides == NULL) continue;
    const int64_t reach = (tensor->dl.shape[i] - 1) * tensor->dl.strides[i];
    first += reach < 0 ? reach : 0;
    last += reach > 0 ? reach : 0;
  }
  const int64_t size = (int64_t)dtype_bytes(tensor->dl.dtype, 1);
  *begin_of = (uintptr_t)tensor_address(tensor) + (uintptr_t)(first * size);
  *bytes = is_empty                     ? 0
           : tensor->dl.strides == NULL ? tensor_bytes(tensor)
                                        : (size_t)((last - first + 1) * size);
}

size_t tensor_bytes_behind(const Tensor* tensor) {
  if (tensor->dl.strides == NULL) return tensor_bytes(tensor);
  uintptr_t first;
  size_t bytes;
  span_of(tensor, &first, &bytes);
  return bytes - ((uintptr_t)tensor_address(tensor) - first);
}

static PyObject* view(PyObject* self, PyObject* object) {
  (void)self;
  Tensor tensor;
  if (!tensor_read(object, "view", &tensor)) return NULL;
  uintptr_t first;
  size_t bytes;
  span_of(&tensor, &first, &bytes);
  PyObject* const found = Py_BuildValue(
      "{sNsNsNsssNsNsksnsN}", "address", PyLong_FromVoidPtr(tensor_address(&tensor)), "shape",
      tuple_of(tensor.dl.shape, tensor.dl.ndim), "strides", strides_of(&tensor), "dtype",
      dtype_word(tensor.dl.dtype), "place", place_of(&tensor, object), "is_read_only",
      PyBool_FromLong(tensor.is_read_only), "begin", (unsigned long)first, "bytes",
      (Py_ssize_t)bytes, "is_contiguous", PyBool_FromLong(tensor_is_contiguous(&tensor)));
  tensor_release(&tensor);
  return found;
}

static PyObject* describe(PyObject* self, PyObject* object) {
  (void)self;
  Tensor tensor;
  if (!tensor_read(object, "tensor", &tensor)) return NULL;
  PyObject* const text = tensor_describe(&tensor, object);
  tensor_release(&tensor);
  return text;
}

static PyObject* host_bytes(PyObject* self, PyObject* args) {
  (void)self;
  PyObject* address;
  Py_ssize_t bytes;
  if (!PyArg_ParseTuple(args, "On:host_bytes", &address, &bytes)) return NULL;
  char* const at = PyLong_AsVoidPtr(address);
  if (at == NULL && !PyErr_Occurred()) raise_invalid("a tensor without memory: it has been freed");
  return at == NULL ? NULL : PyMemoryView_FromMemory(at, bytes, BUFFER_WRITE);
}

static PyMethodDef functions[] = {
    {"describe", describe, METH_O,
     "describe(tensor, /)\n--\n\nThe words of messages: \"a Tensor, bf16 (2, 3), strides (3, 1), "
     "on "
     "cuda:0\"."},
    {"host_bytes", host_bytes, METH_VARARGS,
     "host_bytes(address, bytes, /)\n--\n\nA memoryview of memory of the host."},
    {"view", view, METH_O,
     "view(tensor, /)\n--\n\n"
     "Where a tensor of any library lies, as a dict: address, shape, strides (elements), dtype, "
     "place,\nis_read_only, is_contiguous; begin and bytes of the memory that its elements span."},
    {NULL, NULL, 0, NULL}};

int tensor_init(PyObject* module) {
  return PyModule_AddFunctions(module, functions);
}
