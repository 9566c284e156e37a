/* The classes of operators and of prepared weights: one for each row of kClasses. */
#include "core.h"

#include <stdlib.h>
#include <string.h>

PyTypeObject* operator_type;

const Class* class_of(PyTypeObject* type) {
  PyObject* const capsule = PyObject_GetAttrString((PyObject*)type, "_class");
  const Class* const kind =
      capsule == NULL ? NULL : PyCapsule_GetPointer(capsule, "tilewright.Class");
  Py_XDECREF(capsule);
  return kind;
}

/* ---- making them */

/* What the operator is made on: its handle, and the device. */
static const void* read_on(Operator* self, PyObject* on) {
  if (strcmp(self->kind->on, "Device") == 0) {
    self->device = as_device(on);
    if (self->device == NULL) return NULL;
    self->on = Py_NewRef(on);
    Py_INCREF(self->device);
    return self->device->handle;
  }
  if (!PyObject_TypeCheck(on, operator_type) ||
      strcmp(((Operator*)on)->kind->name, self->kind->on) != 0) {
    PyErr_Format(PyExc_TypeError, "%s: expected a tilewright.%s, got %R", self->kind->name,
                 self->kind->on, on);
    return NULL;
  }
  self->on = Py_NewRef(on);
  self->device = (Device*)Py_NewRef((PyObject*)((Operator*)on)->device);
  return ((Operator*)on)->handle;
}

static bool read_problem(Operator* self, PyObject* kwargs, Fill* fill) {
  const Struct* const type = self->kind->problem;
  if (type == NULL) {
    if (kwargs == NULL || PyDict_Size(kwargs) == 0) return true;
    PyErr_Format(PyExc_TypeError, "%s takes no problem, got %R", self->kind->name, kwargs);
    return false;
  }
  self->problem = malloc(type->size);
  if (self->problem == NULL) return PyErr_NoMemory(), false;
  fill_begin(type, self->problem);
  if (kwargs != NULL && !fill_from_mapping(fill, type, self->problem, kwargs)) return false;
  return fill_check_counts(fill, type, self->problem);
}

static PyObject* changed(const Operator* self) {
  return self->problem == NULL ? PyDict_New()
                               : struct_to_dict(self->kind->problem, self->problem, true);
}

/* The exception that is set gets `reasons`: what the plan of the same problem says. */
static void add_reasons(Operator* self) {
  PyObject *type, *error, *traceback;
  PyErr_Fetch(&type, &error, &traceback);
  PyErr_NormalizeException(&type, &error, &traceback);
  PyObject* const module = PyImport_ImportModule("tilewright._plan");
  PyObject* const problem = module == NULL ? NULL : changed(self);
  PyObject* const reasons =
      problem == NULL ? NULL
                      : PyObject_CallMethod(module, "reasons_of", "OOO", (PyObject*)Py_TYPE(self),
                                            self->device, problem);
  if (reasons != NULL) PyObject_SetAttrString(error, "reasons", reasons);
  Py_XDECREF(reasons);
  Py_XDECREF(problem);
  Py_XDECREF(module);
  PyErr_Restore(type, error, traceback);
}

static bool create(Operator* self, PyObject* on, PyObject* kwargs) {
  const void* const made_on = read_on(self, on);
  if (made_on == NULL) return false;
  Fill fill = {.what = self->kind->name, .device = self->device};
  fill.takes_host = self->kind->num_calls == 0;
  const bool is_filled = read_problem(self, kwargs, &fill);
  tw_status status = TW_OK;
  if (is_filled) {
    Py_BEGIN_ALLOW_THREADS;
    status = self->kind->create(made_on, self->problem, &self->handle);
    Py_END_ALLOW_THREADS;
    if (status != TW_OK) raise_status(status, NULL);
    if (status == TW_UNSUPPORTED) add_reasons(self);
  }
  self->held = fill.held;
  if (status == TW_OK) self->checks = checks_make(self->kind, self->problem, &self->num_checks);
  return is_filled && status == TW_OK;
}

static PyObject* operator_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  const Class* const kind = class_of(type);
  if (kind == NULL || !is_usable()) return NULL;
  if (PyTuple_Size(args) != 1)
    return PyErr_Format(PyExc_TypeError, "%s(%s, *, ...) takes its members by name", kind->name,
                        strcmp(kind->on, "Device") == 0 ? "device" : "weights");
  Operator* self = (Operator*)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
  if (self == NULL) return NULL;
  self->kind = kind;
  if (!create(self, PyTuple_GetItem(args, 0), kwargs)) Py_CLEAR(self);
  return (PyObject*)self;
}

