/* Operators of torch's dispatcher as kernels in C. The stack of a call is read once; its devices,
 * types, shapes, strides and options are a key of a _core.Calls, as in calls.c. A call that is not
 * known goes to a kernel in Python, which says under what the next one is to be known.
 *
 * The kernels stand where nothing else wants to see the call: below autograd, modes, tracing. The
 * rule for autograd, which stands above them, runs a known call itself if nothing does; everything
 * else goes to the rule in Python. */
#include "torch_ops.h"

#include <stdlib.h>
#include <string.h>

static TorchOp ops[MAX_OPS];
static int num_ops;
static PyObject *to_tensors, *from_tensor; /* between torch.Tensor and capsules of AtenTensor */
static PyObject *dtypes, *codes;           /* {number of torch: torch.dtype}, and back */

TorchOp* torch_op_of(const Calls* calls) {
  for (int i = 0; i < num_ops; ++i)
    if (ops[i].calls == calls) return &ops[i];
  return NULL;
}

static AtenTensor handle(StableValue value) {
  return (AtenTensor)(uintptr_t)value; /* NOLINT */
}

static const StableValue* optional(StableValue value) {
  return (const StableValue*)(uintptr_t)value; /* NOLINT */
}

/* The tensor of an argument; NULL: none is given, or it is something else. */
static AtenTensor tensor_of(char kind, StableValue value) {
  if (kind == 'T') return handle(value);
  return kind == 't' && value != 0 ? handle(*optional(value)) : NULL;
}

/* ---- keys */

static bool read_tensor(AtenTensor x, int64_t head[4], int64_t** sizes, int64_t** strides,
                        void** data) {
  int32_t dtype, type, index;
  bool is_defined;
  if (torch_abi.is_defined(x, &is_defined) != 0 || !is_defined) return false;
  if (torch_abi.get_dim(x, &head[0]) != 0 || head[0] > MAX_DIMS ||
      torch_abi.get_dtype(x, &dtype) != 0 || torch_abi.get_device_type(x, &type) != 0 ||
      torch_abi.get_device_index(x, &index) != 0)
    return false;
  head[1] = dtype;
  head[2] = type;
  head[3] = index;
  return torch_abi.get_sizes(x, sizes) == 0 && torch_abi.get_strides(x, strides) == 0 &&
         torch_abi.get_data_ptr(x, data) == 0;
}

bool torch_put_tensor(Key* key, AtenTensor x, void** address) {
  int64_t head[4], *sizes, *strides;
  if (!read_tensor(x, head, &sizes, &strides, address)) return false;
  const size_t size = (size_t)head[0] * sizeof(int64_t);
  return key_put(key, head, sizeof head) && key_put(key, sizes, size) &&
         key_put(key, strides, size);
}

static bool text_of(StableValue value, const char** text, size_t* size) {
  void* const string = (void*)(uintptr_t)value; /* NOLINT */
  return torch_abi.string_length(string, size) == 0 && torch_abi.string_text(string, text) == 0;
}

bool torch_put_number(Key* key, bool is_given, uint64_t value) {
  const uint64_t words[2] = {is_given, value};
  return key_put(key, words, sizeof words);
}

bool torch_put_absent(Key* key) {
  static const int64_t kAbsent = -1;
  return key_put(key, &kAbsent, sizeof kAbsent);
}

static bool put_argument(Key* key, char kind, StableValue value) {
  const char* text;
  size_t size;
  if (kind == 's') return text_of(value, &text, &size) && key_put_text(key, text, (int64_t)size);
  if (kind == 'F') return torch_put_number(key, value != 0, value == 0 ? 0 : *optional(value));
  return torch_put_number(key, true, value);
}

static bool read_key(const TorchOp* op, const StableValue* stack, Key* key, void** addresses) {
  int tensors = 0;
  key->size = 0;
  for (int i = 0; i < op->num_arguments; ++i) {
    const AtenTensor x = tensor_of(op->kinds[i], stack[i]);
    const bool is_put = x != NULL ? torch_put_tensor(key, x, &addresses[tensors])
                        : torch_kind_is_tensor(op->kinds[i])
                            ? torch_put_absent(key)
                            : put_argument(key, op->kinds[i], stack[i]);
    if (!is_put) return false;
    tensors += torch_kind_is_tensor(op->kinds[i]);
  }
  key_finish(key);
  return true;
}

