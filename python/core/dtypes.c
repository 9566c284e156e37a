/* Words of element types. */
#include "core.h"

#include <string.h>

typedef struct Dtype {
  const char* word;
  const char* long_word; /* PyTorch's, numpy's and ml_dtypes' */
  DLDataType dtype;
} Dtype;

static const Dtype dtypes[] = {
    {"bf16", "bfloat16", {DL_BFLOAT, 16, 1}},
    {"f16", "float16", {DL_FLOAT, 16, 1}},
    {"f32", "float32", {DL_FLOAT, 32, 1}},
    {"f64", "float64", {DL_FLOAT, 64, 1}},
    {"e4m3", "float8_e4m3fn", {DL_E4M3FN, 8, 1}},
    {"e5m2", "float8_e5m2", {DL_E5M2, 8, 1}},
    {"e8m0", "float8_e8m0fnu", {DL_E8M0FNU, 8, 1}},
    {"e2m1x2", "float4_e2m1fn_x2", {DL_E2M1FN, 4, 2}},
    {"u8", "uint8", {DL_UINT, 8, 1}},
    {"u16", "uint16", {DL_UINT, 16, 1}},
    {"u32", "uint32", {DL_UINT, 32, 1}},
    {"u64", "uint64", {DL_UINT, 64, 1}},
    {"i8", "int8", {DL_INT, 8, 1}},
    {"i16", "int16", {DL_INT, 16, 1}},
    {"i32", "int32", {DL_INT, 32, 1}},
    {"i64", "int64", {DL_INT, 64, 1}},
    {"bool", "bool", {DL_BOOL, 8, 1}},
};
enum { NUM_DTYPES = sizeof dtypes / sizeof dtypes[0] };

const char* dtype_word(DLDataType dtype) {
  for (int i = 0; i < NUM_DTYPES; ++i)
    if (memcmp(&dtypes[i].dtype, &dtype, sizeof dtype) == 0) return dtypes[i].word;
  return "?";
}

size_t dtype_bytes(DLDataType dtype, size_t count) {
  return (count * dtype.bits * dtype.lanes + 7) / 8;
}

bool dtype_from_word(const char* word, DLDataType* dtype) {
  const char* const dot = strrchr(word, '.'); /* "torch.bfloat16" */
  if (dot != NULL) word = dot + 1;
  for (int i = 0; i < NUM_DTYPES; ++i) {
    if (strcmp(dtypes[i].word, word) != 0 && strcmp(dtypes[i].long_word, word) != 0) continue;
    *dtype = dtypes[i].dtype;
    return true;
  }
  return false;
}

/* The name that an object has for a type of elements: a string itself, the name of numpy's dtypes
 * and of scalar types, else what str() makes of it. A new string, or NULL with an exception. */
static PyObject* name_of(PyObject* object) {
  if (PyUnicode_Check(object)) return Py_NewRef(object);
  const char* const attribute = PyType_Check(object) ? "__name__" : "name";
  PyObject* name = PyObject_GetAttrString(object, attribute);
  if (name != NULL && PyUnicode_Check(name)) return name;
  Py_XDECREF(name);
  PyErr_Clear();
  return PyObject_Str(object);
}

bool dtype_from_object(PyObject* object, DLDataType* dtype) {
  PyObject* name = name_of(object);
  const char* const word = name == NULL ? NULL : PyUnicode_AsUTF8AndSize(name, NULL);
  const bool is_known = word != NULL && dtype_from_word(word, dtype);
  if (!is_known && word != NULL)
    raise_invalid(
        "dtype = %R; expected bf16, f16, f32, e4m3, e8m0, e2m1x2, u8, i32, ..., or a "
        "type of PyTorch, numpy or ml_dtypes with one of these",
        object);
  Py_XDECREF(name);
  return is_known;
}
