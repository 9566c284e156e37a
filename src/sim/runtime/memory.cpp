// Memory: given out, given back, and asked about.
#include "sim/runtime/answer.h"

#include <iterator>

namespace tilewright::sim::runtime {

namespace {

constexpr unsigned kPitchElementBytes = 4;
constexpr unsigned kManagedGlobal = 1;

/// The driver's functions write an address, the runtime's a pointer: the same 8 bytes.
CUdeviceptr* as_address(void** pointer) {
  return reinterpret_cast<CUdeviceptr*>(pointer);
}

/// Nothing is asked for: nothing is given, and that is no error.
bool is_nothing(void** out, std::size_t bytes) {
  expect(out != nullptr);
  if (bytes == 0) *out = nullptr;
  return bytes == 0;
}

void allocate_pitched(void** out, std::size_t* pitch, std::size_t width, std::size_t height) {
  expect(pitch != nullptr);
  *pitch = 0;
  if (is_nothing(out, width * height)) return;
  check(cuMemAllocPitch_v2(as_address(out), pitch, width, height, kPitchElementBytes));
}

}  // namespace

extern "C" {

cudaError cudaMalloc(void** out, std::size_t bytes) {
  return in_context([&] {
    if (!is_nothing(out, bytes)) check(cuMemAlloc_v2(as_address(out), bytes));
  });
}

cudaError cudaFree(void* pointer) {
  return in_context([&] {
    if (pointer != nullptr) check(cuMemFree_v2(address_of(pointer)));
  });
}

cudaError cudaMallocPitch(void** out, std::size_t* pitch, std::size_t width, std::size_t height) {
  return in_context([&] { allocate_pitched(out, pitch, width, height); });
}

cudaError cudaMalloc3D(cudaPitchedPtr* out, cudaExtent extent) {
  return in_context([&] {
    expect(out != nullptr);
    *out = {.ptr = nullptr, .pitch = 0, .xsize = extent.width, .ysize = extent.height};
    allocate_pitched(&out->ptr, &out->pitch, extent.width, extent.height * extent.depth);
  });
}

cudaError cudaHostAlloc(void** out, std::size_t bytes, unsigned flags) {
  return in_context([&] {
    if (!is_nothing(out, bytes)) check(cuMemHostAlloc(out, bytes, flags));
  });
}

cudaError cudaMallocHost(void** out, std::size_t bytes) {
  return cudaHostAlloc(out, bytes, 0);
}

cudaError cudaFreeHost(void* pointer) {
  return in_context([&] {
    if (pointer != nullptr) check(cuMemFreeHost(pointer));
  });
}

cudaError cudaHostRegister(void* pointer, std::size_t bytes, unsigned flags) {
  return in_context([&] { check(cuMemHostRegister_v2(pointer, bytes, flags)); });
}

cudaError cudaHostUnregister(void* pointer) {
  return in_context([&] { check(cuMemHostUnregister(pointer)); });
}

cudaError cudaHostGetDevicePointer(void** out, void* pointer, unsigned flags) {
  return in_context([&] { check(cuMemHostGetDevicePointer_v2(as_address(out), pointer, flags)); });
}

cudaError cudaHostGetFlags(unsigned* out, void* pointer) {
  return in_context([&] { check(cuMemHostGetFlags(out, pointer)); });
}

cudaError cudaMallocManaged(void** out, std::size_t bytes, unsigned flags) {
  return in_context([&] {
    expect(out != nullptr && bytes > 0);
    check(cuMemAllocManaged(as_address(out), bytes, flags == 0 ? kManagedGlobal : flags));
  });
}

cudaError cudaMallocAsync(void** out, std::size_t bytes, CUstream stream) {
  return in_context([&] {
    if (!is_nothing(out, bytes)) check(cuMemAllocAsync(as_address(out), bytes, stream));
  });
}

cudaError cudaMallocFromPoolAsync(void** out, std::size_t bytes, CUmemoryPool pool,
                                  CUstream stream) {
  return in_context([&] {
    if (!is_nothing(out, bytes)) {
      check(cuMemAllocFromPoolAsync(as_address(out), bytes, pool, stream));
    }
  });
}

cudaError cudaFreeAsync(void* pointer, CUstream stream) {
  return in_context([&] {
    if (pointer != nullptr) check(cuMemFreeAsync(address_of(pointer), stream));
  });
}

cudaError cudaPointerGetAttributes(cudaPointerAttributes* out, const void* pointer) {
  return in_context([&] {
    expect(out != nullptr);
    CUmemorytype type{};
    unsigned is_managed = 0;
    int device = 0;
    void* device_pointer = nullptr;
    void* host_pointer = nullptr;
    CUpointer_attribute wanted[] = {
        CUpointer_attribute::kMemoryType, CUpointer_attribute::kIsManaged,
        CUpointer_attribute::kDeviceOrdinal, CUpointer_attribute::kDevicePointer,
        CUpointer_attribute::kHostPointer};
    void* values[] = {&type, &is_managed, &device, &device_pointer, &host_pointer};
    check(cuPointerGetAttributes(std::size(wanted), wanted, values, address_of(pointer)));
    const cudaMemoryType kind = is_managed != 0                 ? cudaMemoryType::kManaged
                                : type == CUmemorytype::kHost   ? cudaMemoryType::kHost
                                : type == CUmemorytype::kDevice ? cudaMemoryType::kDevice
                                                                : cudaMemoryType::kUnregistered;
    // Memory that was not registered is the host's own.
    if (kind == cudaMemoryType::kUnregistered) host_pointer = const_cast<void*>(pointer);
    *out = {kind, device, device_pointer, host_pointer, {}};
  });
}

}  // extern "C"

}  // namespace tilewright::sim::runtime
