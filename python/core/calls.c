/* _core.Calls: calls that were made before. Devices, types, shapes and strides of tensors, and the
 * options, are a key, which leads to an operator and to where the addresses go. One pass over the
 * arguments reads them, finds the operator and fills its struct; nothing is checked twice. */
#include "torch_abi.h"

#include <stdlib.h>
#include <string.h>

static PyObject* requires_grad; /* the word */
PyTypeObject* calls_type;

Known* calls_find(const Calls* self, const Key* key) {
  Known* known = self->slots[key->hash % SLOTS];
  while (known != NULL && (known->hash != key->hash || known->key_size != key->size ||
                           memcmp(known->key, key->bytes, key->size) != 0))
    known = known->next;
  return known;
}

/* ---- whether torch has nothing to say about a call */

/* 1, 0, or 0 with what went wrong forgotten. */
static bool is_true(PyObject* function) {
  PyObject* const said = PyObject_CallNoArgs(function);
  const int truth = said == NULL ? 1 : said == Py_None ? 0 : PyObject_IsTrue(said);
  Py_XDECREF(said);
  PyErr_Clear();
  return truth != 0;
}

bool calls_are_watched(const Calls* self) {
  if (self->num_guards != 0 && torch_abi_sees_watchers()) return torch_abi_is_watched();
  for (int i = 0; i < self->num_guards; ++i)
    if (is_true(self->guards[i])) return true;
  return false;
}

static bool has_grad(const Calls* self) {
  if (self->num_guards != 0 && torch_abi_sees_watchers()) return torch_abi.grad_is_enabled();
  return is_true(self->grad_enabled);
}

static bool is_direct(const Calls* self, PyObject* const* args) {
  if (calls_are_watched(self)) return false;
  if (!has_grad(self)) return true;
  for (int i = 0; i < self->num_tensors; ++i) {
    if (args[i] == Py_None) continue;
    PyObject* const wants = PyObject_GetAttr(args[i], requires_grad);
    Py_XDECREF(wants);
    PyErr_Clear();
    if (wants != Py_False) return false;
  }
  return true;
}

/* ---- workspaces */

static PyObject* new_workspace(Calls* self, size_t bytes, PyObject* like, void** address) {
  PyObject* const size = PyLong_FromSize_t(bytes);
  PyObject* const made =
      size == NULL ? NULL : PyObject_CallFunctionObjArgs(self->allocate, size, like, NULL);
  Tensor tensor;
  Py_XDECREF(size);
  if (made == NULL || !tensor_read(made, "workspace", &tensor)) {
    Py_XDECREF(made);
    return NULL;
  }
  *address = tensor_address(&tensor);
  tensor_release(&tensor);
  return made;
}

static Workspace* workspace_of(Calls* self, int32_t ordinal, void* stream) {
  int i = 0;
  while (i < MAX_WORKSPACES && self->workspaces[i].tensor != NULL &&
         (self->workspaces[i].stream != stream || self->workspaces[i].ordinal != ordinal))
    ++i;
  return i < MAX_WORKSPACES ? &self->workspaces[i] : NULL;
}

/* A new reference to the memory. A graph that is being captured gets its own: it may be replayed
 * on another stream. */
static PyObject* borrow_workspace(Calls* self, size_t bytes, int32_t ordinal, void* stream,
                                  PyObject* like, void** address) {
  Workspace* const kept = bytes > LARGEST_KEPT || is_true(self->is_capturing)
                              ? NULL
                              : workspace_of(self, ordinal, stream);
  if (kept == NULL) return new_workspace(self, bytes, like, address);
  if (kept->tensor == NULL || kept->bytes < bytes) {
    PyObject* const made = new_workspace(self, bytes, like, address);
    if (made == NULL) return NULL;
    Py_XDECREF(kept->tensor);
    *kept = (Workspace){stream, ordinal, bytes, *address, made};
  }
  *address = kept->address;
  return Py_NewRef(kept->tensor);
}

/* ---- a call */

void calls_fill(const Known* known, AnyArguments* arguments, void* const* addresses) {
  memcpy(arguments, &known->arguments, known->op->kind->calls[0].arguments->size);
  for (int i = 0; i < known->num_places; ++i)
    memcpy(arguments->bytes + known->places[i].offset, &addresses[known->places[i].position],
           sizeof(void*));
}

