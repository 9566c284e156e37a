/* A call of torch.ops.NAME.default from Python that is known already. Torch would read its
 * arguments to a stack, look at the keys of all tensors and call the kernel in torch_ops.c, which
 * asks for the same call in the same table. This stands before torch's way, makes the key from
 * Python's arguments, and leaves everything else to torch: calls that are not known, gradients,
 * modes, tracing, subclasses, profilers. */
#include "torch_ops.h"

#include <string.h>

static size_t tensor_offset; /* of the at::Tensor in a torch.Tensor; 0: not known */

void torch_shortcut_open(PyObject* tensor, AtenTensor handle) {
  const void* implementation;
  memcpy(&implementation, (const void*)handle, sizeof implementation);
  for (size_t at = sizeof(PyObject); at <= sizeof(PyObject) + 2 * sizeof(void*);
       at += sizeof(void*)) {
    const void* found;
    memcpy(&found, (const char*)tensor + at, sizeof found);
    if (found == implementation) tensor_offset = at;
  }
}

/* ---- the key, as torch_ops.c makes it of a stack */

typedef struct Asked {
  Key key;
  void* addresses[MAX_TENSORS];
} Asked;

static bool put_tensor(const TorchOp* op, Asked* asked, int at, PyObject* value, bool has_grad) {
  PyTypeObject* const type = Py_TYPE(value);
  if (type != op->calls->plain[0] && type != op->calls->plain[1]) return false;
  const AtenTensor x = (AtenTensor)(void*)((char*)value + tensor_offset);
  return torch_is_direct(x, has_grad) && torch_put_tensor(&asked->key, x, &asked->addresses[at]);
}

static bool put_option(Key* key, char kind, PyObject* value) {
  uint64_t word = 0;
  if (kind == 'F' && value == Py_None) return torch_put_number(key, false, 0);
  if ((kind == 'f' || kind == 'F') && PyFloat_CheckExact(value)) {
    const double number = PyFloat_AsDouble(value);
    memcpy(&word, &number, sizeof word);
    return torch_put_number(key, true, word);
  }
  if (kind == 'b' && (value == Py_True || value == Py_False))
    return torch_put_number(key, true, value == Py_True);
  if (kind == 'i' && PyLong_CheckExact(value)) {
    word = (uint64_t)PyLong_AsLongLong(value);
    return PyErr_Occurred() == NULL ? torch_put_number(key, true, word) : (PyErr_Clear(), false);
  }
  if (kind == 'd') return torch_code_of_dtype(value, &word) && torch_put_number(key, true, word);
  if (kind == 's' && PyUnicode_CheckExact(value)) {
    Py_ssize_t size;
    const char* const text = PyUnicode_AsUTF8AndSize(value, &size);
    return text != NULL ? key_put_text(key, text, size) : (PyErr_Clear(), false);
  }
  return false;
}

static bool read_call(const TorchOp* op, PyObject* const* args, Py_ssize_t count, Asked* asked) {
  if (count != op->num_arguments || is_child_of_fork()) return false;
  const bool has_grad = torch_abi.grad_is_enabled();
  int tensors = 0;
  asked->key.size = 0;
  for (int i = 0; i < op->num_arguments; ++i) {
    const char kind = op->kinds[i];
    if (!torch_kind_is_tensor(kind)) {
      if (!put_option(&asked->key, kind, args[i])) return false;
    } else if (kind == 't' && args[i] == Py_None) {
      asked->addresses[tensors++] = NULL;
      if (!torch_put_absent(&asked->key)) return false;
    } else if (!put_tensor(op, asked, tensors++, args[i], has_grad)) {
      return false;
    }
  }
  key_finish(&asked->key);
  return true;
}

/* ---- a known call */

static PyObject* wrap_results(const StableValue* results, int count) {
  PyObject* const all = PyTuple_New(count);
  for (int i = 0; all != NULL && i < count; ++i) {
    PyObject* const made = torch_wrap((AtenTensor)(uintptr_t)results[i]); /* NOLINT */
    if (made == NULL) return Py_DECREF(all), NULL;
    PyTuple_SetItem(all, i, made);
  }
  return all;
}

static bool launch_on_host(const TorchOp* op, const Known* known, PyObject* const* args,
                           PyObject* results) {
  PyObject* const tensors = PyTuple_New(op->num_tensors + known->num_results);
  int at = 0;
  for (int i = 0; tensors != NULL && i < op->num_arguments; ++i)
    if (torch_kind_is_tensor(op->kinds[i])) PyTuple_SetItem(tensors, at++, Py_NewRef(args[i]));
  for (int i = 0; tensors != NULL && i < known->num_results; ++i)
    PyTuple_SetItem(tensors, at++, Py_NewRef(PyTuple_GetItem(results, i)));
  return calls_launch_on_host(known, tensors);
}

