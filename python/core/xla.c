/* Operators as foreign functions of XLA, by which JAX calls them inside jit: one handler for GPUs,
 * one for the host, where operators are of a simulated device. What a call is of comes as a text,
 * the attribute "call", and was made known under it while the program was traced; what comes from
 * elsewhere, such as a program that an earlier process has compiled, is found by the same text. */
#include "calls.h"
#include "xla_abi.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ORDINALS = 32, XLA_SLOTS = 1024 };

/* Lives until the process ends: a compiled program may always ask for it. */
typedef struct XlaCall {
  struct XlaCall* next; /* with the same slot */
  XlaSpan text;
  Known known;                          /* where addresses go */
  _Atomic(Operator*) ops[MAX_ORDINALS]; /* by the number of the device */
  PyObject* make;                       /* (ordinal) -> operator */
  PyObject* on_host; /* (*addresses) makes the call; None: there is no simulated device */
  int64_t num_inputs, num_outputs;
} XlaCall;

static _Atomic(XlaCall*) slots[XLA_SLOTS];

static uint64_t hash_of(XlaSpan text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (size_t i = 0; i < text.size; ++i) hash = (hash ^ (uint8_t)text.text[i]) * 0x100000001b3u;
  return hash % XLA_SLOTS;
}

static XlaCall* find_call(XlaSpan text) {
  XlaCall* call = atomic_load(&slots[hash_of(text)]);
  while (call != NULL &&
         (call->text.size != text.size || memcmp(call->text.text, text.text, text.size) != 0))
    call = call->next;
  return call;
}

/* ---- failures */

static XlaError* fail(const XlaFrame* frame, int code, const char* message) {
  XlaErrorCreate arguments = {sizeof arguments, NULL, message, code};
  return frame->api->error_create(&arguments);
}

/* Python's exception, which is cleared; with the GIL. */
static XlaError* fail_with_exception(const XlaFrame* frame) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  PyObject* const text = value == NULL ? NULL : PyObject_Str(value);
  const char* const words = text == NULL ? NULL : PyUnicode_AsUTF8AndSize(text, NULL);
  XlaError* const error =
      fail(frame, XLA_FAILED_PRECONDITION, words == NULL ? "tilewright: a call failed" : words);
  Py_XDECREF(text);
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(traceback);
  PyErr_Clear();
  return error;
}

/* ---- a call */

static bool is_asked_for_metadata(const XlaFrame* frame) {
  for (XlaExtension* at = frame->extensions; at != NULL; at = at->next) {
    if (at->type != XLA_EXTENSION_METADATA) continue;
    XlaVersion* const version = &((XlaMetadataExtension*)at)->metadata->version;
    version->major = XLA_MAJOR;
    version->minor = XLA_MINOR;
    return true;
  }
  return false;
}

static const XlaSpan* text_of_call(const XlaAttributes* attributes) {
  for (int64_t i = 0; i < attributes->size; ++i)
    if (attributes->types[i] == XLA_ATTRIBUTE_STRING && attributes->names[i]->size == 4 &&
        memcmp(attributes->names[i]->text, "call", 4) == 0)
      return attributes->items[i];
  return NULL;
}

/* Addresses in the order of arguments, then results; false: there are others than the call has. */
static bool read_addresses(const XlaFrame* frame, const XlaCall* call, void** addresses) {
  const XlaBuffers* const both[2] = {&frame->arguments, &frame->results};
  if (both[0]->size != call->num_inputs || both[1]->size != call->num_outputs) return false;
  for (int side = 0; side < 2; ++side)
    for (int64_t i = 0; i < both[side]->size; ++i) {
      if (both[side]->types[i] != XLA_BUFFER) return false;
      *addresses++ = ((const XlaBuffer*)both[side]->items[i])->data;
    }
  return true;
}

