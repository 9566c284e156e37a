/* Structs of the C interface from Python's values, and back, by the table. */
#include "core.h"

#include <limits.h>
#include <string.h>

/* ---- messages: "Attention.run: window.pages is ..." */

static PyObject* place(const Fill* fill, const char* name) {
  return PyUnicode_FromFormat("%s: %s%s", fill->what, fill->prefix, name);
}

/* raise_invalid() or a TypeError with a format for what follows the name. Returns false. */
static bool refuse(const Fill* fill, const char* name, PyObject* type, PyObject* rest) {
  PyObject* const at = place(fill, name);
  if (at != NULL && rest != NULL) {
    if (type != NULL) {
      PyErr_Format(type, "%U %U", at, rest);
    } else {
      raise_invalid("%U %U", at, rest);
    }
  }
  Py_XDECREF(at);
  Py_XDECREF(rest);
  return false;
}

static bool refuse_type(const Fill* fill, const char* name, PyObject* value, const char* expected) {
  return refuse(fill, name, PyExc_TypeError,
                PyUnicode_FromFormat("= %R; expected %s", value, expected));
}

static bool hold(Fill* fill, PyObject* object) {
  if (fill->held == NULL) fill->held = PyList_New(0);
  return fill->held != NULL && PyList_Append(fill->held, object) == 0;
}

/* ---- numbers, flags, words, texts */

static bool set_int(Fill* fill, const Member* member, void* to, PyObject* value) {
  PyObject* const number = PyFloat_Check(value) ? NULL : PyNumber_Index(value);
  if (number == NULL) return PyErr_Clear(), refuse_type(fill, member->name, value, "an int");
  bool is_good = true;
  if (member->kind == KIND_U64 || member->kind == KIND_SIZE) {
    *(uint64_t*)to = PyLong_AsUnsignedLongLong(number);
    is_good = !PyErr_Occurred();
  } else {
    const long long read = PyLong_AsLongLong(number);
    is_good =
        !PyErr_Occurred() && (member->kind == KIND_I64 || (read >= INT32_MIN && read <= INT32_MAX));
    if (member->kind == KIND_I64) {
      *(int64_t*)to = read;
    } else {
      *(int32_t*)to = (int32_t)read;
    }
  }
  Py_DECREF(number);
  if (is_good) return true;
  PyErr_Clear();
  return refuse(fill, member->name, NULL,
                PyUnicode_FromFormat("= %R; it does not fit into the %s bits that it has", value,
                                     member->kind == KIND_I32 ? "32" : "64"));
}

static bool set_float(Fill* fill, const Member* member, void* to, PyObject* value) {
  const double number = PyFloat_AsDouble(value);
  if (number == -1 && PyErr_Occurred())
    return PyErr_Clear(), refuse_type(fill, member->name, value, "a number");
  if (member->kind == KIND_F64) {
    *(double*)to = number;
  } else {
    *(float*)to = (float)number;
  }
  return true;
}

static bool set_flag(Fill* fill, const Member* member, void* to, PyObject* value) {
  if (value != Py_True && value != Py_False) {
    const long number = PyLong_Check(value) ? PyLong_AsLong(value) : -1;
    if (number != 0 && number != 1)
      return PyErr_Clear(), refuse_type(fill, member->name, value, "True or False");
    value = number ? Py_True : Py_False;
  }
  *(int32_t*)to = value == Py_True;
  return true;
}

/* "'bf16', 'f16' or 'e4m3'" */
static PyObject* listing(const Word* words) {
  PyObject* text = PyUnicode_FromString("");
  for (const Word* w = words; text != NULL && w->word != NULL; ++w) {
    const char* const between = w == words ? "" : w[1].word == NULL ? " or " : ", ";
    PyObject* const longer = PyUnicode_FromFormat("%U%s'%s'", text, between, w->word);
    Py_DECREF(text);
    text = longer;
  }
  return text;
}

/* The word that a value stands for: a string, or a type of elements of another library. */
static const char* word_of(PyObject* value, DLDataType* dtype) {
  const char* const text = PyUnicode_Check(value) ? PyUnicode_AsUTF8AndSize(value, NULL) : NULL;
  if (text == NULL && dtype_from_object(value, dtype)) return dtype_word(*dtype);
  PyErr_Clear();
  return text;
}