bool torch_code_of_dtype(PyObject* dtype, uint64_t* code) {
  PyObject* const number = PyDict_GetItemWithError(codes, dtype);
  if (number == NULL) return PyErr_Clear(), false;
  *code = (uint64_t)PyLong_AsLong(number);
  return true;
}

/* ---- between torch.Tensor and AtenTensor */

PyObject* torch_wrap(AtenTensor x) {
  AtenTensor other = NULL;
  if (x == NULL) return Py_NewRef(Py_None);
  if (torch_abi.new_tensor_handle(x, &other) != 0)
    return PyErr_Format(PyExc_RuntimeError, "torch cannot hand over a tensor");
  PyObject* const capsule = PyCapsule_New(other, NULL, NULL);
  PyObject* const list = capsule == NULL ? NULL : PyObject_CallFunction(to_tensors, "[O]", capsule);
  PyObject* const made = list == NULL ? NULL : Py_XNewRef(PyList_GetItem(list, 0));
  Py_XDECREF(list);
  Py_XDECREF(capsule);
  return made;
}

static AtenTensor unwrap(PyObject* tensor) {
  PyObject* const capsule = PyObject_CallFunctionObjArgs(from_tensor, tensor, NULL);
  AtenTensor x = capsule == NULL ? NULL : (AtenTensor)PyCapsule_GetPointer(capsule, NULL);
  Py_XDECREF(capsule);
  return x;
}

/* ---- a known call */

void torch_delete_results(StableValue* results, int count) {
  for (int i = 0; i < count; ++i)
    if (results[i] != 0) torch_abi.delete_tensor(handle(results[i]));
}

bool torch_make_results(const TorchOp* op, const Known* known, void** addresses,
                        StableValue* results) {
  for (int i = 0; i < known->num_results; ++i) {
    const Made* const like = &known->made[i];
    AtenTensor made = NULL;
    if (torch_abi.empty_strided(like->ndim, like->shape, like->strides, like->dtype,
                                like->device_type, like->device_index, &made) != 0)
      return false;
    results[i] = (StableValue)(uintptr_t)made;
    if (torch_abi.get_data_ptr(made, &addresses[op->num_tensors + i]) != 0) return false;
  }
  return true;
}

static bool launch_on_host(const TorchOp* op, const Known* known, const StableValue* stack,
                           const StableValue* results) {
  PyObject* const tensors = PyTuple_New(op->num_tensors + known->num_results);
  int at = 0;
  for (int i = 0; tensors != NULL && i < op->num_arguments; ++i)
    if (torch_kind_is_tensor(op->kinds[i]))
      PyTuple_SetItem(tensors, at++, torch_wrap(tensor_of(op->kinds[i], stack[i])));
  for (int i = 0; tensors != NULL && i < known->num_results; ++i)
    PyTuple_SetItem(tensors, at++, torch_wrap(handle(results[i])));
  if (PyErr_Occurred()) return Py_XDECREF(tensors), false;
  return calls_launch_on_host(known, tensors);
}

bool torch_launch_on_gpu(const TorchOp* op, const Known* known, void** addresses) {
  Tensor like;
  if (!tensor_read(known->like, "like", &like)) return false;
  const bool is_done = like.exchange != NULL &&
                       calls_launch_on_gpu(op->calls, known, addresses, known->like, like.exchange);
  tensor_release(&like);
  return is_done;
}

static bool run_known(const TorchOp* op, Known* known, const StableValue* stack, void** addresses,
                      StableValue* results) {
  bool is_done = torch_make_results(op, known, addresses, results);
  if (is_done && known->op->device->ordinal < 0)
    is_done = op->calls->is_dry || launch_on_host(op, known, stack, results);
  else if (is_done)
    is_done = torch_launch_on_gpu(op, known, addresses);
  if (!is_done) {
    torch_delete_results(results, known->num_results);
    memset(results, 0, MAX_RESULTS * sizeof *results);
  }
  return is_done;
}

/* ---- a call that is not known */