/* The call of a frame with its addresses; NULL: `error` says why not. */
static XlaCall* begin(const XlaFrame* frame, void** addresses, XlaError** error) {
  const XlaSpan* text;
  XlaCall* call;
  if (frame->api->version.major != XLA_MAJOR || frame->struct_size < sizeof *frame) {
    *error = fail(frame, XLA_FAILED_PRECONDITION,
                  "tilewright: this XLA has another interface of foreign functions than version 0; "
                  "use a jaxlib that tilewright names");
    return NULL;
  }
  if ((text = text_of_call(&frame->attributes)) == NULL || (call = find_call(*text)) == NULL) {
    *error = fail(frame, XLA_INVALID_ARGUMENT,
                  "tilewright: the call of this program is not known in this process; trace it "
                  "here, by the functions of tilewright.jax");
    return NULL;
  }
  if (read_addresses(frame, call, addresses)) return call;
  *error = fail(frame, XLA_INVALID_ARGUMENT,
                "tilewright: another number of buffers than the call has; expected what the "
                "functions of tilewright.jax hand over");
  return NULL;
}

static Operator* make_operator(XlaCall* call, int32_t ordinal) {
  Operator* op = atomic_load(&call->ops[ordinal]);
  if (op != NULL) return op;
  PyObject* const made = PyObject_CallFunction(call->make, "i", (int)ordinal);
  if (made != NULL && !PyObject_TypeCheck(made, operator_type))
    PyErr_SetString(PyExc_TypeError, "tilewright: what was made is no operator");
  if (PyErr_Occurred()) return Py_XDECREF(made), NULL;
  Operator* expected = NULL; /* making lets go of the GIL: another thread may have been faster */
  if (atomic_compare_exchange_strong(&call->ops[ordinal], &expected, (Operator*)made))
    return (Operator*)made;
  Py_DECREF(made);
  return expected;
}

static XlaError* operator_of(const XlaFrame* frame, XlaCall* call, Operator** op) {
  XlaOrdinalGet got = {sizeof got, NULL, frame->context, 0};
  const bool has_ordinals = frame->api->struct_size >= sizeof *frame->api;
  XlaError* error = has_ordinals ? frame->api->ordinal_get(&got) : NULL;
  if (error != NULL) return error;
  if (got.ordinal < 0 || got.ordinal >= MAX_ORDINALS)
    return fail(frame, XLA_INVALID_ARGUMENT, "tilewright: more than 32 devices");
  *op = atomic_load(&call->ops[got.ordinal]);
  if (*op != NULL) return NULL;
  const PyGILState_STATE state = PyGILState_Ensure();
  *op = make_operator(call, got.ordinal);
  if (*op == NULL) error = fail_with_exception(frame);
  PyGILState_Release(state);
  return error;
}

static XlaError* run_on_gpu(XlaFrame* frame) {
  if (is_asked_for_metadata(frame)) return NULL;
  void* addresses[MAX_TENSORS];
  XlaError* error = NULL;
  Operator* op = NULL;
  XlaCall* const call = begin(frame, addresses, &error);
  if (call == NULL || (error = operator_of(frame, call, &op)) != NULL) return error;
  XlaStreamGet got = {sizeof got, NULL, frame->context, NULL};
  if ((error = frame->api->stream_get(&got)) != NULL) return error;
  AnyArguments arguments;
  calls_fill(&call->known, &arguments, addresses);
  memcpy(arguments.bytes + call->known.stream_offset, &got.stream, sizeof got.stream);
  if (op->kind->calls[0].call(op->handle, &arguments) == TW_OK) return NULL;
  return fail(frame, XLA_INTERNAL, tw_last_error());
}

static XlaError* run_on_host(XlaFrame* frame) {
  if (is_asked_for_metadata(frame)) return NULL;
  void* addresses[MAX_TENSORS];
  XlaError* error = NULL;
  XlaCall* const call = begin(frame, addresses, &error);
  if (call == NULL) return error;
  const PyGILState_STATE state = PyGILState_Ensure();
  const Py_ssize_t count = (Py_ssize_t)(call->num_inputs + call->num_outputs);
  PyObject* const tuple = PyTuple_New(count);
  for (Py_ssize_t i = 0; tuple != NULL && i < count; ++i)
    PyTuple_SetItem(tuple, i, PyLong_FromVoidPtr(addresses[i]));
  PyObject* const done = PyErr_Occurred() ? NULL : PyObject_Call(call->on_host, tuple, NULL);
  if (done == NULL) error = fail_with_exception(frame);
  Py_XDECREF(done);
  Py_XDECREF(tuple);
  PyGILState_Release(state);
  return error;
}