static void operator_dealloc(PyObject* object) {
  Operator* const self = (Operator*)object;
  PyTypeObject* const type = Py_TYPE(object);
  if (self->handle != NULL && !is_exiting() && !is_child_of_fork())
    self->kind->destroy(self->handle);
  free(self->problem);
  free(self->checks);
  Py_XDECREF(self->held);
  Py_XDECREF(self->on);
  Py_XDECREF(self->device);
  ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
  Py_DECREF(type);
}

/* ---- calls */

static PyObject* kwargs_of(PyObject* const* args, PyObject* names) {
  PyObject* dict = PyDict_New();
  for (Py_ssize_t i = 0; dict != NULL && names != NULL && i < PyTuple_Size(names); ++i)
    if (PyDict_SetItem(dict, PyTuple_GetItem(names, i), args[i]) != 0) Py_CLEAR(dict);
  return dict;
}

/* On a simulated device, what is on the host is copied there and back, and the workspace is
 * allocated: tilewright/_staging.py does that, and calls this again with addresses. */
static PyObject* stage(PyObject* self, const Call* call, PyObject* const* args, PyObject* names) {
  PyObject* const module = PyImport_ImportModule("tilewright._staging");
  PyObject* const kwargs = kwargs_of(args, names);
  PyObject* done = NULL;
  if (module != NULL && kwargs != NULL)
    done = PyObject_CallMethod(module, "call", "OsO", self, call->name, kwargs);
  Py_XDECREF(kwargs);
  Py_XDECREF(module);
  return done;
}

static void** address_of(const Struct* type, void* given, const char* name) {
  for (int i = 0; i < type->num_members; ++i)
    if (strcmp(type->members[i].name, name) == 0)
      return (void**)((char*)given + type->members[i].offset);
  return NULL;
}

/* Of an empty Buffer the address is NULL, too, but it is what the caller wants. */
static bool lacks_workspace(const Struct* type, void* given, PyObject* const* args,
                            PyObject* names) {
  void** const workspace = address_of(type, given, "workspace");
  if (workspace == NULL || *workspace != NULL) return false;
  for (Py_ssize_t i = 0; names != NULL && i < PyTuple_Size(names); ++i)
    if (PyUnicode_CompareWithASCIIString(PyTuple_GetItem(names, i), "workspace") == 0)
      return args[i] == Py_None;
  return true;
}

/* Where the caller names no stream: the current one of the tensors' library. */
static bool choose_stream(const Fill* fill, const Struct* type, void* given) {
  if (fill->has_stream || fill->device->ordinal < 0) return true;
  if (fill->exchange == NULL || fill->exchange->current_stream == NULL) return true;
  void** const stream = address_of(type, given, "stream");
  return stream == NULL ||
         fill->exchange->current_stream(DL_CUDA, fill->device->ordinal, stream) == 0;
}

/* "q: a Tensor, bf16 (...), ...; k: ...": what the caller gave. */
static PyObject* describe_given(PyObject* const* args, PyObject* names) {
  PyObject* text = PyUnicode_FromString("given");
  for (Py_ssize_t i = 0; text != NULL && names != NULL && i < PyTuple_Size(names); ++i) {
    Tensor tensor;
    if (args[i] == Py_None || PyLong_Check(args[i]) || PyDict_Check(args[i])) continue;
    if (!tensor_read(args[i], "", &tensor)) {
      PyErr_Clear();
      continue;
    }
    PyObject* const found = tensor_describe(&tensor, args[i]);
    PyObject* const longer = found == NULL ? NULL
                                           : PyUnicode_FromFormat("%U\n  %U: %U", text,
                                                                  PyTuple_GetItem(names, i), found);
    Py_XDECREF(found);
    Py_DECREF(text);
    text = longer;
    tensor_release(&tensor);
  }
  if (text != NULL && PyUnicode_GetLength(text) == 5) Py_CLEAR(text);
  PyErr_Clear();
  return text;
}

static tw_status launch(Operator* self, const Call* call, const void* arguments) {
  if (self->device->ordinal >= 0) return call->call(self->handle, arguments);
  tw_status status; /* the simulator takes its time */
  Py_BEGIN_ALLOW_THREADS;
  status = call->call(self->handle, arguments);
  Py_END_ALLOW_THREADS;
  return status;
}

