/* The functions of the C interface that are no part of an operator's table, one by one. */
#include "core.h"

#include <string.h>

/* A struct of keyword arguments; `given` has room for it. */
static bool read_struct(const char* what, const char* name, PyObject* kwargs, void* given,
                        Fill* fill) {
  const Struct* const type = struct_named(name);
  fill->what = what;
  fill_begin(type, given);
  return kwargs == NULL || fill_from_mapping(fill, type, given, kwargs);
}

/* ---- methods of operators */

static PyObject* indexer_workspace_bytes(PyObject* object, PyObject* args, PyObject* kwargs) {
  static char* names[] = {"tokens", "batch", NULL};
  long long tokens, batch;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "LL:workspace_bytes", names, &tokens, &batch))
    return NULL;
  if (!is_usable()) return NULL;
  return PyLong_FromSize_t(tw_indexer_workspace_bytes(((Operator*)object)->handle, tokens, batch));
}

static PyObject* indexer_logits_workspace_bytes(PyObject* object, PyObject* args,
                                                PyObject* kwargs) {
  static char* names[] = {"tokens", "batch", NULL};
  long long tokens, batch;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "LL:workspace_bytes", names, &tokens, &batch))
    return NULL;
  if (!is_usable()) return NULL;
  return PyLong_FromSize_t(
      tw_indexer_logits_workspace_bytes(((Operator*)object)->handle, tokens, batch));
}

static PyObject* kv_cache_size(PyObject* object, PyObject* unused) {
  (void)unused;
  return PyLong_FromSize_t(tw_kv_cache_bytes(((Operator*)object)->handle));
}

static PyObject* prepare_sizes(PyObject* object, PyObject* unused) {
  (void)unused;
  tw_attention_operand_sizes sizes;
  tw_attention_operand_sizes_init(&sizes);
  const tw_status status = tw_attention_prepare_sizes(((Operator*)object)->handle, &sizes);
  return status == TW_OK ? struct_to_dict(struct_named("AttentionOperandSizes"), &sizes, false)
                         : raise_status(status, NULL);
}

static const struct {
  const char* class_name;
  PyMethodDef method;
} extra_methods[] = {
    {"Indexer",
     {"workspace_bytes", (PyCFunction)(void*)indexer_workspace_bytes, METH_VARARGS | METH_KEYWORDS,
      "workspace_bytes($self, /, tokens, batch)\n--\n\nOf a call; 0 if a number makes no sense."}},
    {"IndexerLogits",
     {"workspace_bytes", (PyCFunction)(void*)indexer_logits_workspace_bytes,
      METH_VARARGS | METH_KEYWORDS,
      "workspace_bytes($self, /, tokens, batch)\n--\n\nOf a call; 0 if a number makes no sense. "
      "Without pages the batch does not count."}},
    {"KvCache",
     {"bytes", kv_cache_size, METH_NOARGS,
      "bytes($self, /)\n--\n\nOf all pages: what the caller allocates."}},
    {"AttentionPrepare",
     {"sizes", prepare_sizes, METH_NOARGS,
      "sizes($self, /)\n--\n\nWhat its results need: bytes of values, numbers of scales, "
      "workspace_bytes."}},
};

const PyMethodDef* extra_method(const char* class_name) {
  for (size_t i = 0; i < sizeof extra_methods / sizeof extra_methods[0]; ++i)
    if (strcmp(extra_methods[i].class_name, class_name) == 0) return &extra_methods[i].method;
  return NULL;
}

/* ---- functions of the module: host memory comes back as a bytearray of float32 */

static PyObject* attention_signs(PyObject* self, PyObject* args) {
  (void)self;
  unsigned long long seed;
  Py_ssize_t head_dim;
  if (!PyArg_ParseTuple(args, "Kn:attention_signs", &seed, &head_dim)) return NULL;
  if (head_dim < 0 || head_dim > 65536)
    return raise_invalid("attention_signs: head_dim = %zd; expected 0 to 65536", head_dim);
  PyObject* const made = PyByteArray_FromStringAndSize(NULL, head_dim * (Py_ssize_t)sizeof(float));
  if (made == NULL) return NULL;
  const tw_status status =
      tw_attention_prepare_signs(seed, head_dim, (float*)(void*)PyByteArray_AsString(made));
  if (status == TW_OK) return made;
  Py_DECREF(made);
  return raise_status(status, NULL);
}