static bool set_word(Fill* fill, const Member* member, void* to, PyObject* value) {
  DLDataType dtype;
  const bool is_number = PyLong_Check(value) && !PyBool_Check(value);
  const long number = is_number ? PyLong_AsLong(value) : 0;
  const char* word = is_number ? NULL : word_of(value, &dtype);
  for (int pass = 0; pass < 2; ++pass) {
    for (const Word* w = member->words; w->word != NULL; ++w) {
      if (is_number ? w->value != number : word == NULL || strcmp(w->word, word) != 0) continue;
      *(int32_t*)to = w->value;
      return true;
    }
    if (word == NULL || !dtype_from_word(word, &dtype)) break;
    word = dtype_word(dtype); /* "bfloat16" is bf16 */
  }
  PyErr_Clear();
  PyObject* const words = listing(member->words);
  if (words == NULL) return false;
  refuse(fill, member->name, NULL, PyUnicode_FromFormat("= %R; expected %U", value, words));
  Py_DECREF(words);
  return false;
}

static bool set_text(Fill* fill, const Member* member, void* to, PyObject* value) {
  Py_ssize_t size = 0;
  const char* text = NULL;
  if (value != Py_None) {
    text = PyUnicode_Check(value) ? PyUnicode_AsUTF8AndSize(value, &size) : NULL;
    if (text == NULL || strlen(text) != (size_t)size)
      return PyErr_Clear(), refuse_type(fill, member->name, value, "a word or None");
    if (!hold(fill, value)) return false;
  }
  *(const char**)to = text;
  return true;
}

/* ---- tensors */

static bool refuse_tensor(const Fill* fill, const Member* member, const Tensor* tensor,
                          PyObject* value, const char* format, PyObject* argument) {
  PyObject* const found = tensor_describe(tensor, value);
  PyObject* const rest =
      argument == NULL ? PyUnicode_FromString(format) : PyUnicode_FromFormat(format, argument);
  if (found != NULL && rest != NULL)
    refuse(fill, member->name, NULL, PyUnicode_FromFormat("is %U; %U", found, rest));
  Py_XDECREF(found);
  Py_XDECREF(rest);
  return false;
}

/* Whether the kernels of the device reach the tensor. */
static bool check_place(Fill* fill, const Member* member, const Tensor* tensor, PyObject* value) {
  const Device* const device = fill->device;
  if (tensor_is_on_host(tensor)) {
    if (fill->takes_host) return true;
    fill->met_host = device->ordinal < 0;
    return fill->met_host ||
           refuse_tensor(fill, member, tensor, value,
                         "kernels on %U read memory of that device: move the tensor there, or let "
                         "tilewright.numpy copy it",
                         device->spec);
  }
  if (fill->is_host_only)
    return refuse_tensor(fill, member, tensor, value, "expected host memory", NULL);
  if (Py_TYPE(value) == buffer_type
          ? ((Buffer*)value)->device->context == device->context
          : device->ordinal >= 0 &&
                (tensor->dl.device.type == DL_CUDA_MANAGED ||
                 (tensor->dl.device.type == DL_CUDA && tensor->dl.device.id == device->ordinal)))
    return true;
  return refuse_tensor(fill, member, tensor, value, "the operator is on %U", device->spec);
}

static bool check_element(Fill* fill, const Member* member, const Tensor* tensor, PyObject* value) {
  const DLDataType dtype = tensor->dl.dtype;
  const bool is_good = member->element == ELEMENT_F32 ? dtype.code == DL_FLOAT && dtype.bits == 32
                                                      : dtype.code == DL_INT && dtype.bits == 32;
  if (member->element == ELEMENT_ANY || is_good) return true;
  return refuse_tensor(fill, member, tensor, value,
                       member->element == ELEMENT_F32 ? "expected float32" : "expected int32",
                       NULL);
}

static bool check_rules(Fill* fill, int number, const Member* member, const Tensor* tensor,
                        PyObject* value) {
  for (int i = 0; i < fill->num_checks; ++i) {
    if (fill->checks[i].member != number) continue;
    PyObject* const expected = check_tensor_rule(&fill->checks[i], tensor);
    if (expected == NULL) return !PyErr_Occurred();
    refuse_tensor(fill, member, tensor, value, "%U", expected);
    Py_DECREF(expected);
    return false;
  }
  return true;
}

static bool check_tensor(Fill* fill, const Struct* type, const Member* member, const Tensor* tensor,
                         PyObject* value) {
  if (!check_place(fill, member, tensor, value)) return false;
  if (!check_element(fill, member, tensor, value)) return false;
  if (fill->prefix[0] == '\0' &&
      !check_rules(fill, (int)(member - type->members), member, tensor, value))
    return false;
  if (member->kind == KIND_OUTPUT && tensor->is_read_only)
    return refuse_tensor(fill, member, tensor, value, "it is written, but it is read-only", NULL);
  return true;
}

