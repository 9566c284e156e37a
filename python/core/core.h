/* What the files of the extension share. */
#ifndef TILEWRIGHT_PYTHON_CORE_H
#define TILEWRIGHT_PYTHON_CORE_H

#include "tilewright/tilewright_buffer.h"

#include "dlpack.h"
#include "python_abi.h"
#include "table.h"

#include <stdbool.h>

/* ---- status.c: failures, and when handles may be used at all */

/* Raises the exception of a status with tw_last_error() and, unless it is NULL, a note behind it.
 * Takes the reference of the note. Returns NULL. */
PyObject* raise_status(tw_status status, PyObject* note);
/* Raises tilewright.InvalidArgument. Returns NULL. */
PyObject* raise_invalid(const char* format, ...);
/* The driver does not survive a fork: is_usable() raises in the child of one. */
bool is_child_of_fork(void);
bool is_usable(void);
/* Called before a device is opened: from then on a child of a fork is told. */
void status_watch_forks(void);
/* At exit the driver may be gone before the last handle: they are leaked then, on purpose. */
bool is_exiting(void);
int status_init(PyObject* module);

/* ---- device.c */

typedef struct Device {
  PyObject_HEAD tw_device* handle; /* NULL: closed */
  PyObject* spec;
  int32_t ordinal; /* as CUDA counts; -1: simulated */
  void* context;
} Device;

extern PyTypeObject* device_type;
/* NULL, with an exception, if the object is no open Device. */
Device* as_device(PyObject* object);
int device_init(PyObject* module);

/* ---- buffer.c */

enum { MAX_DIMS = 8 };

typedef struct Buffer {
  PyObject_HEAD tw_buffer* handle;
  Device* device;
  DLTensor tensor; /* contiguous */
  int64_t shape[MAX_DIMS];
} Buffer;

extern PyTypeObject* buffer_type;
int buffer_init(PyObject* module);

/* ---- dtypes.c */

bool dtype_from_word(const char* word, DLDataType* dtype);
/* "bf16", "torch.bfloat16", numpy's and ml_dtypes' types, ... Returns false with an exception. */
bool dtype_from_object(PyObject* object, DLDataType* dtype);
/* "bf16"; "?" if it has no word. */
const char* dtype_word(DLDataType dtype);
/* Bytes of `count` elements. */
size_t dtype_bytes(DLDataType dtype, size_t count);

/* ---- tensor.c */

/* A tensor of any library. Shape and strides are the owner's memory, or `dims` here. */
typedef struct Tensor {
  DLTensor dl;
  bool is_read_only;
  const DLExchange* exchange; /* of its library; NULL: none */
  PyObject* owner;            /* what has to live as long; may be NULL */
  bool has_view;
  BufferView view;
  int64_t dims[2 * MAX_DIMS];
} Tensor;

/* Returns false with an exception if the object is no tensor; `name` is that of the argument. */
bool tensor_read(PyObject* object, const char* name, Tensor* tensor);
void tensor_release(Tensor* tensor);
static inline char* tensor_address(const Tensor* tensor) {
  return (char*)tensor->dl.data + tensor->dl.byte_offset;
}
static inline bool tensor_is_on_host(const Tensor* tensor) {
  return tensor->dl.device.type == DL_CPU || tensor->dl.device.type == DL_CUDA_HOST;
}
/* Bytes of its elements, and whether they lie without gaps in the order of its dimensions. */
size_t tensor_bytes(const Tensor* tensor);
bool tensor_is_contiguous(const Tensor* tensor);
/* Bytes from the first element to the end of the memory that its elements span. */
size_t tensor_bytes_behind(const Tensor* tensor);
/* "torch.Tensor bf16 (2, 3) strides (3, 1) on cuda:0", a new string. */
PyObject* tensor_describe(const Tensor* tensor, PyObject* object);
PyObject* tuple_of(const int64_t* numbers, int32_t count);
int tensor_init(PyObject* module);

/* ---- fill.c: structs of the C interface from Python's values */

/* One filling: of the problem of an operator, or of the arguments of a call. */
enum { MAX_ARRAYS = 16 };

/* A rule of the table with the numbers of a problem. */
typedef struct Check {
  int member;
  int ndim;
  DLDataType dtype;
  int64_t shape[MAX_EXTENTS];
  int64_t strides[MAX_EXTENTS];
  size_t bytes; /* from the first element to the last */
} Check;

typedef struct Fill {
  const char* what;    /* "Attention.run": of messages */
  Device* device;      /* where tensors have to be */
  bool takes_host;     /* host addresses are passed on: sources of weights */
  bool is_host_only;   /* no device: tensors of one are refused */
  bool met_host;       /* a host tensor for a simulated device: it has to be copied there */
  bool has_stream;     /* the caller named one */
  const Check* checks; /* of members of the arguments; or NULL */
  int num_checks;
  const DLExchange* exchange;     /* of the first tensor whose library knows a current stream */
  PyObject* held;                 /* list of what has to live until the call is over; or NULL */
  Py_ssize_t lengths[MAX_ARRAYS]; /* of arrays of structs, by the number of the member */
  char prefix[64];                /* of messages: the structs that a member is in */
} Fill;

/* One member of a struct; false with an exception. */
bool fill_member(Fill* fill, const Struct* type, void* given, PyObject* name, PyObject* value,
                 int* hint);
const Struct* struct_named(const char* name);
/* All members that a mapping names. */
bool fill_from_mapping(Fill* fill, const Struct* type, void* given, PyObject* mapping);
bool fill_check_counts(Fill* fill, const Struct* type, void* given);
/* The struct gets its defaults. */
void fill_begin(const Struct* type, void* given);
void fill_end(Fill* fill);
/* {name: value} of a struct; only what differs from the defaults, if so wanted. */
PyObject* struct_to_dict(const Struct* type, const void* given, bool only_changed);
int structs_init(PyObject* module);

/* ---- check.c */

/* What the rules of a class say of a problem; the caller frees it. NULL: no memory. */
Check* checks_make(const Class* kind, const void* problem, int* count);
/* NULL if the tensor is what the problem says, or has an exception set; else what it should be. */
PyObject* check_tensor_rule(const Check* check, const Tensor* tensor);

/* ---- operator.c */

typedef struct Operator {
  PyObject_HEAD const Class* kind;
  void* handle;
  PyObject* on;   /* a Device, or weights */
  Device* device; /* that of the weights */
  void* problem;  /* NULL: it has none; tensors of weights may be gone */
  Check* checks;
  int num_checks;
  PyObject* held; /* texts of the problem, and what lay in arrays of structs */
} Operator;

extern PyTypeObject* operator_type;
/* Of one of the classes, or of one derived from them; else NULL with an exception. */
const Class* class_of(PyTypeObject* type);

int operator_init(PyObject* module);

/* ---- plan.c */

int plan_init(PyObject* module);

/* ---- functions.c: functions of the C interface that no table describes */

/* A method that a class has besides its calls; NULL: none. */
const PyMethodDef* extra_method(const char* class_name);
int functions_init(PyObject* module);

/* ---- signature.c: keys of tables of operators */

int signature_init(PyObject* module);

/* ---- calls.c: calls that were made before */

int calls_init(PyObject* module);

/* ---- torch_ops.c: operators of torch's dispatcher */

int torch_ops_init(PyObject* module);

/* ---- xla.c: operators as foreign functions of XLA */

int xla_init(PyObject* module);

#endif /* TILEWRIGHT_PYTHON_CORE_H */