static PyObject* argument_of(char kind, StableValue value) {
  const char* text;
  size_t size;
  double number;
  if (torch_kind_is_tensor(kind)) return torch_wrap(tensor_of(kind, value));
  if (kind == 'i') return PyLong_FromLongLong((int64_t)value);
  if (kind == 'b') return PyBool_FromLong((value & 0xff) != 0);
  if (kind == 's')
    return text_of(value, &text, &size) ? PyUnicode_FromStringAndSize(text, (Py_ssize_t)size)
                                        : NULL;
  if (kind == 'd') {
    PyObject* const code = PyLong_FromLong((int32_t)value);
    PyObject* const dtype = code == NULL ? NULL : PyDict_GetItemWithError(dtypes, code);
    if (dtype == NULL && code != NULL && !PyErr_Occurred())
      raise_invalid("dtype %d of torch: expected one that tilewright knows", (int)value);
    Py_XDECREF(code);
    return Py_XNewRef(dtype);
  }
  if (kind == 'F' && value == 0) return Py_NewRef(Py_None);
  if (kind == 'F') value = *optional(value);
  memcpy(&number, &value, sizeof number);
  return PyFloat_FromDouble(number);
}

static PyObject* arguments_of(const TorchOp* op, const StableValue* stack) {
  PyObject* const tuple = PyTuple_New(op->num_arguments);
  for (int i = 0; tuple != NULL && i < op->num_arguments; ++i) {
    PyObject* const value = argument_of(op->kinds[i], stack[i]);
    if (value == NULL) return Py_DECREF(tuple), NULL;
    PyTuple_SetItem(tuple, i, value);
  }
  return tuple;
}

static bool describe_results(Known* known, const StableValue* results, int count) {
  known->made = calloc((size_t)count + 1, sizeof *known->made);
  known->num_results = count;
  for (int i = 0; known->made != NULL && i < count; ++i) {
    Made* const made = &known->made[i];
    int64_t head[4], *sizes, *strides;
    void* data;
    if (!read_tensor(handle(results[i]), head, &sizes, &strides, &data)) return false;
    *made = (Made){.ndim = head[0], .dtype = (int32_t)head[1]};
    made->device_type = (int32_t)head[2];
    made->device_index = (int32_t)head[3];
    memcpy(made->shape, sizes, (size_t)head[0] * sizeof *sizes);
    memcpy(made->strides, strides, (size_t)head[0] * sizeof *strides);
  }
  return known->made != NULL;
}

/* `what`: (operator, bytes of workspace, {member: tensor}, {member: value}, a tensor there). */
static bool remember(const TorchOp* op, const Key* key, PyObject* what, const StableValue* results,
                     int count) {
  PyObject *planned, *names, *members, *like;
  Py_ssize_t bytes;
  if (what == Py_None || calls_find(op->calls, key) != NULL) return true;
  if (!PyArg_ParseTuple(what, "O!nO!O!O", operator_type, &planned, &bytes, &PyDict_Type, &names,
                        &PyDict_Type, &members, &like))
    return false;
  Known* const known =
      calls_insert(op->calls, key, (Operator*)planned, (size_t)bytes, names, NULL, members);
  if (known == NULL) return false;
  known->like = Py_NewRef(like);
  if (describe_results(known, results, count)) return true;
  Py_XDECREF(PyObject_CallMethod((PyObject*)op->calls, "clear", NULL));
  return PyErr_Occurred() == NULL;
}

static bool run_in_python(const TorchOp* op, PyObject* function, const StableValue* stack,
                          const Key* key, StableValue* results, int count) {
  PyObject *made, *what;
  PyObject* const arguments = arguments_of(op, stack);
  PyObject* const done = arguments == NULL ? NULL : PyObject_Call(function, arguments, NULL);
  Py_XDECREF(arguments);
  if (done == NULL) return false;
  bool is_good = PyArg_ParseTuple(done, "O!O", &PyTuple_Type, &made, &what) != 0;
  if (is_good && PyTuple_Size(made) != count)
    is_good = raise_invalid("%zd results, expected %d", PyTuple_Size(made), count) != NULL;
  for (int i = 0; is_good && i < count; ++i) {
    results[i] = (StableValue)(uintptr_t)unwrap(PyTuple_GetItem(made, i));
    is_good = results[i] != 0;
  }
  if (is_good && key != NULL) is_good = remember(op, key, what, results, count);
  if (!is_good) torch_delete_results(results, count);
  Py_DECREF(done);
  return is_good;
}

/* ---- kernels */