/* Results that are not given are made; `made` holds what is new, and false means an exception. */
static bool make_results(const Known* known, PyObject* const* args, PyObject** made,
                         void** addresses) {
  for (int i = 0; i < known->num_results; ++i) {
    const int at = known->results[i];
    made[i] = args[at] != Py_None ? Py_NewRef(args[at])
                                  : PyObject_CallFunctionObjArgs(known->makers[at], args[0], NULL);
    Tensor tensor;
    if (made[i] == NULL) return false;
    if (args[at] != Py_None) continue;
    if (!tensor_read(made[i], "a result", &tensor)) return false;
    addresses[at] = tensor_address(&tensor);
    tensor_release(&tensor);
  }
  return true;
}

bool calls_launch_on_gpu(Calls* self, const Known* known, void* const* addresses, PyObject* like,
                         const DLExchange* exchange) {
  AnyArguments arguments;
  void *stream = NULL, *workspace = NULL;
  const int32_t ordinal = known->op->device->ordinal;
  if (exchange->current_stream == NULL || exchange->current_stream(DL_CUDA, ordinal, &stream) != 0)
    return false;
  PyObject* held = NULL;
  if (known->workspace_bytes != 0) {
    held = borrow_workspace(self, known->workspace_bytes, ordinal, stream, like, &workspace);
    if (held == NULL) return false;
  }
  calls_fill(known, &arguments, addresses);
  if (known->workspace_bytes != 0)
    memcpy(arguments.bytes + known->workspace_offset, &workspace, sizeof workspace);
  memcpy(arguments.bytes + known->stream_offset, &stream, sizeof stream);
  const bool is_done =
      self->is_dry || known->op->kind->calls[0].call(known->op->handle, &arguments) == TW_OK;
  Py_XDECREF(held);
  return is_done;
}

bool calls_launch_on_host(const Known* known, PyObject* tensors) {
  PyObject* const module = tensors == NULL ? NULL : PyImport_ImportModule("tilewright._staging");
  PyObject* const done = module == NULL
                             ? NULL
                             : PyObject_CallMethod(module, "call_known", "OOOO", known->op,
                                                   known->names, tensors, known->members);
  Py_XDECREF(done);
  Py_XDECREF(module);
  Py_XDECREF(tensors);
  return done != NULL;
}

static bool launch_on_host(const Calls* self, const Known* known, PyObject* const* args,
                           PyObject** made) {
  if (self->is_dry) return true;
  PyObject* const given = PyTuple_New(self->num_tensors);
  for (int i = 0; given != NULL && i < self->num_tensors; ++i)
    PyTuple_SetItem(given, i, Py_NewRef(args[i]));
  for (int i = 0; given != NULL && i < known->num_results; ++i)
    PyTuple_SetItem(given, known->results[i], Py_NewRef(made[i]));
  return calls_launch_on_host(known, given);
}

static PyObject* results_of(PyObject** made, int count) {
  if (count == 1) return Py_NewRef(made[0]);
  PyObject* const tuple = PyTuple_New(count);
  for (int i = 0; tuple != NULL && i < count; ++i) PyTuple_SetItem(tuple, i, Py_NewRef(made[i]));
  return tuple;
}

static void forget(Known* known) {
  known->is_forgotten = true;
  if (known->users != 0) return;
  Py_XDECREF(known->op);
  Py_XDECREF(known->names);
  Py_XDECREF(known->members);
  Py_XDECREF(known->like);
  free(known->made);
  for (int i = 0; i < MAX_TENSORS; ++i) Py_XDECREF(known->makers[i]);
  free(known->key);
  free(known);
}

void calls_leave(Known* known) {
  if (--known->users == 0 && known->is_forgotten) forget(known);
}

static PyObject* run_known(Calls* self, const Known* known, PyObject* const* args, void** addresses,
                           const DLExchange* exchange) {
  PyObject* made[MAX_RESULTS] = {NULL};
  const bool is_on_gpu = known->op->device->ordinal >= 0;
  const bool is_done = make_results(known, args, made, addresses) &&
                       (is_on_gpu ? calls_launch_on_gpu(self, known, addresses, args[0], exchange)
                                  : launch_on_host(self, known, args, made));
  PyObject* const result = is_done                    ? results_of(made, known->num_results)
                           : PyErr_Occurred() != NULL ? NULL
                                                      : Py_NewRef(Py_None);
  for (int i = 0; i < known->num_results; ++i) Py_XDECREF(made[i]);
  return result;
}