static PyObject* rope_table(PyObject* self, PyObject* args, PyObject* kwargs) {
  (void)self;
  Py_ssize_t positions, first;
  tw_rope_options options;
  Fill fill = {0};
  if (!PyArg_ParseTuple(args, "nn:rope_table", &positions, &first)) return NULL;
  if (positions < 0 || positions > (Py_ssize_t)1 << 40)
    return raise_invalid("rope_table: positions = %zd; expected 0 or more", positions);
  if (!read_struct("rope_table", "RopeOptions", kwargs, &options, &fill)) return NULL;
  PyObject* const made =
      PyByteArray_FromStringAndSize(NULL, positions * 64 * (Py_ssize_t)sizeof(float));
  if (made == NULL) return NULL;
  const tw_status status =
      tw_rope_table(&options, positions, first, (float*)(void*)PyByteArray_AsString(made));
  if (status == TW_OK) return made;
  Py_DECREF(made);
  return raise_status(status, NULL);
}

static PyObject* quantize_sizes(PyObject* self, PyObject* args, PyObject* kwargs) {
  (void)self;
  tw_quantize_problem problem;
  Fill fill = {0};
  size_t code_bytes = 0, scale_bytes = 0;
  if (!PyArg_ParseTuple(args, ":quantize_sizes")) return NULL;
  const bool is_good = read_struct("quantize_sizes", "QuantizeProblem", kwargs, &problem, &fill);
  const tw_status status = is_good ? tw_quantize_sizes(&problem, &code_bytes, &scale_bytes) : TW_OK;
  fill_end(&fill);
  if (!is_good) return NULL;
  if (status != TW_OK) return raise_status(status, NULL);
  return Py_BuildValue("nn", (Py_ssize_t)code_bytes, (Py_ssize_t)scale_bytes);
}

static PyObject* quantize_on_host(PyObject* self, PyObject* args, PyObject* kwargs) {
  (void)self;
  PyObject *members, *given;
  int num_threads = 0;
  tw_quantize_problem problem;
  tw_quantize_arguments arguments;
  static char* names[] = {"problem", "arguments", "num_threads", NULL};
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|i:quantize_on_host", names, &members, &given,
                                   &num_threads))
    return NULL;
  Fill texts = {0}, tensors = {.takes_host = true, .is_host_only = true};
  const char* const what = "quantize_on_host";
  const bool is_good = read_struct(what, "QuantizeProblem", members, &problem, &texts) &&
                       read_struct(what, "QuantizeArguments", given, &arguments, &tensors);
  tw_status status = TW_OK;
  if (is_good) {
    Py_BEGIN_ALLOW_THREADS;
    status = tw_quantize_on_host(&problem, &arguments, num_threads);
    Py_END_ALLOW_THREADS;
  }
  fill_end(&texts);
  fill_end(&tensors);
  if (!is_good) return NULL;
  return status == TW_OK ? Py_NewRef(Py_None) : raise_status(status, NULL);
}

static PyMethodDef functions[] = {
    {"attention_signs", attention_signs, METH_VARARGS,
     "attention_signs(seed, head_dim, /)\n--\n\n"
     "The signs of the rotation of AttentionPrepare, for who rotates elsewhere: float32 in a "
     "bytearray."},
    {"rope_table", (PyCFunction)(void*)rope_table, METH_VARARGS | METH_KEYWORDS,
     "rope_table(positions, first, /, **options)\n--\n\n"
     "Of each position from `first` on 32 cosines, 32 sines: float32 in a bytearray. Options: "
     "theta, "
     "has_yarn,\nfactor, original_positions, beta_fast, beta_slow."},
    {"quantize_sizes", (PyCFunction)(void*)quantize_sizes, METH_VARARGS | METH_KEYWORDS,
     "quantize_sizes(**problem)\n--\n\nBytes of codes and of scales that a problem of Quantize "
     "gives."},
    {"quantize_on_host", (PyCFunction)(void*)quantize_on_host, METH_VARARGS | METH_KEYWORDS,
     "quantize_on_host(problem, arguments, num_threads=0)\n--\n\n"
     "As Quantize, of host memory by the host, with the same bytes. Both are dicts; num_threads 0: "
     "all."},
    {NULL, NULL, 0, NULL}};

int functions_init(PyObject* module) {
  return PyModule_AddFunctions(module, functions);
}