static void free_arguments(const TorchOp* op, StableValue* stack) {
  for (int i = 0; i < op->num_arguments; ++i) {
    const char kind = op->kinds[i];
    const AtenTensor x = tensor_of(kind, stack[i]);
    if (x != NULL) torch_abi.delete_tensor(x);
    if (kind == 's') torch_abi.delete_string((void*)(uintptr_t)stack[i]); /* NOLINT */
    if ((kind == 't' || kind == 'F') && stack[i] != 0)
      torch_abi.delete_optional((void*)(uintptr_t)stack[i]); /* NOLINT */
  }
}

bool torch_is_direct(AtenTensor x, bool has_grad) {
  return !torch_abi.has_dispatch(x) && !torch_abi.is_negated(x) &&
         !(has_grad && torch_abi.requires_grad(*(void**)x));
}

/* Whether nothing above the kernels wants to see a call. */
static bool is_direct(const TorchOp* op, const StableValue* stack) {
  if (calls_are_watched(op->calls)) return false;
  const bool has_grad = torch_abi.grad_is_enabled();
  for (int i = 0; i < op->num_arguments; ++i) {
    const AtenTensor x = tensor_of(op->kinds[i], stack[i]);
    if (x != NULL && !torch_is_direct(x, has_grad)) return false;
  }
  return true;
}

static bool run(const TorchOp* op, bool is_rule, const StableValue* stack, StableValue* results,
                int count) {
  Key key;
  void* addresses[MAX_TENSORS] = {NULL};
  const bool has_key = !is_child_of_fork() && (!is_rule || is_direct(op, stack)) &&
                       read_key(op, stack, &key, addresses);
  Known* const known = has_key ? calls_find(op->calls, &key) : NULL;
  bool is_done = false;
  if (known != NULL) {
    ++known->users; /* what is called may let go of the GIL, and another thread forget this */
    is_done = known->num_results == count && run_known(op, known, stack, addresses, results);
    calls_leave(known);
  }
  if (is_done || PyErr_Occurred()) return is_done;
  if (is_rule) return run_in_python(op, op->rule, stack, NULL, results, count);
  return run_in_python(op, op->kernel, stack, has_key ? &key : NULL, results, count);
}

/* Arguments are the kernel's, and results take their place. */
static void kernel(const TorchOp* op, bool is_rule, StableValue* stack, uint64_t num_results) {
  StableValue results[MAX_RESULTS] = {0};
  const PyGILState_STATE state = PyGILState_Ensure();
  const bool is_done = run(op, is_rule, stack, results, (int)num_results);
  if (!is_done) torch_keep_exception();
  free_arguments(op, stack);
  PyGILState_Release(state);
  if (!is_done) torch_throw();
  memcpy(stack, results, (size_t)num_results * sizeof *results);
}

/* A kernel is told nothing but its stack, so each operator has its own, and its own rule. */
#define KERNEL(I)                                                                    \
  static void kernel_##I(StableValue* stack, uint64_t arguments, uint64_t results) { \
    (void)arguments;                                                                 \
    kernel(&ops[I], false, stack, results);                                          \
  }                                                                                  \
  static void rule_##I(StableValue* stack, uint64_t arguments, uint64_t results) {   \
    (void)arguments;                                                                 \
    kernel(&ops[I], true, stack, results);                                           \
  }
#define EIGHT(F, A, B, C, D, E, G, H, I) F(A) F(B) F(C) F(D) F(E) F(G) F(H) F(I)
#define ALL(F)                           \
  EIGHT(F, 0, 1, 2, 3, 4, 5, 6, 7)       \
  EIGHT(F, 8, 9, 10, 11, 12, 13, 14, 15) \
  EIGHT(F, 16, 17, 18, 19, 20, 21, 22, 23)
ALL(KERNEL)
#define NAME_OF_KERNEL(I) kernel_##I,
#define NAME_OF_RULE(I) rule_##I,
static const StableKernel kernels[MAX_OPS] = {ALL(NAME_OF_KERNEL)};
static const StableKernel rules[MAX_OPS] = {ALL(NAME_OF_RULE)};

/* ---- functions of Python */