/* None: the caller does the call in the long way, which also says what is wrong with it. */
static PyObject* run(PyObject* object, PyObject* const* args, Py_ssize_t count) {
  Calls* const self = (Calls*)object;
  Key key;
  void* addresses[MAX_TENSORS];
  const DLExchange* exchange = NULL;
  if (is_child_of_fork() || !calls_read(self, args, count, &key, addresses, &exchange))
    return Py_NewRef(Py_None);
  Known* const known = calls_find(self, &key);
  if (known == NULL) return Py_NewRef(Py_None);
  ++known->users; /* what is called may let go of the GIL, and another thread forget this */
  PyObject* const result = is_direct(self, args) ? run_known(self, known, args, addresses, exchange)
                                                 : Py_NewRef(Py_None);
  calls_leave(known);
  return result;
}

/* ---- what is known */

static PyObject* clear(PyObject* object, PyObject* unused) {
  (void)unused;
  Calls* const self = (Calls*)object;
  for (int i = 0; i < SLOTS; ++i) {
    Known* known = self->slots[i];
    self->slots[i] = NULL;
    while (known != NULL) {
      Known* const next = known->next;
      forget(known);
      known = next;
    }
  }
  self->count = 0;
  for (int i = 0; i < MAX_WORKSPACES; ++i) {
    Workspace* const kept = &self->workspaces[i];
    Py_CLEAR(kept->tensor);
    kept->bytes = 0;
  }
  return Py_NewRef(Py_None);
}

/* "window.pages": the offset of a member; false with an exception if there is none. */
static bool offset_of(const Struct* type, const char* path, size_t* offset) {
  const char* const dot = strchr(path, '.');
  const size_t size = dot == NULL ? strlen(path) : (size_t)(dot - path);
  for (int i = 0; i < type->num_members; ++i) {
    const Member* const member = &type->members[i];
    if (strncmp(member->name, path, size) != 0 || member->name[size] != '\0') continue;
    *offset += member->offset;
    if (dot != NULL)
      return member->kind == KIND_STRUCT && offset_of(member->inner, dot + 1, offset);
    return member->kind == KIND_INPUT || member->kind == KIND_OUTPUT || member->kind == KIND_STREAM;
  }
  return false;
}

bool calls_place(Known* known, PyObject* names, int num_tensors) {
  const Struct* const type = known->op->kind->calls[0].arguments;
  PyObject *name, *position;
  Py_ssize_t at = 0;
  Fill fill = {.what = known->op->kind->calls[0].what, .device = known->op->device};
  fill_begin(type, &known->arguments);
  const bool is_filled = fill_from_mapping(&fill, type, &known->arguments, known->members);
  fill_end(&fill);
  if (!is_filled) return false;
  while (PyDict_Next(names, &at, &name, &position)) {
    Place* const place = &known->places[known->num_places];
    const char* const path = PyUnicode_AsUTF8AndSize(name, NULL);
    place->offset = 0;
    place->position = (int)PyLong_AsLong(position);
    if (PyErr_Occurred()) return false;
    if (place->position < 0 || place->position >= num_tensors ||
        known->num_places == MAX_TENSORS - 1 || !offset_of(type, path, &place->offset))
      return raise_invalid("Calls.add: %s has no tensor %s, or there is no argument %d",
                           known->op->kind->calls[0].what, path, place->position),
             false;
    ++known->num_places;
  }
  known->workspace_offset = known->stream_offset = 0;
  if (!offset_of(type, "stream", &known->stream_offset) ||
      (!offset_of(type, "workspace", &known->workspace_offset) && known->workspace_bytes != 0))
    return raise_invalid("Calls.add: %s has no stream", known->op->kind->calls[0].what), false;
  return true;
}

static bool add_results(const Calls* self, Known* known, PyObject* results) {
  PyObject *position, *maker;
  Py_ssize_t at = 0;
  while (PyDict_Next(results, &at, &position, &maker)) {
    const long place = PyLong_AsLong(position);
    if (PyErr_Occurred()) return false;
    if (place < 0 || place >= self->num_tensors || known->num_results == MAX_RESULTS)
      return raise_invalid("Calls.add: no result can be argument %ld", place), false;
    known->results[known->num_results++] = (int)place;
    known->makers[place] = Py_NewRef(maker);
  }
  return true;
}