static bool set_address(Fill* fill, const Struct* type, const Member* member, void* to,
                        PyObject* value) {
  if (value == Py_None) {
    *(void**)to = NULL;
    return true;
  }
  if (Py_TYPE(value) == &PyLong_Type) {
    *(uintptr_t*)to = PyLong_AsUnsignedLongLong(value); /* refuses what is negative */
    if (!PyErr_Occurred()) return true;
    return PyErr_Clear(), refuse_type(fill, member->name, value, "an address");
  }
  Tensor tensor;
  if (!tensor_read(value, member->name, &tensor)) return false;
  const bool is_good = check_tensor(fill, type, member, &tensor, value) &&
                       (tensor.owner == NULL || hold(fill, tensor.owner));
  *(void**)to = tensor_address(&tensor);
  if (fill->exchange == NULL) fill->exchange = tensor.exchange;
  tensor_release(&tensor);
  return is_good;
}

/* ---- streams */

/* The handle behind a stream of PyTorch, CuPy or what follows the protocol of cuda.core; NULL if it
 * is none of them. */
static PyObject* handle_of_stream(PyObject* stream) {
  PyObject* handle = PyObject_GetAttrString(stream, "cuda_stream");
  if (handle != NULL) return handle;
  PyErr_Clear();
  PyObject* const pair = PyObject_CallMethod(stream, "__cuda_stream__", NULL);
  if (pair != NULL) {
    handle = PySequence_GetItem(pair, 1);
    Py_DECREF(pair);
    return handle;
  }
  PyErr_Clear();
  return PyObject_GetAttrString(stream, "ptr");
}

static bool check_stream_device(Fill* fill, PyObject* stream) {
  PyObject* const index = PyObject_GetAttrString(stream, "device_index");
  const long ordinal = index == NULL ? -1 : PyLong_AsLong(index);
  Py_XDECREF(index);
  PyErr_Clear();
  if (ordinal < 0 || fill->device == NULL || fill->device->ordinal < 0 ||
      ordinal == fill->device->ordinal)
    return true;
  return refuse(fill, "stream", NULL,
                PyUnicode_FromFormat("is %R, of cuda:%ld; the operator is on %U", stream, ordinal,
                                     fill->device->spec));
}

static bool set_stream(Fill* fill, const Member* member, void* to, PyObject* value) {
  if (value == Py_None) return true;
  PyObject* const handle = PyLong_Check(value) ? Py_NewRef(value) : handle_of_stream(value);
  PyErr_Clear();
  void* const stream = handle != NULL && PyLong_Check(handle) ? PyLong_AsVoidPtr(handle) : NULL;
  const bool is_good = handle != NULL && PyLong_Check(handle) && !PyErr_Occurred();
  PyErr_Clear();
  Py_XDECREF(handle);
  if (!is_good)
    return refuse_type(fill, member->name, value,
                       "a stream of PyTorch or CuPy, an object with __cuda_stream__, a CUstream as "
                       "an int, or None");
  if (!check_stream_device(fill, value)) return false;
  *(void**)to = stream;
  fill->has_stream = true;
  return true;
}

/* ---- structs and arrays of them */

/* The prefix of messages grows by "name." or "name[3]."; the old length comes back. */
static size_t enter(Fill* fill, const char* name, Py_ssize_t index) {
  const size_t length = strlen(fill->prefix);
  const size_t room = sizeof fill->prefix - length;
  if (index < 0) {
    PyOS_snprintf(fill->prefix + length, room, "%s.", name);
  } else {
    PyOS_snprintf(fill->prefix + length, room, "%s[%zd].", name, index);
  }
  return length;
}

static bool fill_from_sequence(Fill* fill, const Struct* type, void* given, PyObject* values) {
  const Py_ssize_t size = PySequence_Size(values);
  if (size > type->num_members)
    return raise_invalid("%s: %s(...) has %zd values; %s has %d members", fill->what, fill->prefix,
                         size, type->name, type->num_members),
           false;
  bool is_good = size >= 0;
  for (int i = 0; is_good && i < size; ++i) {
    int hint = i;
    PyObject* const value = PySequence_GetItem(values, i);
    is_good = value != NULL && fill_member(fill, type, given, type->names[i], value, &hint);
    Py_XDECREF(value);
  }
  return is_good;
}

