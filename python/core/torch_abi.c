/* torch's C interface by dlsym, and Python's exceptions through frames of C++. */
#define _GNU_SOURCE /* RTLD_DEFAULT */
#include "torch_abi.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

TorchAbi torch_abi;

/* ---- an exception of C++, by the ABI that all compilers for Linux share
 * (https://itanium-cxx-abi.github.io/cxx-abi/abi.html)
 *
 * torch's functions are called from Python through pybind11. What derives from its class
 * builtin_exception says by itself what Python sees (set_error); any other std::runtime_error
 * becomes RuntimeError with its text. So ours derives from the first, which derives from the
 * second: types are told by name, and no header is needed. */

typedef struct TypeInfo {
  const void* vtable;
  const char* name;
  const void* base;
} TypeInfo;

static struct {
  void* (*allocate)(size_t bytes);
  void (*throw)(void* exception, void* type, void (*destroy)(void*));
  void (*construct)(void* exception, const char* text); /* std::runtime_error's */
  void (*destroy)(void* exception);
} cxx;

static TypeInfo builtin_exception = {NULL, "N8pybind1117builtin_exceptionE", NULL};
static TypeInfo python_exception = {NULL, "N10tilewright15PythonExceptionE", &builtin_exception};
static struct {
  ptrdiff_t offset;
  const TypeInfo* type;
  void* functions[4]; /* two destructors, what(), set_error() */
} vtable = {0, &python_exception, {NULL}};
enum { EXCEPTION_BYTES = 2 * sizeof(void*) }; /* a vtable, and the text */

typedef struct Kept {
  PyObject *type, *value, *traceback;
  char text[1024];
} Kept;

static _Thread_local Kept kept;

static void forget_kept(void) {
  Py_XDECREF(kept.type);
  Py_XDECREF(kept.value);
  Py_XDECREF(kept.traceback);
  kept.type = kept.value = kept.traceback = NULL;
}

static void set_error(const void* self) {
  (void)self;
  if (kept.type == NULL) {
    PyErr_SetString(PyExc_RuntimeError, kept.text);
  } else {
    PyErr_Restore(kept.type, kept.value, kept.traceback);
    kept.type = kept.value = kept.traceback = NULL;
  }
}

static void delete_exception(void* exception) {
  cxx.destroy(exception);
  torch_abi.delete_optional(exception);
}

void torch_keep_exception(void) {
  forget_kept();
  PyErr_Fetch(&kept.type, &kept.value, &kept.traceback);
  PyErr_NormalizeException(&kept.type, &kept.value, &kept.traceback);
  PyObject* const text = kept.value == NULL ? NULL : PyObject_Str(kept.value);
  const char* const words = text == NULL ? NULL : PyUnicode_AsUTF8AndSize(text, NULL);
  strncpy(kept.text, words == NULL ? "tilewright: a call failed" : words, sizeof kept.text - 1);
  Py_XDECREF(text);
  PyErr_Clear();
}

_Noreturn void torch_throw(void) {
  void* const exception = cxx.allocate(EXCEPTION_BYTES);
  cxx.construct(exception, kept.text);
  const void* const functions = vtable.functions;
  memcpy(exception, &functions, sizeof functions);
  cxx.throw(exception, &python_exception, cxx.destroy);
  abort(); /* it does not return */
}

/* ---- what is found */

static bool find(void* library, const char* name, void* function) {
  void* const found = dlsym(library, name);
  memcpy(function, &found, sizeof found);
  return found != NULL;
}

static bool find_cxx(void* library) {
  void *class_with_base, *what;
  const bool is_found =
      find(library, "__cxa_allocate_exception", &cxx.allocate) &&
      find(library, "__cxa_throw", &cxx.throw) &&
      find(library, "_ZNSt13runtime_errorC1EPKc", &cxx.construct) &&
      find(library, "_ZNSt13runtime_errorD1Ev", &cxx.destroy) &&
      find(library, "_ZNKSt13runtime_error4whatEv", &what) &&
      find(library, "_ZTISt13runtime_error", &builtin_exception.base) &&
      find(library, "_ZTVN10__cxxabiv120__si_class_type_infoE", &class_with_base) &&
      /* that which torch's own calls find: another allocator may stand before the library */
      (find(RTLD_DEFAULT, "_ZdlPv", &torch_abi.delete_optional) ||
       find(library, "_ZdlPv", &torch_abi.delete_optional));
  if (!is_found) return false;
  builtin_exception.vtable = python_exception.vtable = (char*)class_with_base + 2 * sizeof(void*);
  void (*const ends)(void*) = delete_exception;
  void (*const sets)(const void*) = set_error;
  memcpy(&vtable.functions[0], &cxx.destroy, sizeof(void*));
  memcpy(&vtable.functions[1], &ends, sizeof(void*));
  vtable.functions[2] = what;
  memcpy(&vtable.functions[3], &sets, sizeof(void*));
  return true;
}

