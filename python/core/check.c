/* Tensors against the problem, where the table says what they are: a wrong type of elements,
 * strides that the problem does not have, a tensor that is too short. */
#include "core.h"

#include <stdlib.h>
#include <string.h>

static int64_t member_at(const void* problem, size_t offset) {
  return *(const int64_t*)(const void*)((const char*)problem + offset);
}

static int32_t word_at(const void* problem, size_t offset) {
  return *(const int32_t*)(const void*)((const char*)problem + offset);
}

static DLDataType type_of(int32_t dtype) {
  switch (dtype) {
    case TW_BF16:
      return (DLDataType){DL_BFLOAT, 16, 1};
    case TW_F16:
      return (DLDataType){DL_FLOAT, 16, 1};
    case TW_F32:
      return (DLDataType){DL_FLOAT, 32, 1};
    case TW_E4M3:
      return (DLDataType){DL_E4M3FN, 8, 1};
    default:
      return (DLDataType){DL_E8M0FNU, 8, 1};
  }
}

static bool applies(const Rule* rule, const void* problem, DLDataType dtype) {
  if (rule->is_16_bit && dtype.bits != 16) return false;
  for (int i = 0; i < MAX_FLAGS && rule->flags[i].wanted != FLAG_NONE; ++i) {
    const size_t offset = rule->flags[i].offset;
    const bool is_set =
        rule->flags[i].is_wide ? member_at(problem, offset) != 0 : word_at(problem, offset) != 0;
    if (is_set != (rule->flags[i].wanted == FLAG_SET)) return false;
  }
  return true;
}

/* The strides of the problem; without them, or if all are 0, the contiguous ones. */
static void read_strides(const Rule* rule, const void* problem, Check* check) {
  int64_t given[MAX_EXTENTS] = {0};
  bool is_given = false;
  if (rule->strides == STRIDES_ROW) {
    given[check->ndim - 2] = member_at(problem, rule->strides_offset);
    is_given = given[check->ndim - 2] != 0;
  } else if (rule->strides == STRIDES_STRUCT) {
    const tw_strides* const s = (const void*)((const char*)problem + rule->strides_offset);
    const int64_t all[3] = {s->batch, s->row, s->head};
    for (int i = 0; i < 3; ++i) {
      is_given |= all[i] != 0;
      if (check->ndim - (rule->is_last_contiguous ? 4 : 3) + i >= 0)
        given[check->ndim - (rule->is_last_contiguous ? 4 : 3) + i] = all[i];
    }
  }
  int64_t stride = 1;
  for (int i = check->ndim - 1; i >= 0; --i) {
    const bool is_own = is_given && (i < check->ndim - 1 || !rule->is_last_contiguous);
    check->strides[i] = is_own ? given[i] : stride;
    if (__builtin_mul_overflow(stride, check->shape[i], &stride)) stride = INT64_MAX;
  }
}

/* False if the rule says nothing of this problem. */
static bool resolve(const Rule* rule, const void* problem, Check* check) {
  check->member = rule->member;
  int32_t dtype = rule->dtype_offset == 0 ? rule->dtype : word_at(problem, rule->dtype_offset);
  if (dtype == TW_ABSENT) dtype = word_at(problem, rule->dtype_otherwise);
  check->dtype = type_of(dtype);
  if (!applies(rule, problem, check->dtype)) return false;
  check->ndim = rule->num_extents;
  for (int i = 0; i < check->ndim; ++i) {
    const Extent* const extent = &rule->extents[i];
    check->shape[i] = extent->offset == 0 ? extent->number : member_at(problem, extent->offset);
    if (check->shape[i] == 0 && extent->otherwise != 0)
      check->shape[i] = member_at(problem, extent->otherwise);
    if (check->shape[i] <= 0) return false;
  }
  read_strides(rule, problem, check);
  int64_t last = 0, reach;
  for (int i = 0; i < check->ndim; ++i) {
    if (check->strides[i] < 0 ||
        __builtin_mul_overflow(check->shape[i] - 1, check->strides[i], &reach) ||
        __builtin_add_overflow(last, reach, &last))
      return false;
  }
  if (last > INT64_MAX / 16) return false;
  check->bytes = dtype_bytes(check->dtype, (size_t)last + 1);
  return true;
}

Check* checks_make(const Class* kind, const void* problem, int* count) {
  *count = 0;
  Check* const checks = calloc((size_t)kind->num_rules + 1, sizeof *checks);
  if (checks == NULL || problem == NULL) return checks;
  for (int i = 0; i < kind->num_rules; ++i)
    *count += resolve(&kind->rules[i], problem, &checks[*count]) ? 1 : 0;
  return checks;
}

/* A type with as many bits and no meaning of its own carries any: uint16 of numpy for bf16. */
static bool may_be(DLDataType found, DLDataType wanted) {
  if (memcmp(&found, &wanted, sizeof found) == 0) return true;
  return (found.code == DL_UINT || found.code == DL_INT) && found.bits == wanted.bits &&
         found.lanes == wanted.lanes && wanted.bits <= 16;
}

static bool has_shape(const DLTensor* tensor, const Check* check) {
  if (tensor->ndim != check->ndim) return false;
  for (int i = 0; i < check->ndim; ++i)
    if (tensor->shape[i] != check->shape[i]) return false;
  return true;
}

/* Of a tensor with the problem's shape. */
static bool has_strides(const DLTensor* tensor, const Check* check) {
  int64_t contiguous = 1;
  for (int i = check->ndim - 1; i >= 0; --i) {
    const int64_t stride = tensor->strides == NULL ? contiguous : tensor->strides[i];
    if (check->shape[i] > 1 && stride != check->strides[i]) return false;
    contiguous *= check->shape[i];
  }
  return true;
}

/* "[2, 37, 4, 64] with strides [9472, 256, 64, 1]" */
static PyObject* wanted(const Check* check, const char* format) {
  PyObject* const shape = tuple_of(check->shape, check->ndim);
  PyObject* const strides = tuple_of(check->strides, check->ndim);
  PyObject* text = NULL;
  if (shape != NULL && strides != NULL)
    text = PyUnicode_FromFormat(format, dtype_word(check->dtype), shape, strides, check->bytes);
  Py_XDECREF(shape);
  Py_XDECREF(strides);
  return text;
}

PyObject* check_tensor_rule(const Check* check, const Tensor* tensor) {
  if (!may_be(tensor->dl.dtype, check->dtype)) return wanted(check, "the problem says %s %R");
  if (has_shape(&tensor->dl, check) && !has_strides(&tensor->dl, check))
    return wanted(check,
                  "the problem says %s %R with strides %R: give it the strides of the "
                  "tensor, or a contiguous tensor");
  if (tensor_bytes_behind(tensor) < check->bytes)
    return wanted(check, "it is too short: the problem says %s %R with strides %R, %zu bytes");
  return NULL;
}
