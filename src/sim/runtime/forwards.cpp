// What the driver does under another name, and what differs from it by an argument.
#include "sim/runtime/forwards.h"

#include "sim/runtime/answer.h"

namespace tilewright::sim::runtime {

extern "C" {

#define TILEWRIGHT_DEFINE(name, driver_name, parameters, arguments) \
  cudaError name parameters {                                       \
    return in_context([&] { check(driver_name arguments); });       \
  }
TILEWRIGHT_SIM_RUNTIME_FORWARDS(TILEWRIGHT_DEFINE)
#undef TILEWRIGHT_DEFINE

cudaError cudaStreamCreate(CUstream* out) {
  return in_context([&] { check(cuStreamCreate(out, 0)); });
}

cudaError cudaEventCreate(CUevent* out) {
  return in_context([&] { check(cuEventCreate(out, 0)); });
}

cudaError cudaStreamAttachMemAsync(CUstream stream, void* pointer, std::size_t bytes,
                                   unsigned flags) {
  return in_context(
      [&] { check(cuStreamAttachMemAsync(stream, address_of(pointer), bytes, flags)); });
}

cudaError cudaMemAdvise(const void* pointer, std::size_t bytes, CUmem_advise advice,
                        CUmemLocation location) {
  return in_context([&] { check(cuMemAdvise_v2(address_of(pointer), bytes, advice, location)); });
}

cudaError cudaMemPrefetchAsync(const void* pointer, std::size_t bytes, CUmemLocation location,
                               unsigned flags, CUstream stream) {
  return in_context(
      [&] { check(cuMemPrefetchAsync_v2(address_of(pointer), bytes, location, flags, stream)); });
}

cudaError cudaMemRangeGetAttribute(void* out, std::size_t out_bytes,
                                   CUmem_range_attribute attribute, const void* pointer,
                                   std::size_t bytes) {
  return in_context([&] {
    check(cuMemRangeGetAttribute(out, out_bytes, attribute, address_of(pointer), bytes));
  });
}

cudaError cudaMemRangeGetAttributes(void** out, std::size_t* out_bytes,
                                    CUmem_range_attribute* attributes, std::size_t count,
                                    const void* pointer, std::size_t bytes) {
  return in_context([&] {
    check(cuMemRangeGetAttributes(out, out_bytes, attributes, count, address_of(pointer), bytes));
  });
}

cudaError cudaLibraryGetGlobal(void** out, std::size_t* bytes, CUlibrary library,
                               const char* name) {
  return in_context([&] {
    check(cuLibraryGetGlobal(reinterpret_cast<CUdeviceptr*>(out), bytes, library, name));
  });
}

cudaError cudaLibraryGetManaged(void** out, std::size_t* bytes, CUlibrary library,
                                const char* name) {
  return in_context([&] {
    check(cuLibraryGetManaged(reinterpret_cast<CUdeviceptr*>(out), bytes, library, name));
  });
}

cudaError cudaKernelSetAttributeForDevice(CUkernel kernel, CUfunction_attribute attribute,
                                          int value, int device) {
  return in_context([&] { check(cuKernelSetAttribute(attribute, value, kernel, device)); });
}

}  // extern "C"

}  // namespace tilewright::sim::runtime