static void find_of_tensors(void* library, TorchAbi* abi) {
  const bool is_found =
      find(library, "_ZNK3c1010TensorImpl13requires_gradEv", &abi->requires_grad) &&
      find(library, "_ZN2at4impl19tensor_has_dispatchERKNS_6TensorE", &abi->has_dispatch) &&
      find(library, "_ZN2at6native6is_negERKNS_6TensorE", &abi->is_negated);
  if (!is_found) abi->requires_grad = NULL;
}

/* Whether a function returns a reference, which its name does not say: a value would be written to
 * where the first argument points, and that be returned. */
static bool gives_reference(void* const* (*function)(void*)) {
  void* value[4] = {NULL};
  void* const* const given = function(value);
  return given != NULL && given != value;
}

static void find_watchers(void* library, TorchAbi* abi) {
  const bool is_found =
      find(library, "_ZN3c104impl20TorchDispatchModeTLS9stack_lenEv", &abi->dispatch_modes) &&
      find(library, "_ZN2at4impl22PythonTorchFunctionTLS9stack_lenEv", &abi->function_modes) &&
      find(library, "_ZN2at9functorch20getDynamicLayerStackEv", &abi->transforms) &&
      find(library, "_ZN5torch3jit6tracer15getTracingStateEv", &abi->tracing) &&
      gives_reference(abi->transforms) && gives_reference(abi->tracing);
  if (!is_found) abi->dispatch_modes = NULL;
  find(library, "_ZN2at12hasCallbacksEv", &abi->has_callbacks);
}

bool torch_abi_sees_watchers(void) {
  return torch_abi.dispatch_modes != NULL && torch_abi.grad_is_enabled != NULL;
}

bool torch_abi_is_watched(void) {
  void* const* const layers = torch_abi.transforms(NULL);
  return torch_abi.dispatch_modes() != 0 || torch_abi.function_modes() != 0 ||
         layers[0] != layers[1] || *torch_abi.tracing(NULL) != NULL;
}

bool torch_abi_open(const char* path) {
  void* const library = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
  TorchAbi* const abi = &torch_abi;
  if (library != NULL) find_of_tensors(library, abi);
  if (library != NULL) find_watchers(library, abi);
  return library != NULL && find_cxx(library) &&
         find(library, "aoti_torch_library_init_impl", &abi->library_init_impl) &&
         find(library, "torch_library_impl", &abi->library_impl) &&
         find(library, "aoti_torch_is_defined", &abi->is_defined) &&
         find(library, "aoti_torch_grad_mode_is_enabled", &abi->grad_is_enabled) &&
         find(library, "aoti_torch_get_dim", &abi->get_dim) &&
         find(library, "aoti_torch_get_sizes", &abi->get_sizes) &&
         find(library, "aoti_torch_get_strides", &abi->get_strides) &&
         find(library, "aoti_torch_get_dtype", &abi->get_dtype) &&
         find(library, "aoti_torch_get_device_type", &abi->get_device_type) &&
         find(library, "aoti_torch_get_device_index", &abi->get_device_index) &&
         find(library, "aoti_torch_get_data_ptr", &abi->get_data_ptr) &&
         find(library, "aoti_torch_empty_strided", &abi->empty_strided) &&
         find(library, "aoti_torch_new_tensor_handle", &abi->new_tensor_handle) &&
         find(library, "aoti_torch_delete_tensor_object", &abi->delete_tensor) &&
         find(library, "torch_string_length", &abi->string_length) &&
         find(library, "torch_string_c_str", &abi->string_text) &&
         find(library, "torch_delete_string", &abi->delete_string);
}