static bool read_arguments(Fill* fill, const Struct* type, void* arguments, PyObject* const* args,
                           PyObject* names) {
  const Py_ssize_t count = names == NULL ? 0 : PyTuple_Size(names);
  int hint = 0;
  fill_begin(type, arguments);
  for (Py_ssize_t i = 0; i < count; ++i)
    if (!fill_member(fill, type, arguments, PyTuple_GetItem(names, i), args[i], &hint))
      return false;
  return true;
}

static PyObject* call_number(int number, PyObject* object, PyObject* const* args, Py_ssize_t nargs,
                             PyObject* names) {
  Operator* const self = (Operator*)object;
  const Call* const call = &self->kind->calls[number];
  const Struct* const type = call->arguments;
  AnyArguments arguments;
  Fill fill = {.what = call->what, .device = self->device};
  if (number == 0) fill.checks = self->checks, fill.num_checks = self->num_checks;
  if (!is_usable()) return NULL;
  if (nargs != 0)
    return PyErr_Format(PyExc_TypeError, "%s() takes its arguments by name", call->what);
  const bool is_good = read_arguments(&fill, type, &arguments, args, names);
  PyObject* done = NULL;
  if (is_good && self->device->ordinal < 0 &&
      (fill.met_host || lacks_workspace(type, &arguments, args, names))) {
    done = stage(object, call, args, names);
  } else if (is_good && choose_stream(&fill, type, &arguments)) {
    const tw_status status = launch(self, call, &arguments);
    done = status == TW_OK ? Py_NewRef(Py_None) : raise_status(status, describe_given(args, names));
  }
  fill_end(&fill);
  return done;
}

/* A method of a class is one of these: a function cannot know its number otherwise. */
static PyObject* call_0(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* names) {
  return call_number(0, self, args, nargs, names);
}
static PyObject* call_1(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* names) {
  return call_number(1, self, args, nargs, names);
}
static PyObject* call_2(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* names) {
  return call_number(2, self, args, nargs, names);
}
static PyObject* call_3(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* names) {
  return call_number(3, self, args, nargs, names);
}
static const _PyCFunctionFastWithKeywords callers[] = {call_0, call_1, call_2, call_3};
enum { MAX_CALLS = sizeof callers / sizeof callers[0] };

/* ---- attributes */

static PyObject* get_query(PyObject* object, void* given) {
  const Query* const query = given;
  const void* const handle = ((Operator*)object)->handle;
  if (query->text != NULL) return PyUnicode_FromString(query->text(handle));
  return query->size != NULL ? PyLong_FromSize_t(query->size(handle))
                             : PyFloat_FromDouble(query->number(handle));
}

static PyObject* get_problem(PyObject* object, void* unused) {
  (void)unused;
  const Operator* const self = (Operator*)object;
  return self->problem == NULL ? PyDict_New()
                               : struct_to_dict(self->kind->problem, self->problem, false);
}

static PyObject* get_plan(PyObject* object, void* unused) {
  (void)unused;
  PyObject* const module = PyImport_ImportModule("tilewright._plan");
  PyObject* const plan =
      module == NULL ? NULL : PyObject_CallMethod(module, "plan_of", "O", object);
  Py_XDECREF(module);
  return plan;
}

static PyObject* get_device(PyObject* object, void* unused) {
  (void)unused;
  return Py_NewRef((PyObject*)((Operator*)object)->device);
}

static PyObject* get_on(PyObject* object, void* unused) {
  (void)unused;
  return Py_NewRef(((Operator*)object)->on);
}

static PyObject* get_handle(PyObject* object, void* unused) {
  (void)unused;
  return PyLong_FromVoidPtr(((Operator*)object)->handle);
}

static PyObject* operator_repr(PyObject* object) {
  const Operator* const self = (Operator*)object;
  PyObject* const members = changed(self);
  PyObject* text =
      members == NULL ? NULL : PyUnicode_FromFormat("tilewright.%s(%R", self->kind->name, self->on);
  PyObject *name, *value;
  Py_ssize_t at = 0;
  while (text != NULL && PyDict_Next(members, &at, &name, &value)) {
    PyObject* const longer = value == Py_Ellipsis
                                 ? PyUnicode_FromFormat("%U, %U=...", text, name)
                                 : PyUnicode_FromFormat("%U, %U=%R", text, name, value);
    Py_DECREF(text);
    text = longer;
  }
  Py_XDECREF(members);
  PyObject* const closed = text == NULL ? NULL : PyUnicode_FromFormat("%U)", text);
  Py_XDECREF(text);
  return closed;
}