/* A tuple of the results; NULL, perhaps without an exception, if the call was not made. */
static PyObject* run_known(const TorchOp* op, const Known* known, PyObject* const* args,
                           Asked* asked) {
  StableValue handles[MAX_RESULTS] = {0};
  PyObject* results = NULL;
  if (torch_make_results(op, known, asked->addresses, handles))
    results = wrap_results(handles, known->num_results);
  torch_delete_results(handles, known->num_results);
  if (results == NULL) return NULL;
  const bool is_done = known->op->device->ordinal < 0
                           ? op->calls->is_dry || launch_on_host(op, known, args, results)
                           : torch_launch_on_gpu(op, known, asked->addresses);
  if (!is_done) Py_CLEAR(results);
  return results;
}

/* What a function returns: nothing, a result, or all of them. Takes the reference. */
static PyObject* returned(PyObject* results) {
  const Py_ssize_t count = PyTuple_Size(results);
  if (count > 1) return results;
  PyObject* const one = Py_NewRef(count == 1 ? PyTuple_GetItem(results, 0) : Py_None);
  Py_DECREF(results);
  return one;
}

static PyObject* ask_torch(const TorchOp* op, PyObject* const* args, Py_ssize_t count,
                           PyObject* keywords) {
  PyObject* const given = PyTuple_New(count);
  PyObject* const named = keywords == NULL ? NULL : PyDict_New();
  for (Py_ssize_t i = 0; given != NULL && i < count; ++i)
    PyTuple_SetItem(given, i, Py_NewRef(args[i]));
  for (Py_ssize_t i = 0; named != NULL && i < PyTuple_Size(keywords); ++i)
    PyDict_SetItem(named, PyTuple_GetItem(keywords, i), args[count + i]);
  PyObject* const result =
      given == NULL || PyErr_Occurred() ? NULL : PyObject_Call(op->original, given, named);
  Py_XDECREF(named);
  Py_XDECREF(given);
  return result;
}

static PyObject* call_op(PyObject* capsule, PyObject* const* args, Py_ssize_t count,
                         PyObject* keywords) {
  const TorchOp* const op = PyCapsule_GetPointer(capsule, NULL);
  Asked asked;
  Known* known = NULL;
  if (keywords == NULL && !torch_abi.has_callbacks() && !torch_abi_is_watched() &&
      read_call(op, args, count, &asked))
    known = calls_find(op->calls, &asked.key);
  if (known == NULL) return ask_torch(op, args, count, keywords);
  ++known->users; /* what is called may let go of the GIL, and another thread forget this */
  PyObject* const results = run_known(op, known, args, &asked);
  calls_leave(known);
  if (results == NULL) return PyErr_Occurred() ? NULL : ask_torch(op, args, count, keywords);
  return returned(results);
}

static PyMethodDef call_definition = {"call", (PyCFunction)(void*)call_op,
                                      METH_FASTCALL | METH_KEYWORDS, NULL};

/* ---- functions of Python */

static PyObject* shortcut(PyObject* module, PyObject* args) {
  (void)module;
  PyObject *calls, *original;
  if (!PyArg_ParseTuple(args, "O!O:torch_shortcut", calls_type, &calls, &original)) return NULL;
  TorchOp* const op = torch_op_of((Calls*)calls);
  if (op == NULL || op->original != NULL)
    return raise_invalid("torch_shortcut: expected the calls of an operator that has none");
  const bool can_be = tensor_offset != 0 && torch_abi_sees_watchers() &&
                      torch_abi.has_callbacks != NULL && torch_abi.requires_grad != NULL;
  if (!can_be) return Py_NewRef(original);
  PyObject* const capsule = PyCapsule_New(op, NULL, NULL);
  PyObject* const function =
      capsule == NULL ? NULL : PyCFunction_NewEx(&call_definition, capsule, NULL);
  Py_XDECREF(capsule);
  if (function != NULL) op->original = Py_NewRef(original);
  return function;
}

static PyMethodDef functions[] = {
    {"torch_shortcut", shortcut, METH_VARARGS,
     "torch_shortcut(calls, original, /)\n--\n\n"
     "A function in place of torch's own way to call an operator, `original`: it makes known calls "
     "by\nitself; `original` itself where this torch does not say what has to be asked first."},
    {NULL, NULL, 0, NULL}};

int torch_shortcut_init(PyObject* module) {
  return PyModule_AddFunctions(module, functions);
}
