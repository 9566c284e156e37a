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

}  // namespace tilewright::comm
