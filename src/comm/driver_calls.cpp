#include "comm/driver_calls.h"

#include "base/error.h"

namespace tilewright::comm {

namespace {

template <class Function>
void find(const Device& device, const char* name, Function& to) {
  to = reinterpret_cast<Function>(device.driver_function(name));
  require(to != nullptr, ErrorKind::kUnsupported,
          "device {}: its driver has no {}, which ranks need to exchange data; use a device that "
          "runs kernels, with a driver of CUDA 12 or later",
          device.spec(), name);
}

template <class Function>
void find_if_any(const Device& device, const char* name, Function& to) {
  to = reinterpret_cast<Function>(device.driver_function(name));
}

std::uint64_t address(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

}  // namespace

DriverCalls::DriverCalls(const Device& device) : device_(device) {
  find(device, "cuCtxPushCurrent_v2", push_);
  find(device, "cuCtxPopCurrent_v2", pop_);
  find(device, "cuMemcpyDtoHAsync_v2", to_host_);
  find(device, "cuMemcpyHtoDAsync_v2", to_device_);
  find(device, "cuLaunchHostFunc", on_host_);
  find(device, "cuMemHostAlloc", host_alloc_);
  find(device, "cuMemFreeHost", free_host_);
  find(device, "cuGetErrorName", error_name_);
  find_if_any(device, "cuIpcGetMemHandle", ipc_get_);
  find_if_any(device, "cuIpcOpenMemHandle_v2", ipc_open_);
  find_if_any(device, "cuIpcCloseMemHandle", ipc_close_);
  find_if_any(device, "cuCtxEnablePeerAccess", enable_peer_);
}

void DriverCalls::check(Result result, const char* function) const {
  if (result == 0) return;
  const char* name = nullptr;
  error_name_(result, &name);
  fail(ErrorKind::kDeviceError, "device {}: {} failed with {} ({})", device_.spec(), function,
       name != nullptr ? name : "an unknown error", result);
}

DriverCalls::Current::Current(const DriverCalls& calls) : calls_(calls) {
  calls.check(calls.push_(calls.device_.context()), "cuCtxPushCurrent");
}

DriverCalls::Current::~Current() {
  void* context = nullptr;
  calls_.pop_(&context);
}

void DriverCalls::copy_to_host(void* to, const void* from, std::size_t bytes, void* stream) const {
  const Current current(*this);
  check(to_host_(to, address(from), bytes, stream), "cuMemcpyDtoHAsync");
}

void DriverCalls::copy_to_device(void* to, const void* from, std::size_t bytes,
                                 void* stream) const {
  const Current current(*this);
  check(to_device_(address(to), from, bytes, stream), "cuMemcpyHtoDAsync");
}

void DriverCalls::call_on_host(void (*function)(void*), void* data, void* stream) const {
  const Current current(*this);
  check(on_host_(stream, function, data), "cuLaunchHostFunc");
}

void* DriverCalls::allocate_host(std::size_t bytes) const {
  const Current current(*this);
  void* memory = nullptr;
  check(host_alloc_(&memory, bytes, 0), "cuMemHostAlloc");
  return memory;
}

void DriverCalls::free_host(void* memory) const noexcept {
  if (memory == nullptr || push_(device_.context()) != 0) return;
  free_host_(memory);
  void* context = nullptr;
  pop_(&context);
}

bool DriverCalls::export_memory(void* memory, IpcHandle& handle) const noexcept {
  if (ipc_get_ == nullptr || push_(device_.context()) != 0) return false;
  const bool is_done = ipc_get_(&handle, address(memory)) == 0;
  void* context = nullptr;
  pop_(&context);
  return is_done;
}

void* DriverCalls::open_peer(const IpcHandle& handle) const noexcept {
  if (ipc_open_ == nullptr || ipc_close_ == nullptr || push_(device_.context()) != 0)
    return nullptr;
  constexpr unsigned kLazyEnablePeerAccess = 1;
  std::uint64_t memory = 0;
  const bool is_done = ipc_open_(&memory, handle, kLazyEnablePeerAccess) == 0;
  void* context = nullptr;
  pop_(&context);
  return is_done ? reinterpret_cast<void*>(memory) : nullptr;
}

void DriverCalls::close_peer(void* memory) const noexcept {
  if (memory == nullptr || ipc_close_ == nullptr || push_(device_.context()) != 0) return;
  ipc_close_(address(memory));
  void* context = nullptr;
  pop_(&context);
}

bool DriverCalls::reach_context(void* context) const noexcept {
  if (context == device_.context()) return true;
  if (enable_peer_ == nullptr || push_(device_.context()) != 0) return false;
  constexpr Result kAlreadyEnabled = 704;
  const Result result = enable_peer_(context, 0);
  void* popped = nullptr;
  pop_(&popped);
  return result == 0 || result == kAlreadyEnabled;
}

}  // namespace tilewright::comm