/* ---- functions of Python */

static PyObject* xla_call(PyObject* module, PyObject* args) {
  (void)module;
  const char* text;
  Py_ssize_t size;
  PyObject *op, *names, *make, *on_host;
  int inputs, outputs;
  if (!PyArg_ParseTuple(args, "s#O!O!iiOO:xla_call", &text, &size, operator_type, &op, &PyDict_Type,
                        &names, &inputs, &outputs, &make, &on_host))
    return NULL;
  const XlaSpan given = {text, (size_t)size};
  if (find_call(given) != NULL) return Py_NewRef(Py_None);
  if (inputs < 0 || outputs < 0 || inputs + outputs >= MAX_TENSORS ||
      ((Operator*)op)->kind->num_calls == 0)
    return raise_invalid("xla_call: %d inputs and %d outputs; expected at most %d of an operator",
                         inputs, outputs, (int)MAX_TENSORS - 1);
  XlaCall* const call = calloc(1, sizeof *call);
  char* const copy = malloc((size_t)size + 1);
  bool is_good = call != NULL && copy != NULL;
  if (!is_good) PyErr_NoMemory();
  if (is_good) {
    call->known.op = (Operator*)Py_NewRef(op);
    call->known.members = PyDict_New();
    is_good = call->known.members != NULL && calls_place(&call->known, names, inputs + outputs);
    Py_CLEAR(call->known.members);
  }
  if (!is_good) {
    if (call != NULL) Py_XDECREF(call->known.op);
    free(copy);
    free(call);
    return NULL;
  }
  memcpy(copy, text, (size_t)size);
  call->text = (XlaSpan){copy, (size_t)size};
  call->make = Py_NewRef(make);
  call->on_host = Py_NewRef(on_host);
  call->num_inputs = inputs;
  call->num_outputs = outputs;
  const int32_t ordinal = call->known.op->device->ordinal;
  if (ordinal >= 0 && ordinal < MAX_ORDINALS) atomic_store(&call->ops[ordinal], call->known.op);
  call->next = atomic_load(&slots[hash_of(call->text)]);
  atomic_store(&slots[hash_of(call->text)], call); /* with the GIL, so nobody else adds one */
  return Py_NewRef(Py_None);
}

static PyObject* xla_handlers(PyObject* module, PyObject* unused) {
  (void)module;
  (void)unused;
  XlaError* (*const handlers[2])(XlaFrame*) = {run_on_gpu, run_on_host};
  PyObject* capsules[2] = {NULL, NULL};
  for (int i = 0; i < 2; ++i) {
    void* address;
    memcpy(&address, &handlers[i], sizeof address);
    capsules[i] = PyCapsule_New(address, NULL, NULL);
  }
  if (capsules[0] != NULL && capsules[1] != NULL)
    return Py_BuildValue("(NN)", capsules[0], capsules[1]);
  Py_XDECREF(capsules[0]);
  Py_XDECREF(capsules[1]);
  return NULL;
}

static PyMethodDef functions[] = {
    {"xla_call", xla_call, METH_VARARGS,
     "xla_call(text, operator, names, inputs, outputs, make, on_host, /)\n--\n\n"
     "Makes a call known to the handlers under a text. names: {member: buffer}, arguments of the\n"
     "program first, then results; make(ordinal): the operator of another device; "
     "on_host(*addresses):"
     "\nthe call with buffers of the host."},
    {"xla_handlers", xla_handlers, METH_NOARGS,
     "xla_handlers()\n--\n\nThe handlers for GPUs and for the host, as capsules."},
    {NULL, NULL, 0, NULL}};

int xla_init(PyObject* module) {
  return PyModule_AddFunctions(module, functions);
}