Known* calls_insert(Calls* self, const Key* key, Operator* op, size_t workspace_bytes,
                    PyObject* names, PyObject* results, PyObject* members) {
  Known* const known = calloc(1, sizeof *known);
  if (known == NULL) return PyErr_NoMemory(), NULL;
  known->op = (Operator*)Py_NewRef((PyObject*)op);
  known->names = Py_NewRef(names);
  known->members = Py_NewRef(members);
  known->workspace_bytes = workspace_bytes;
  known->key = malloc(key->size);
  if (known->key == NULL || !calls_place(known, names, self->num_tensors) ||
      (results != NULL && !add_results(self, known, results))) {
    if (!PyErr_Occurred()) PyErr_NoMemory();
    return forget(known), NULL;
  }
  memcpy(known->key, key->bytes, key->size);
  known->hash = key->hash;
  known->key_size = key->size;
  if (self->count >= self->limit) Py_DECREF(clear((PyObject*)self, NULL));
  known->next = self->slots[key->hash % SLOTS];
  self->slots[key->hash % SLOTS] = known;
  ++self->count;
  return known;
}

static PyObject* add(PyObject* object, PyObject* args) {
  Calls* const self = (Calls*)object;
  PyObject *call, *op, *names, *results, *members;
  Py_ssize_t bytes;
  if (!PyArg_ParseTuple(args, "O!O!nO!O!O!:add", &PyTuple_Type, &call, operator_type, &op, &bytes,
                        &PyDict_Type, &names, &PyDict_Type, &results, &PyDict_Type, &members))
    return NULL;
  const Py_ssize_t count = PyTuple_Size(call);
  PyObject** const items = calloc((size_t)count + 1, sizeof *items);
  void* addresses[MAX_TENSORS];
  const DLExchange* exchange = NULL;
  Key key;
  if (items == NULL) return PyErr_NoMemory();
  for (Py_ssize_t i = 0; i < count; ++i) items[i] = PyTuple_GetItem(call, i);
  const bool is_read = calls_read(self, items, count, &key, addresses, &exchange);
  free(items);
  if (!is_read || ((Operator*)op)->kind->num_calls == 0) return Py_NewRef(Py_False);
  if (calls_find(self, &key) != NULL) return Py_NewRef(Py_True);
  const Known* const known =
      calls_insert(self, &key, (Operator*)op, (size_t)bytes, names, results, members);
  return known == NULL ? NULL : Py_NewRef(Py_True);
}

/* {member: address} that a call would hand over; None where run() gives None. */
static PyObject* addresses_of(PyObject* object, PyObject* const* args, Py_ssize_t count) {
  const Calls* const self = (Calls*)object;
  Key key;
  void* addresses[MAX_TENSORS];
  const DLExchange* exchange = NULL;
  const Known* const known =
      calls_read(self, args, count, &key, addresses, &exchange) ? calls_find(self, &key) : NULL;
  if (known == NULL || !is_direct(self, args)) return Py_NewRef(Py_None);
  AnyArguments arguments;
  calls_fill(known, &arguments, addresses);
  PyObject* const found = PyDict_New();
  PyObject *name, *position;
  Py_ssize_t at = 0;
  for (int i = 0; found != NULL && PyDict_Next(known->names, &at, &name, &position); ++i) {
    void* address;
    memcpy(&address, arguments.bytes + known->places[i].offset, sizeof address);
    PyObject* const number = PyLong_FromVoidPtr(address);
    if (number != NULL) PyDict_SetItem(found, name, number);
    Py_XDECREF(number);
  }
  return found;
}

/* ---- the class */

static bool read_functions(Calls* self, PyObject* plain, PyObject* guards) {
  if (PyTuple_Size(plain) != 2 || PyTuple_Size(guards) > MAX_GUARDS)
    return raise_invalid("Calls: expected two types, and at most %d guards", (int)MAX_GUARDS),
           false;
  for (int i = 0; i < 2; ++i) {
    if (!PyType_Check(PyTuple_GetItem(plain, i)))
      return PyErr_Format(PyExc_TypeError, "Calls: expected types"), false;
    self->plain[i] = (PyTypeObject*)Py_NewRef(PyTuple_GetItem(plain, i));
  }
  self->num_guards = (int)PyTuple_Size(guards);
  for (int i = 0; i < self->num_guards; ++i)
    self->guards[i] = Py_NewRef(PyTuple_GetItem(guards, i));
  return true;
}

