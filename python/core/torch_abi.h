/* Of torch_abi.c and torch_ops.c: torch's C interface, as far as operators need it. It is stable
 * from torch 2.10 on (torch/csrc/stable/c/shim.h), and found in a process that has loaded torch:
 * nothing is linked, and no header of torch is needed. */
#ifndef TILEWRIGHT_PYTHON_TORCH_ABI_H
#define TILEWRIGHT_PYTHON_TORCH_ABI_H

#include "calls.h"

/* at::Tensor*, owned by whoever was given it. */
typedef struct AtenTensor* AtenTensor;
/* A value on the stack of a kernel: a number, or the address of what does not fit. */
typedef uint64_t StableValue;
typedef void (*StableKernel)(StableValue* stack, uint64_t num_arguments, uint64_t num_results);

/* Functions return 0 if all is well. */
typedef struct TorchAbi {
  int32_t (*library_init_impl)(const char* name, const char* key, const char* file, uint32_t line,
                               void** library);
  int32_t (*library_impl)(void* library, const char* name, StableKernel kernel, uint64_t version);
  int32_t (*is_defined)(AtenTensor x, bool* is_defined);
  bool (*grad_is_enabled)(void);
  int32_t (*get_dim)(AtenTensor x, int64_t* ndim);
  int32_t (*get_sizes)(AtenTensor x, int64_t** sizes);
  int32_t (*get_strides)(AtenTensor x, int64_t** strides);
  int32_t (*get_dtype)(AtenTensor x, int32_t* dtype);
  int32_t (*get_device_type)(AtenTensor x, int32_t* type);
  int32_t (*get_device_index)(AtenTensor x, int32_t* index);
  int32_t (*get_data_ptr)(AtenTensor x, void** data);
  int32_t (*empty_strided)(int64_t ndim, const int64_t* sizes, const int64_t* strides,
                           int32_t dtype, int32_t device_type, int32_t device_index, AtenTensor* x);
  int32_t (*new_tensor_handle)(AtenTensor x, AtenTensor* other);
  int32_t (*delete_tensor)(AtenTensor x);
  int32_t (*string_length)(void* string, size_t* length);
  int32_t (*string_text)(void* string, const char** text);
  int32_t (*delete_string)(void* string);
  void (*delete_optional)(void* value); /* operator delete */
  /* Functions of C++ that the interface lacks, by their names; all or none are there. An at::Tensor
   * is the address of its TensorImpl. */
  bool (*requires_grad)(const void* impl);  /* c10::TensorImpl::requires_grad() */
  bool (*has_dispatch)(const AtenTensor x); /* at::impl::tensor_has_dispatch() */
  bool (*is_negated)(const AtenTensor x);   /* at::native::is_neg() */
  /* Likewise, of what may want to see a call; all or none are there. */
  int64_t (*dispatch_modes)(void); /* c10::impl::TorchDispatchModeTLS::stack_len() */
  int64_t (*function_modes)(void); /* at::impl::PythonTorchFunctionTLS::stack_len() */
  /* at::functorch::getDynamicLayerStack(): a reference to a vector, that is its begin and end */
  void* const* (*transforms)(void* unused);
  /* torch::jit::tracer::getTracingState(): a reference to a shared_ptr, whose first is a pointer */
  void* const* (*tracing)(void* unused);
  bool (*has_callbacks)(void); /* at::hasCallbacks(): of profilers; NULL: not found */
} TorchAbi;

extern TorchAbi torch_abi;
/* The functions of libtorch_cpu.so at that path, which is loaded; false: some are not there. */
bool torch_abi_open(const char* path);
/* Whether torch_abi_is_watched() can say. */
bool torch_abi_sees_watchers(void);
/* Whether a mode, a transform or a tracer of this thread wants to see what torch does. */
bool torch_abi_is_watched(void);
/* Takes Python's exception away, and throws one of C++ that becomes it again in Python. */
_Noreturn void torch_throw(void);
/* Keeps Python's exception for it; with the GIL. */
void torch_keep_exception(void);

#endif /* TILEWRIGHT_PYTHON_TORCH_ABI_H */
