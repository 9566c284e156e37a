/* Of torch_ops.c and torch_shortcut.c: operators of torch's dispatcher. */
#ifndef TILEWRIGHT_PYTHON_TORCH_OPS_H
#define TILEWRIGHT_PYTHON_TORCH_OPS_H

#include "torch_abi.h"

enum { MAX_ARGUMENTS = 40, MAX_OPS = 24 };

typedef struct TorchOp {
  Calls* calls;
  PyObject* kernel;   /* (*arguments) -> (results, None or what calls_insert() takes) */
  PyObject* rule;     /* of autograd: (*arguments) -> (results, None) */
  PyObject* original; /* torch's way to call it, which a shortcut stands before; NULL: none does */
  char kinds[MAX_ARGUMENTS + 1];
  int num_arguments, num_tensors;
} TorchOp;

/* The operator whose calls these are; NULL: none. */
TorchOp* torch_op_of(const Calls* calls);

static inline bool torch_kind_is_tensor(char kind) {
  return kind == 'T' || kind == 't';
}

/* Parts of a key, one for each argument. */
bool torch_put_tensor(Key* key, AtenTensor x, void** address);
bool torch_put_number(Key* key, bool is_given, uint64_t value);
bool torch_put_absent(Key* key);

/* Whether neither a subclass nor a gradient wants to see a call with this tensor. */
bool torch_is_direct(AtenTensor x, bool has_grad);

/* The number of a torch.dtype on a stack; false: it is none that is known. */
bool torch_code_of_dtype(PyObject* dtype, uint64_t* code);

/* A new torch.Tensor; None for NULL. */
PyObject* torch_wrap(AtenTensor x);
/* Handles of the results, whose addresses go behind those of the arguments; 0: there is none. */
bool torch_make_results(const TorchOp* op, const Known* known, void** addresses,
                        StableValue* results);
void torch_delete_results(StableValue* results, int count);
bool torch_launch_on_gpu(const TorchOp* op, const Known* known, void** addresses);

/* ---- torch_shortcut.c */

/* Finds out where an object of Python has its at::Tensor, by one of which both are known. */
void torch_shortcut_open(PyObject* tensor, AtenTensor handle);
int torch_shortcut_init(PyObject* module);

#endif /* TILEWRIGHT_PYTHON_TORCH_OPS_H */
