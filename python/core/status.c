#include "core.h"

#include <pthread.h>
#include <stdarg.h>
#include <string.h>

static PyObject* from_status; /* tilewright._errors.from_status */
static bool is_in_child;
static bool is_leaving;

static PyObject* raise_with(int status, PyObject* text, PyObject* note) {
  PyObject* error = NULL;
  if (text != NULL && from_status == NULL) {
    PyObject* errors = PyImport_ImportModule("tilewright._errors");
    if (errors != NULL) from_status = PyObject_GetAttrString(errors, "from_status");
    Py_XDECREF(errors);
  }
  if (text != NULL && from_status != NULL)
    error = PyObject_CallFunction(from_status, "iOO", status, text, note ? note : Py_None);
  if (error != NULL) PyErr_SetObject((PyObject*)Py_TYPE(error), error);
  Py_XDECREF(error);
  Py_XDECREF(text);
  Py_XDECREF(note);
  return NULL;
}

PyObject* raise_status(tw_status status, PyObject* note) {
  const char* const text = tw_last_error();
  return raise_with((int)status, PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace"),
                    note);
}

PyObject* raise_invalid(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  PyObject* text = PyUnicode_FromFormatV(format, arguments);
  va_end(arguments);
  return raise_with(TW_INVALID_ARGUMENT, text, NULL);
}

bool is_child_of_fork(void) {
  return is_in_child;
}

bool is_usable(void) {
  if (!is_in_child) return true;
  PyErr_SetString(PyExc_RuntimeError,
                  "tilewright: this process is the child of a fork, and the driver does not work "
                  "in one; start processes by multiprocessing's \"spawn\" or \"forkserver\"");
  return false;
}

bool is_exiting(void) {
  return is_leaving;
}

static void note_fork(void) {
  is_in_child = true;
}

void status_watch_forks(void) {
  static bool is_watching;
  if (!is_watching) pthread_atfork(NULL, NULL, note_fork);
  is_watching = true;
}

static PyObject* note_exit(PyObject* self, PyObject* unused) {
  (void)self;
  (void)unused;
  is_leaving = true;
  Py_RETURN_NONE;
}

static PyMethodDef exit_method = {"_note_exit", note_exit, METH_NOARGS, NULL};

int status_init(PyObject* module) {
  PyObject* atexit = PyImport_ImportModule("atexit");
  PyObject* function = PyCFunction_NewEx(&exit_method, NULL, module);
  PyObject* done = NULL;
  if (atexit != NULL && function != NULL)
    done = PyObject_CallMethod(atexit, "register", "O", function);
  Py_XDECREF(done);
  Py_XDECREF(function);
  Py_XDECREF(atexit);
  return done == NULL ? -1 : 0;
}