static bool fill_struct(Fill* fill, const char* name, Py_ssize_t index, const Struct* type,
                        void* given, PyObject* value) {
  const size_t length = enter(fill, name, index);
  bool is_good;
  if (value == Py_None) {
    is_good = true;
  } else if (PyTuple_Check(value) || PyList_Check(value)) {
    is_good = fill_from_sequence(fill, type, given, value);
  } else if (PyMapping_Check(value) && !PyUnicode_Check(value) &&
             PyObject_HasAttrString(value, "keys")) {
    is_good = fill_from_mapping(fill, type, given, value);
  } else {
    fill->prefix[length] = '\0';
    is_good = refuse_type(fill, name, value, "a dict of its members, or a tuple in their order");
  }
  fill->prefix[length] = '\0';
  return is_good;
}

/* The structs lie in a bytes object that the filling holds. */
static bool set_array(Fill* fill, const Struct* type, const Member* member, void* to,
                      PyObject* value) {
  if (value == Py_None) {
    *(void**)to = NULL;
    return true;
  }
  const bool is_one = member->count == NULL && PyDict_Check(value);
  const Py_ssize_t count = is_one ? 1 : PySequence_Check(value) ? PySequence_Size(value) : -1;
  if (count < 1 || (member->count == NULL && count != 1))
    return PyErr_Clear(),
           refuse_type(fill, member->name, value,
                       member->count == NULL ? "a dict" : "a list of dicts, one for each");
  const size_t size = member->inner->size;
  PyObject* const memory = PyBytes_FromStringAndSize(NULL, count * (Py_ssize_t)size);
  if (memory == NULL) return false;
  char* const first = PyBytes_AsString(memory);
  bool is_good = hold(fill, memory);
  Py_DECREF(memory);
  for (Py_ssize_t i = 0; is_good && i < count; ++i) {
    fill_begin(member->inner, first + (size_t)i * size);
    PyObject* const one = is_one ? Py_NewRef(value) : PySequence_GetItem(value, i);
    is_good = one != NULL &&
              fill_struct(fill, member->name, i, member->inner, first + (size_t)i * size, one);
    Py_XDECREF(one);
  }
  *(void**)to = first;
  fill->lengths[member - type->members] = count;
  return is_good;
}

/* Arrays have as many structs as their count says; a count of 0 is filled in. */
bool fill_check_counts(Fill* fill, const Struct* type, void* given) {
  for (int i = 0; i < type->num_members && i < MAX_ARRAYS; ++i) {
    const Member* const member = &type->members[i];
    if (member->kind != KIND_ARRAY || member->count == NULL || fill->lengths[i] == 0) continue;
    for (int j = 0; j < type->num_members; ++j) {
      if (strcmp(type->members[j].name, member->count) != 0) continue;
      int64_t* const count = (int64_t*)((char*)given + type->members[j].offset);
      if (*count == 0) *count = fill->lengths[i];
      if (*count != fill->lengths[i])
        return raise_invalid("%s: %s has %zd entries; %s = %lld", fill->what, member->name,
                             fill->lengths[i], member->count, (long long)*count),
               false;
    }
  }
  return true;
}

/* ---- members by name */

static int find_member(const Struct* type, PyObject* name, int hint) {
  for (int i = 0; i < type->num_members; ++i) {
    const int at = (hint + i) % type->num_members;
    if (type->names[at] == name) return at;
  }
  for (int i = 0; i < type->num_members; ++i)
    if (PyUnicode_Compare(type->names[i], name) == 0) return i;
  return -1;
}

static bool refuse_name(const Fill* fill, const Struct* type, PyObject* name) {
  PyObject* const names = PyTuple_New(type->num_members);
  PyObject* const comma = PyUnicode_FromString(", ");
  for (int i = 0; names != NULL && i < type->num_members; ++i)
    PyTuple_SetItem(names, i, Py_NewRef(type->names[i]));
  PyObject* const listed = names && comma ? PyUnicode_Join(comma, names) : NULL;
  if (listed != NULL)
    PyErr_Format(PyExc_TypeError, "%s: there is no %s%U; there are %U", fill->what, fill->prefix,
                 name, listed);
  Py_XDECREF(listed);
  Py_XDECREF(comma);
  Py_XDECREF(names);
  return false;
}