/* Pickled as what makes it again; weights do not know what they were made from. */
static PyObject* operator_reduce(PyObject* object, PyObject* unused) {
  (void)unused;
  const Operator* const self = (Operator*)object;
  if (self->kind->num_calls == 0)
    return PyErr_Format(PyExc_TypeError,
                        "tilewright.%s cannot be pickled; make it again from its source",
                        self->kind->name);
  PyObject* const module = PyImport_ImportModule("tilewright._operators");
  PyObject* const make = module == NULL ? NULL : PyObject_GetAttrString(module, "make");
  PyObject* const members = make == NULL ? NULL : changed(self);
  PyObject* const made =
      members == NULL ? NULL : Py_BuildValue("O(OOO)", make, Py_TYPE(object), self->on, members);
  Py_XDECREF(members);
  Py_XDECREF(make);
  Py_XDECREF(module);
  return made;
}

static PyMethodDef base_methods[] = {{"__reduce__", operator_reduce, METH_NOARGS, NULL},
                                     {NULL, NULL, 0, NULL}};
static PyGetSetDef base_attributes[] = {
    {"problem", get_problem, NULL, "Its members, as a dict.", NULL},
    {"plan", get_plan, NULL, "A tilewright.Plan: kernel, workspace_bytes, text.", NULL},
    {"device", get_device, NULL, NULL, NULL},
    {"on", get_on, NULL, "What it was made on: a device, or weights.", NULL},
    {"handle", get_handle, NULL, "Of the C interface, as an int.", NULL},
    {NULL, NULL, NULL, NULL, NULL}};
static PyType_Slot base_slots[] = {
    {Py_tp_doc, "What operators and prepared weights have in common."},
    {Py_tp_dealloc, operator_dealloc},
    {Py_tp_repr, operator_repr},
    {Py_tp_methods, base_methods},
    {Py_tp_getset, base_attributes},
    {0, NULL}};
static PyType_Spec base_spec = {"tilewright.Operator", sizeof(Operator), 0,
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, base_slots};

/* ---- what Python reads of the table */

static PyObject* kinds_of(const Struct* type) {
  static const char* const words[] = {
      [KIND_FLAG] = "flag",    [KIND_I32] = "int",       [KIND_I64] = "int",
      [KIND_U64] = "int",      [KIND_F32] = "float",     [KIND_F64] = "float",
      [KIND_SIZE] = "int",     [KIND_TEXT] = "text",     [KIND_WORD] = "word",
      [KIND_INPUT] = "input",  [KIND_OUTPUT] = "output", [KIND_ARRAY] = "list",
      [KIND_STREAM] = "stream"};
  PyObject* dict = PyDict_New();
  for (int i = 0; dict != NULL && i < type->num_members; ++i) {
    const Member* const member = &type->members[i];
    PyObject* const kind = member->kind == KIND_STRUCT ? kinds_of(member->inner)
                                                       : PyUnicode_FromString(words[member->kind]);
    if (kind == NULL || PyDict_SetItem(dict, type->names[i], kind) != 0) Py_CLEAR(dict);
    Py_XDECREF(kind);
  }
  return dict;
}

static PyObject* members(PyObject* module, PyObject* args) {
  (void)module;
  PyObject* op;
  const char* method = NULL;
  if (!PyArg_ParseTuple(args, "O|s:members", &op, &method)) return NULL;
  const bool is_class = PyType_Check(op);
  PyTypeObject* const type = is_class ? (PyTypeObject*)op : Py_TYPE(op);
  const Class* const kind = class_of(type);
  if (kind == NULL) return NULL;
  if (method != NULL && strcmp(method, "plan") == 0 && kind->plan_inputs != NULL)
    return kinds_of(kind->plan_inputs);
  if (method == NULL) return kind->problem == NULL ? PyDict_New() : kinds_of(kind->problem);
  for (int i = 0; i < kind->num_calls; ++i)
    if (strcmp(kind->calls[i].name, method) == 0) return kinds_of(kind->calls[i].arguments);
  return PyErr_Format(PyExc_AttributeError, "%s has no %s()", kind->name, method);
}

