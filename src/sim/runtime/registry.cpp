#include "sim/runtime/registry.h"

#include "sim/runtime/answer.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace tilewright::sim::runtime {

namespace {

struct ManagedVariable {
  void** host = nullptr;
  std::string name;
};

struct FatBinary {
  const void* image = nullptr;
  CUlibrary library = nullptr;
  std::vector<ManagedVariable> managed;
};

struct Symbol {
  FatBinary* binary = nullptr;
  std::string name;
  CUkernel kernel = nullptr;  ///< of a kernel, when it was looked up
};

struct Registry {
  std::mutex mutex;
  std::unordered_map<void**, std::unique_ptr<FatBinary>> binaries;  // by handle
  std::unordered_map<const void*, Symbol> kernels, variables;       // by address in the program
};

/// Never destroyed: programs unregister while they end.
Registry& registry() {
  static auto& instance = *new Registry;
  return instance;
}

/// Why the code of a stub's kernel could not be had: stubs keep a null handle and go on.
std::atomic<cudaError> stub_error = cudaError::kInvalidDeviceFunction;

FatBinary* find_binary(Registry& all, void** handle) {
  const auto found = all.binaries.find(handle);
  return found == all.binaries.end() ? nullptr : found->second.get();
}

void place_managed_variables(const FatBinary& binary) {
  for (const ManagedVariable& variable : binary.managed) {
    CUdeviceptr address = 0;
    if (cuLibraryGetManaged(&address, nullptr, binary.library, variable.name.c_str()) ==
        CUresult::kSuccess) {
      *variable.host = reinterpret_cast<void*>(address);
    }
  }
}

CUlibrary library_of(FatBinary& binary) {
  if (binary.library != nullptr) return binary.library;
  require_context();
  check(cuLibraryLoadData(&binary.library, binary.image, nullptr, nullptr, 0, nullptr, nullptr, 0));
  place_managed_variables(binary);
  return binary.library;
}

/// nullptr if it is no __global__ function of a registered program.
CUkernel registered_kernel(const void* function) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  const auto found = all.kernels.find(function);
  if (found == all.kernels.end()) return nullptr;
  Symbol& symbol = found->second;
  if (symbol.kernel != nullptr) return symbol.kernel;
  const CUlibrary library = library_of(*symbol.binary);
  const CUresult result = cuLibraryGetKernel(&symbol.kernel, library, symbol.name.c_str());
  expect(result != CUresult::kNotFound, cudaError::kInvalidDeviceFunction);
  check(result);
  return symbol.kernel;
}

}  // namespace

CUfunction find_kernel(const void* function) {
  expect(function != nullptr, stub_error);
  const CUkernel kernel = registered_kernel(function);
  // The driver takes kernels where it takes functions, and knows its own handles.
  if (kernel != nullptr) return reinterpret_cast<CUfunction>(kernel);
  const auto handle = reinterpret_cast<CUfunction>(const_cast<void*>(function));
  int ignored = 0;
  const CUresult result = cuFuncGetAttribute(&ignored, CUfunction_attribute::kNumRegs, handle);
  expect(result != CUresult::kInvalidHandle, cudaError::kInvalidDeviceFunction);
  check(result);
  return handle;
}

Variable find_variable(const void* symbol) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  const auto found = all.variables.find(symbol);
  expect(found != all.variables.end(), cudaError::kInvalidSymbol);
  Variable variable;
  const CUresult result =
      cuLibraryGetGlobal(&variable.address, &variable.bytes, library_of(*found->second.binary),
                         found->second.name.c_str());
  expect(result != CUresult::kNotFound, cudaError::kInvalidSymbol);
  check(result);
  return variable;
}

void renew_managed_variables() {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  for (const auto& [handle, binary] : all.binaries) {
    if (binary->managed.empty() || binary->library == nullptr) continue;
    require_context();
    place_managed_variables(*binary);
  }
}

extern "C" {

void** __cudaRegisterFatBinary(void* image) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  auto binary = std::make_unique<FatBinary>();
  binary->image = image;
  const auto handle = reinterpret_cast<void**>(binary.get());
  all.binaries[handle] = std::move(binary);
  return handle;
}

void __cudaRegisterFatBinaryEnd(void**) {}

void __cudaUnregisterFatBinary(void** handle) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  const FatBinary* const binary = find_binary(all, handle);
  if (binary == nullptr) return;
  const auto is_its = [&](const auto& entry) { return entry.second.binary == binary; };
  std::erase_if(all.kernels, is_its);
  std::erase_if(all.variables, is_its);
  if (binary->library != nullptr) cuLibraryUnload(binary->library);
  all.binaries.erase(handle);
}

void __cudaRegisterFunction(void** handle, const char* host, char*, const char* name, int, void*,
                            void*, void*, void*, int*) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  if (FatBinary* const binary = find_binary(all, handle)) {
    all.kernels[host] = {binary, name, nullptr};
  }
}

void __cudaRegisterVar(void** handle, char* host, char*, const char* name, int, std::size_t, int,
                       int) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  if (FatBinary* const binary = find_binary(all, handle)) {
    all.variables[host] = {binary, name, nullptr};
  }
}

void __cudaRegisterHostVar(void**, const char*, char*, std::size_t) {}

void __cudaRegisterManagedVar(void** handle, void** host, char*, const char* name, int, std::size_t,
                              int, int) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  if (FatBinary* const binary = find_binary(all, handle)) {
    all.variables[host] = {binary, name, nullptr};
    binary->managed.push_back({host, name});
  }
}

/// Called before the host touches a managed variable.
char __cudaInitModule(void** handle) {
  const cudaError error = in_context([&] {
    Registry& all = registry();
    const std::lock_guard lock(all.mutex);
    FatBinary* const binary = find_binary(all, handle);
    expect(binary != nullptr);
    library_of(*binary);
  });
  return error == cudaError::kSuccess ? 1 : 0;
}

cudaError cudaGetKernel(CUkernel* out, const void* function) {
  return in_context([&] {
    expect(out != nullptr);
    *out = registered_kernel(function);
    expect(*out != nullptr, cudaError::kInvalidDeviceFunction);
  });
}

cudaError __cudaGetKernel(CUkernel* out, const void* function) {
  const cudaError error = cudaGetKernel(out, function);
  if (error != cudaError::kSuccess) stub_error = error;
  return error;
}

cudaError cudaGetFuncBySymbol(CUfunction* out, const void* function) {
  return in_context([&] {
    expect(out != nullptr);
    const CUkernel kernel = registered_kernel(function);
    expect(kernel != nullptr, cudaError::kInvalidDeviceFunction);
    check(cuKernelGetFunction(out, kernel));
  });
}

cudaError cudaGetSymbolAddress(void** out, const void* symbol) {
  return in_context([&] {
    expect(out != nullptr);
    *out = reinterpret_cast<void*>(find_variable(symbol).address);
  });
}

cudaError cudaGetSymbolSize(std::size_t* out, const void* symbol) {
  return in_context([&] {
    expect(out != nullptr);
    *out = find_variable(symbol).bytes;
  });
}

}  // extern "C"

}  // namespace tilewright::sim::runtime