bool fill_member(Fill* fill, const Struct* type, void* given, PyObject* name, PyObject* value,
                 int* hint) {
  const int index = PyUnicode_Check(name) ? find_member(type, name, *hint) : -1;
  if (index < 0) return refuse_name(fill, type, name);
  const Member* const member = &type->members[index];
  void* const to = (char*)given + member->offset;
  *hint = index + 1;
  switch (member->kind) {
    case KIND_INPUT:
    case KIND_OUTPUT:
      return set_address(fill, type, member, to, value);
    case KIND_STREAM:
      return set_stream(fill, member, to, value);
    case KIND_FLAG:
      return set_flag(fill, member, to, value);
    case KIND_I32:
    case KIND_I64:
    case KIND_U64:
    case KIND_SIZE:
      return set_int(fill, member, to, value);
    case KIND_F32:
    case KIND_F64:
      return set_float(fill, member, to, value);
    case KIND_WORD:
      return set_word(fill, member, to, value);
    case KIND_TEXT:
      return set_text(fill, member, to, value);
    case KIND_STRUCT:
      return fill_struct(fill, member->name, -1, member->inner, to, value);
    case KIND_ARRAY:
      return set_array(fill, type, member, to, value);
  }
  return false;
}

bool fill_from_mapping(Fill* fill, const Struct* type, void* given, PyObject* mapping) {
  PyObject* const items = PyMapping_Items(mapping);
  const Py_ssize_t count = items == NULL ? -1 : PyList_Size(items);
  bool is_good = count >= 0;
  int hint = 0;
  for (Py_ssize_t i = 0; is_good && i < count; ++i) {
    PyObject *name, *value;
    is_good = PyArg_ParseTuple(PyList_GetItem(items, i), "OO", &name, &value) &&
              fill_member(fill, type, given, name, value, &hint);
  }
  Py_XDECREF(items);
  return is_good;
}

void fill_begin(const Struct* type, void* given) {
  memcpy(given, type->defaults, type->size);
}

void fill_end(Fill* fill) {
  Py_CLEAR(fill->held);
}

/* ---- and back */

static PyObject* member_value(const Member* member, const void* at, bool only_changed) {
  switch (member->kind) {
    case KIND_FLAG:
      return PyBool_FromLong(*(const int32_t*)at);
    case KIND_I32:
      return PyLong_FromLong(*(const int32_t*)at);
    case KIND_I64:
      return PyLong_FromLongLong(*(const int64_t*)at);
    case KIND_U64:
    case KIND_SIZE:
      return PyLong_FromUnsignedLongLong(*(const uint64_t*)at);
    case KIND_F32:
      return PyFloat_FromDouble(*(const float*)at);
    case KIND_F64:
      return PyFloat_FromDouble(*(const double*)at);
    case KIND_TEXT:
      return *(const char* const*)at == NULL ? Py_NewRef(Py_None)
                                             : PyUnicode_FromString(*(const char* const*)at);
    case KIND_WORD:
      for (const Word* w = member->words; w->word != NULL; ++w)
        if (w->value == *(const int32_t*)at) return PyUnicode_FromString(w->word);
      return PyLong_FromLong(*(const int32_t*)at);
    case KIND_STRUCT:
      return struct_to_dict(member->inner, at, only_changed);
    default: /* tensors and arrays are not kept */
      return Py_NewRef(*(void* const*)at == NULL ? Py_None : Py_Ellipsis);
  }
}

static size_t size_of(const Member* member) {
  switch (member->kind) {
    case KIND_FLAG:
    case KIND_I32:
    case KIND_F32:
    case KIND_WORD:
      return 4;
    case KIND_STRUCT:
      return member->inner->size;
    default:
      return 8;
  }
}

PyObject* struct_to_dict(const Struct* type, const void* given, bool only_changed) {
  PyObject* dict = PyDict_New();
  for (int i = 0; dict != NULL && i < type->num_members; ++i) {
    const Member* const member = &type->members[i];
    const char* const at = (const char*)given + member->offset;
    const char* const usual = (const char*)type->defaults + member->offset;
    if (only_changed && memcmp(at, usual, size_of(member)) == 0) continue;
    PyObject* const value = member_value(member, at, only_changed);
    if (value == NULL || PyDict_SetItem(dict, type->names[i], value) != 0) Py_CLEAR(dict);
    Py_XDECREF(value);
  }
  return dict;
}

const Struct* struct_named(const char* name) {
  for (int i = 0; i < kNumStructs; ++i)
    if (strcmp(kStructs[i]->name, name) == 0) return kStructs[i];
  return NULL;
}

int structs_init(PyObject* module) {
  (void)module;
  for (int i = 0; i < kNumStructs; ++i) {
    const Struct* const type = kStructs[i];
    type->init(type->defaults);
    for (int j = 0; j < type->num_members; ++j) {
      type->names[j] = PyUnicode_InternFromString(type->members[j].name);
      if (type->names[j] == NULL) return -1;
    }
  }
  return 0;
}