/* The host's part of op.run(...): everything but the call of the library. */
static PyObject* read_call(PyObject* module, PyObject* const* args, Py_ssize_t nargs,
                           PyObject* names) {
  (void)module;
  if (nargs != 1 || !PyObject_TypeCheck(args[0], operator_type) ||
      ((Operator*)args[0])->kind->num_calls == 0)
    return PyErr_Format(PyExc_TypeError, "read_call() takes an operator, and arguments by name");
  const Operator* const self = (Operator*)args[0];
  const Call* const call = &self->kind->calls[0];
  AnyArguments arguments;
  Fill fill = {.what = call->what, .device = self->device, .checks = self->checks};
  fill.num_checks = self->num_checks;
  const bool is_good = read_arguments(&fill, call->arguments, &arguments, args + nargs, names) &&
                       choose_stream(&fill, call->arguments, &arguments);
  fill_end(&fill);
  return is_good ? Py_NewRef(Py_None) : NULL;
}

static PyMethodDef functions[] = {
    {"read_call", (PyCFunction)(void*)read_call, METH_FASTCALL | METH_KEYWORDS,
     "read_call(operator, /, **arguments)\n--\n\n"
     "Checks and converts the arguments of its first method, and calls nothing: what a call "
     "costs."},
    {"members", members, METH_VARARGS,
     "members(operator, method=None, /)\n--\n\n"
     "{name: kind} of the arguments of a method, of what \"plan\" takes, or of the problem of an "
     "operator\nor its class."},
    {NULL, NULL, 0, NULL}};

/* ---- classes */

static PyMethodDef* methods_of(const Class* kind) {
  PyMethodDef* const methods = calloc((size_t)kind->num_calls + 2, sizeof *methods);
  for (int i = 0; methods != NULL && i < kind->num_calls; ++i)
    methods[i] = (PyMethodDef){kind->calls[i].name, (PyCFunction)(void*)callers[i],
                               METH_FASTCALL | METH_KEYWORDS, kind->calls[i].doc};
  const PyMethodDef* const extra = extra_method(kind->name);
  if (methods != NULL && extra != NULL) methods[kind->num_calls] = *extra;
  return methods;
}

static PyGetSetDef* attributes_of(const Class* kind) {
  PyGetSetDef* const made = calloc((size_t)kind->num_queries + 1, sizeof *made);
  for (int i = 0; made != NULL && i < kind->num_queries; ++i)
    made[i] = (PyGetSetDef){kind->queries[i].name, get_query, NULL, kind->queries[i].doc,
                            (void*)&kind->queries[i]};
  return made;
}

static int add_class(PyObject* module, const Class* kind) {
  PyMethodDef* const methods = methods_of(kind); /* for as long as the process lives */
  PyGetSetDef* const attributes = attributes_of(kind);
  if (methods == NULL || attributes == NULL) return PyErr_NoMemory(), -1;
  PyType_Slot slots[] = {{Py_tp_doc, (void*)kind->doc},
                         {Py_tp_new, operator_new},
                         {Py_tp_methods, methods},
                         {Py_tp_getset, attributes},
                         {0, NULL}};
  char name[96];
  PyOS_snprintf(name, sizeof name, "tilewright.%s", kind->name);
  PyType_Spec spec = {name, sizeof(Operator), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
  PyObject* const type = PyType_FromModuleAndSpec(module, &spec, (PyObject*)operator_type);
  PyObject* const capsule = PyCapsule_New((void*)kind, "tilewright.Class", NULL);
  int status = -1;
  if (type != NULL && capsule != NULL && PyObject_SetAttrString(type, "_class", capsule) == 0)
    status = PyModule_AddType(module, (PyTypeObject*)type);
  Py_XDECREF(capsule);
  Py_XDECREF(type);
  return status;
}

static int add_class_names(PyObject* module) {
  PyObject* const names = PyTuple_New(kNumClasses);
  for (int i = 0; names != NULL && i < kNumClasses; ++i)
    PyTuple_SetItem(names, i, PyUnicode_FromString(kClasses[i].name));
  const int status = names == NULL ? -1 : PyModule_AddObjectRef(module, "CLASSES", names);
  Py_XDECREF(names);
  return status;
}

int operator_init(PyObject* module) {
  operator_type = (PyTypeObject*)PyType_FromModuleAndSpec(module, &base_spec, NULL);
  if (operator_type == NULL || PyModule_AddType(module, operator_type) != 0) return -1;
  for (int i = 0; i < kNumClasses; ++i) {
    if (kClasses[i].num_calls > MAX_CALLS || add_class(module, &kClasses[i]) != 0) return -1;
  }
  if (add_class_names(module) != 0) return -1;
  return PyModule_AddFunctions(module, functions);
}
