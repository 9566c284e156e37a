/* Plans without operators: what tw_NAME_plan() says, as dicts. */
#include "core.h"

#include <stdlib.h>
#include <string.h>

typedef tw_status (*Row)(const tw_plan* plan, size_t index, void* row);

/* The rows of a plan: reasons, candidates or launches. */
static PyObject* rows(const tw_plan* plan, size_t count, const char* struct_name, Row row) {
  const Struct* const type = struct_named(struct_name);
  PyObject* list = PyList_New(0);
  void* const given = malloc(type->size);
  for (size_t i = 0; list != NULL && given != NULL && i < count; ++i) {
    fill_begin(type, given);
    const tw_status status = row(plan, i, given);
    PyObject* const dict =
        status == TW_OK ? struct_to_dict(type, given, false) : raise_status(status, NULL);
    if (dict == NULL || PyList_Append(list, dict) != 0) Py_CLEAR(list);
    Py_XDECREF(dict);
  }
  if (given == NULL) Py_CLEAR(list);
  free(given);
  return list;
}

static tw_status reason(const tw_plan* plan, size_t index, void* row) {
  return tw_plan_reason(plan, index, row);
}
static tw_status candidate(const tw_plan* plan, size_t index, void* row) {
  return tw_plan_candidate(plan, index, row);
}
static tw_status launch(const tw_plan* plan, size_t index, void* row) {
  return tw_plan_launch(plan, index, row);
}

static PyObject* plan_to_dict(const tw_plan* plan) {
  return Py_BuildValue(
      "{sisssssnsdsdsssNsNsN}", "status", (int)tw_plan_status(plan), "text", tw_plan_text(plan),
      "kernel", tw_plan_kernel(plan), "workspace_bytes", (Py_ssize_t)tw_plan_workspace_bytes(plan),
      "flops", tw_plan_flops(plan), "bytes", tw_plan_bytes(plan), "assumption",
      tw_plan_assumption(plan), "reasons", rows(plan, tw_plan_num_reasons(plan), "Reason", reason),
      "candidates", rows(plan, tw_plan_num_candidates(plan), "Candidate", candidate), "launches",
      rows(plan, tw_plan_num_launches(plan), "Launch", launch));
}

static PyObject* plan(PyObject* module, PyObject* args) {
  (void)module;
  PyObject *type, *on, *inputs;
  if (!PyArg_ParseTuple(args, "OOO:plan", &type, &on, &inputs)) return NULL;
  const Class* const kind = PyType_Check(type) ? class_of((PyTypeObject*)type) : NULL;
  if (kind == NULL || kind->plan == NULL)
    return PyErr_Clear(), PyErr_Format(PyExc_TypeError, "%R is no operator", type);
  Device* const device = as_device(on);
  if (device == NULL) return NULL;
  void* const given = malloc(kind->plan_inputs->size);
  if (given == NULL) return PyErr_NoMemory();
  Fill fill = {.what = kind->name, .device = device};
  fill_begin(kind->plan_inputs, given);
  PyObject* found = NULL;
  if (fill_from_mapping(&fill, kind->plan_inputs, given, inputs)) {
    tw_plan* made = NULL;
    tw_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = kind->plan(device->handle, given, &made);
    Py_END_ALLOW_THREADS;
    found = made == NULL ? raise_status(status, NULL) : plan_to_dict(made);
    tw_plan_destroy(made);
  }
  fill_end(&fill);
  free(given);
  return found;
}

static PyMethodDef functions[] = {
    {"plan", plan, METH_VARARGS,
     "plan(operator, device, inputs, /)\n--\n\n"
     "What tw_NAME_plan() says, as a dict. Inputs: {\"problem\": {...}}, and what else it takes."},
    {NULL, NULL, 0, NULL}};

int plan_init(PyObject* module) {
  return PyModule_AddFunctions(module, functions);
}
