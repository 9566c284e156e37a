/* Keys of calls: what an operator can depend on of tensors, and options, as bytes. */
#include "calls.h"

#include <string.h>

bool key_put(Key* key, const void* from, size_t size) {
  if (key->size + size > KEY_BYTES) return false;
  memcpy(key->bytes + key->size, from, size);
  key->size += size;
  return true;
}

bool key_put_text(Key* key, const char* text, int64_t size) {
  const int64_t words[2] = {6, size}, zero = 0;
  return key_put(key, words, sizeof words) && key_put(key, text, (size_t)size) &&
         key_put(key, &zero, (size_t)(-size & 7));
}

static bool put_tensor(Key* key, const DLTensor* x) {
  const int64_t head = (int64_t)x->device.type | (int64_t)x->device.id << 8 |
                       (int64_t)x->dtype.code << 24 | (int64_t)x->dtype.bits << 32 |
                       (int64_t)x->dtype.lanes << 40 | (int64_t)x->ndim << 56;
  const size_t size = (size_t)x->ndim * sizeof(int64_t);
  return x->strides != NULL && x->ndim <= MAX_DIMS && key_put(key, &head, sizeof head) &&
         key_put(key, x->shape, size) && key_put(key, x->strides, size);
}

/* A word of options in eight bytes; texts with their length before them. */
static bool put_option(Key* key, PyObject* option) {
  int64_t words[2] = {0, 0};
  if (option == Py_None || option == Py_True || option == Py_False) {
    words[0] = option == Py_None ? 1 : option == Py_True ? 2 : 3;
  } else if (PyFloat_CheckExact(option)) {
    const double number = PyFloat_AsDouble(option);
    words[0] = 4;
    memcpy(&words[1], &number, sizeof number);
  } else if (PyLong_CheckExact(option)) {
    words[0] = 5;
    words[1] = PyLong_AsLongLong(option);
    if (words[1] == -1 && PyErr_Occurred()) return PyErr_Clear(), false;
  } else if (PyUnicode_CheckExact(option)) {
    Py_ssize_t size;
    const char* const text = PyUnicode_AsUTF8AndSize(option, &size);
    if (text == NULL) return PyErr_Clear(), false;
    return key_put_text(key, text, size);
  } else {
    return false;
  }
  return key_put(key, words, sizeof words);
}

void key_finish(Key* key) {
  uint64_t hash = 0x9e3779b97f4a7c15u, word;
  for (size_t at = 0; at + 8 <= key->size; at += 8) {
    memcpy(&word, key->bytes + at, 8);
    hash = (hash ^ word) * 0xd6e8feb86659fd93u;
    hash ^= hash >> 32;
  }
  key->hash = hash;
}

bool calls_read(const Calls* self, PyObject* const* args, Py_ssize_t count, Key* key,
                void** addresses, const DLExchange** exchange) {
  key->size = 0;
  if (count < self->num_tensors) return false;
  for (int i = 0; i < self->num_tensors; ++i) {
    static const int64_t kAbsent = -1;
    addresses[i] = NULL;
    if (args[i] == Py_None) {
      if (!key_put(key, &kAbsent, sizeof kAbsent)) return false;
      continue;
    }
    PyTypeObject* const type = Py_TYPE(args[i]);
    if (type != self->plain[0] && type != self->plain[1]) return false;
    Tensor tensor;
    if (!tensor_read(args[i], "", &tensor)) return PyErr_Clear(), false;
    addresses[i] = tensor_address(&tensor);
    if (*exchange == NULL) *exchange = tensor.exchange;
    const bool is_put = tensor.exchange != NULL && put_tensor(key, &tensor.dl);
    tensor_release(&tensor);
    if (!is_put) return false;
  }
  for (Py_ssize_t i = self->num_tensors; i < count; ++i)
    if (!put_option(key, args[i])) return false;
  key_finish(key);
  return true;
}
