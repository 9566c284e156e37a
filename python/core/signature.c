/* _core.signature(): what an operator can depend on of tensors, as a key of a table of them. */
#include "core.h"

#include <string.h>

enum { MAX_TENSORS = 24, DIMS_IN_KEY = 8 };

typedef struct Key {
  char bytes[MAX_TENSORS * (16 + 2 * DIMS_IN_KEY * sizeof(int64_t))];
  size_t size;
} Key;

static void put(Key* key, const void* from, size_t size) {
  memcpy(key->bytes + key->size, from, size);
  key->size += size;
}

static void put_tensor(Key* key, const DLTensor* x) {
  const int32_t head[4] = {x->device.type, x->device.id,
                           x->dtype.code << 24 | x->dtype.bits << 16 | x->dtype.lanes, x->ndim};
  const size_t size = (size_t)x->ndim * sizeof(int64_t);
  put(key, head, sizeof head);
  put(key, x->shape, size);
  if (x->strides != NULL) put(key, x->strides, size);
}

static PyObject* signature(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  (void)self;
  Key key;
  key.size = 0;
  if (count > MAX_TENSORS)
    return raise_invalid("signature: %zd tensors; at most %d", count, (int)MAX_TENSORS);
  for (Py_ssize_t i = 0; i < count; ++i) {
    static const int32_t kAbsent = -1;
    Tensor tensor;
    if (args[i] == Py_None) {
      put(&key, &kAbsent, sizeof kAbsent);
      continue;
    }
    if (!tensor_read(args[i], "signature", &tensor)) return NULL;
    const int32_t dims = tensor.dl.ndim;
    if (dims <= DIMS_IN_KEY) put_tensor(&key, &tensor.dl);
    tensor_release(&tensor);
    if (dims > DIMS_IN_KEY)
      return raise_invalid("signature: a tensor of %d dimensions; at most %d", (int)dims,
                           (int)DIMS_IN_KEY);
  }
  return PyBytes_FromStringAndSize(key.bytes, (Py_ssize_t)key.size);
}

static PyMethodDef functions[] = {
    {"signature", (PyCFunction)(void*)signature, METH_FASTCALL,
     "signature(*tensors)\n--\n\nDevice, type, shape and strides of each tensor or None, as "
     "bytes."},
    {NULL, NULL, 0, NULL},
};

int signature_init(PyObject* module) {
  return PyModule_AddFunctions(module, functions);
}