static PyObject* open_torch(PyObject* module, PyObject* args) {
  (void)module;
  const char* path;
  PyObject *to, *from, *examples;
  if (!PyArg_ParseTuple(args, "sOOO!:torch_open", &path, &to, &from, &PyTuple_Type, &examples))
    return NULL;
  if (!torch_abi_open(path)) return Py_NewRef(Py_False);
  to_tensors = Py_NewRef(to);
  from_tensor = Py_NewRef(from);
  dtypes = PyDict_New();
  codes = PyDict_New();
  for (Py_ssize_t i = 0; dtypes != NULL && codes != NULL && i < PyTuple_Size(examples); ++i) {
    PyObject* const tensor = PyTuple_GetItem(examples, i);
    const AtenTensor x = unwrap(tensor);
    int32_t code = -1;
    if (x == NULL) return NULL;
    if (i == 0) torch_shortcut_open(tensor, x);
    torch_abi.get_dtype(x, &code);
    torch_abi.delete_tensor(x);
    PyObject* const number = PyLong_FromLong(code);
    PyObject* const dtype = PyObject_GetAttrString(tensor, "dtype");
    if (number != NULL && dtype != NULL) PyDict_SetItem(dtypes, number, dtype);
    if (number != NULL && dtype != NULL) PyDict_SetItem(codes, dtype, number);
    Py_XDECREF(number);
    Py_XDECREF(dtype);
  }
  return dtypes == NULL || codes == NULL || PyErr_Occurred() ? NULL : Py_NewRef(Py_True);
}

enum { TORCH_2_10 = 0x020a }; /* the version that values on the stack are as of */

static PyObject* add_op(PyObject* module, PyObject* args) {
  (void)module;
  const char *library, *name, *kinds;
  PyObject *calls, *function, *rule;
  if (!PyArg_ParseTuple(args, "sssO!OO:torch_op", &library, &name, &kinds, calls_type, &calls,
                        &function, &rule))
    return NULL;
  if (torch_abi.library_impl == NULL || num_ops == MAX_OPS || strlen(kinds) > MAX_ARGUMENTS ||
      strspn(kinds, "TtifFbsd") != strlen(kinds))
    return raise_invalid("torch_op(%s, \"%s\"): torch_open() first; at most %d operators", name,
                         kinds, (int)MAX_OPS);
  TorchOp* const op = &ops[num_ops];
  strcpy(op->kinds, kinds);
  op->num_arguments = (int)strlen(kinds);
  op->num_tensors = 0;
  for (int i = 0; i < op->num_arguments; ++i) op->num_tensors += torch_kind_is_tensor(kinds[i]);
  if (op->num_tensors + MAX_RESULTS > MAX_TENSORS)
    return raise_invalid("torch_op(%s): %d tensors", name, op->num_tensors);
  op->calls = (Calls*)Py_NewRef(calls);
  op->kernel = Py_NewRef(function);
  op->rule = Py_NewRef(rule);
  op->original = NULL;
  const bool has_rule = rule != Py_None && torch_abi.requires_grad != NULL;
  static const char* const keys[] = {"CPU", "CUDA", "Autograd"};
  for (int i = 0; i < 2 + has_rule; ++i) {
    void* implementation = NULL;
    const StableKernel function_of_key = i == 2 ? rules[num_ops] : kernels[num_ops];
    if (torch_abi.library_init_impl(library, keys[i], __FILE__, __LINE__, &implementation) != 0 ||
        torch_abi.library_impl(implementation, name, function_of_key, (uint64_t)TORCH_2_10 << 48) !=
            0)
      return PyErr_Format(PyExc_RuntimeError, "torch refuses a kernel of %s::%s", library, name);
  }
  ++num_ops;
  return PyBool_FromLong(has_rule);
}

static PyMethodDef functions[] = {
    {"torch_open", open_torch, METH_VARARGS,
     "torch_open(path, to_tensors, from_tensor, examples, /)\n--\n\n"
     "Finds torch's C interface in libtorch_cpu.so, which is loaded; False: it lacks something."},
    {"torch_op", add_op, METH_VARARGS,
     "torch_op(library, name, kinds, calls, kernel, rule, /)\n--\n\n"
     "Kernels in C for an operator: known calls, and kernel(*arguments) for the others. With a\n"
     "rule also that for autograd, which calls it where somebody wants to see the call; False: "
     "this\n"
     "torch does not say where.\n"
     "kinds: a letter for each argument: T Tensor, t Tensor?, i int, f float, F float?, b bool,\n"
     "s str, d dtype."},
    {NULL, NULL, 0, NULL}};

int torch_ops_init(PyObject* module) {
  return PyModule_AddFunctions(module, functions) != 0 ? -1 : torch_shortcut_init(module);
}