static PyObject* calls_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static char* names[] = {"tensors",      "limit",        "plain",    "guards",
                          "grad_enabled", "is_capturing", "allocate", NULL};
  int tensors, limit;
  PyObject *plain, *guards, *grad_enabled, *is_capturing, *allocate;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "iiO!O!OOO:Calls", names, &tensors, &limit,
                                   &PyTuple_Type, &plain, &PyTuple_Type, &guards, &grad_enabled,
                                   &is_capturing, &allocate))
    return NULL;
  if (tensors < 1 || tensors >= MAX_TENSORS || limit < 1)
    return raise_invalid("Calls: %d tensors, %d calls; expected 1 to %d, and at least 1", tensors,
                         limit, (int)MAX_TENSORS - 1);
  Calls* self = (Calls*)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
  if (self == NULL) return NULL;
  self->num_tensors = tensors;
  self->limit = limit;
  self->grad_enabled = Py_NewRef(grad_enabled);
  self->is_capturing = Py_NewRef(is_capturing);
  self->allocate = Py_NewRef(allocate);
  if (!read_functions(self, plain, guards)) Py_CLEAR(self);
  return (PyObject*)self;
}

static void calls_dealloc(PyObject* object) {
  Calls* const self = (Calls*)object;
  PyTypeObject* const type = Py_TYPE(object);
  Py_DECREF(clear(object, NULL));
  for (int i = 0; i < 2; ++i) Py_XDECREF(self->plain[i]);
  for (int i = 0; i < self->num_guards; ++i) Py_XDECREF(self->guards[i]);
  Py_XDECREF(self->grad_enabled);
  Py_XDECREF(self->is_capturing);
  Py_XDECREF(self->allocate);
  ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
  Py_DECREF(type);
}

static Py_ssize_t calls_length(PyObject* object) {
  return ((const Calls*)object)->count;
}

static PyObject* get_dry(PyObject* object, void* unused) {
  (void)unused;
  return PyBool_FromLong(((const Calls*)object)->is_dry);
}

static int set_dry(PyObject* object, PyObject* value, void* unused) {
  (void)unused;
  ((Calls*)object)->is_dry = value == Py_True;
  return 0;
}

static PyMethodDef methods[] = {
    {"run", (PyCFunction)(void*)run, METH_FASTCALL,
     "run(*arguments)\n--\n\nWhat add() has made known: its results, or None for any other call."},
    {"add", add, METH_VARARGS,
     "add(arguments, operator, workspace_bytes, names, results, members, /)\n--\n\n"
     "names: {member: argument}; results: {argument: function(first tensor) that makes it};\n"
     "members: {member: value} of those that are no tensors."},
    {"addresses", (PyCFunction)(void*)addresses_of, METH_FASTCALL,
     "addresses(*arguments)\n--\n\n{member: address} that run() would hand over, or None."},
    {"clear", clear, METH_NOARGS, "clear()\n--\n\nForgets all calls, and frees workspaces."},
    {NULL, NULL, 0, NULL}};
static PyGetSetDef attributes[] = {
    {"is_dry", get_dry, set_dry, "Whether run() stops before the kernel: to measure it.", NULL},
    {NULL, NULL, NULL, NULL, NULL}};
static PyType_Slot slots[] = {{Py_tp_doc, "Calls that were made before, by their arguments."},
                              {Py_tp_new, calls_new},
                              {Py_tp_dealloc, calls_dealloc},
                              {Py_tp_methods, methods},
                              {Py_tp_getset, attributes},
                              {Py_sq_length, calls_length},
                              {0, NULL}};
static PyType_Spec spec = {"tilewright._core.Calls", sizeof(Calls), 0, Py_TPFLAGS_DEFAULT, slots};

int calls_init(PyObject* module) {
  requires_grad = PyUnicode_InternFromString("requires_grad");
  PyObject* const type = PyType_FromModuleAndSpec(module, &spec, NULL);
  calls_type = (PyTypeObject*)type; /* for as long as the process lives */
  return type == NULL || requires_grad == NULL ? -1 : PyModule_AddType(module, calls_type);
}
