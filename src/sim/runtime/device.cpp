// Which device a thread works on, and the contexts that are created implicitly.
#include "sim/runtime/device.h"

#include "sim/runtime/answer.h"
#include "sim/runtime/registry.h"

#include <cstring>
#include <mutex>
#include <vector>

namespace tilewright::sim::runtime {

namespace {

thread_local int chosen_device = 0;

int num_devices() {
  int count = 0;
  check(cuDeviceGetCount(&count));
  return count;
}

void require_device(int device) {
  require_driver();
  expect(device >= 0 && device < num_devices(), cudaError::kInvalidDevice);
}

/// The device's primary context; retained once and kept, as the runtime does.
CUcontext primary_context(int device) {
  static std::mutex mutex;
  static auto& contexts = *new std::vector<CUcontext>;
  const std::lock_guard lock(mutex);
  const auto index = static_cast<std::size_t>(device);
  if (contexts.size() <= index) contexts.resize(index + 1);
  if (contexts[index] == nullptr) check(cuDevicePrimaryCtxRetain(&contexts[index], device));
  return contexts[index];
}

}  // namespace

void require_driver() {
  static const CUresult result = cuInit(0);
  check(result);
}

void require_context() {
  require_driver();
  CUcontext current = nullptr;
  check(cuCtxGetCurrent(&current));
  if (current != nullptr) return;
  check(cuCtxSetCurrent(primary_context(chosen_device)));
}

int current_device() {
  require_driver();
  CUcontext current = nullptr;
  check(cuCtxGetCurrent(&current));
  if (current == nullptr) return chosen_device;
  int device = 0;
  check(cuCtxGetDevice(&device));
  return device;
}

extern "C" {

cudaError cudaGetDeviceCount(int* out) {
  return with_driver([&] {
    expect(out != nullptr);
    *out = num_devices();
  });
}

cudaError cudaSetDevice(int device) {
  return answer([&] {
    require_device(device);
    check(cuCtxSetCurrent(primary_context(device)));
    chosen_device = device;
  });
}

cudaError cudaInitDevice(int device, unsigned flags, unsigned are_flags_valid) {
  return answer([&] {
    require_device(device);
    expect(are_flags_valid <= 1);
    if (are_flags_valid == 1) check(cuDevicePrimaryCtxSetFlags_v2(device, flags));
    primary_context(device);
  });
}

cudaError cudaGetDevice(int* out) {
  return with_driver([&] {
    expect(out != nullptr);
    *out = current_device();
  });
}

cudaError cudaSetValidDevices(int* devices, int count) {
  return answer([&] {
    expect(count >= 0 && (devices != nullptr || count == 0));
    for (int i = 0; i < count; ++i) require_device(devices[i]);
  });
}

cudaError cudaChooseDevice(int* out, const cudaDeviceProp* wanted) {
  return with_driver([&] {
    expect(out != nullptr && wanted != nullptr);
    *out = current_device();
  });
}

cudaError cudaDeviceReset() {
  return with_driver([&] {
    const int device = current_device();
    check(cuDevicePrimaryCtxReset_v2(device));
    forget_last_error();
    renew_managed_variables();
  });
}

cudaError cudaGetDeviceFlags(unsigned* out) {
  return in_context([&] {
    expect(out != nullptr);
    check(cuCtxGetFlags(out));
  });
}

cudaError cudaSetDeviceFlags(unsigned flags) {
  return with_driver([&] { check(cuDevicePrimaryCtxSetFlags_v2(current_device(), flags)); });
}

cudaError cudaDeviceGetAttribute(int* out, CUdevice_attribute attribute, int device) {
  return answer([&] {
    require_device(device);
    check(cuDeviceGetAttribute(out, attribute, device));
  });
}

cudaError cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  return in_context([&] {
    require_device(peer);
    expect(flags == 0);
    expect(peer != current_device(), cudaError::kInvalidDevice);
    refuse(cudaError::kPeerAccessUnsupported);
  });
}

cudaError cudaDeviceDisablePeerAccess(int peer) {
  return in_context([&] {
    require_device(peer);
    refuse(cudaError::kPeerAccessNotEnabled);
  });
}

cudaError cudaDriverGetVersion(int* out) {
  return answer([&] { check(cuDriverGetVersion(out)); });
}

cudaError cudaRuntimeGetVersion(int* out) {
  return answer([&] {
    expect(out != nullptr);
    *out = kRuntimeVersion;
  });
}

cudaError cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned version,
                                           unsigned long long flags,
                                           CUdriverProcAddressQueryResult* status) {
  return with_driver([&] {
    const CUresult result =
        cuGetProcAddress_v2(symbol, function, static_cast<int>(version), flags, status);
    // Who asks for the status learns from it that there is no such function.
    if (result == CUresult::kNotFound && status != nullptr) return;
    check(result);
  });
}

cudaError cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long flags,
                                  CUdriverProcAddressQueryResult* status) {
  return cudaGetDriverEntryPointByVersion(symbol, function, kRuntimeVersion, flags, status);
}

}  // extern "C"

}  // namespace tilewright::sim::runtime
