#include "sim/driver/abi/functions.h"
#include "sim/driver/objects/graph.h"
#include "sim/driver/objects/stream.h"

namespace tilewright::sim::abi {

namespace {

CUDA_MEMSET_NODE_PARAMS params(CUdeviceptr to, size_t pitch, unsigned value, unsigned element_size,
                               size_t width, size_t height) {
  return {.dst = to,
          .pitch = pitch,
          .value = value,
          .element_size = element_size,
          .width = width,
          .height = height};
}

CUresult set_now(const CUDA_MEMSET_NODE_PARAMS& p) {
  return call_in_usable_context([&](Context& context) {
    require_not_captured(*context.legacy_stream);
    run(context, make_memset_work(p));
  });
}

CUresult set_on(CUstream handle, const CUDA_MEMSET_NODE_PARAMS& p) {
  return call([&] {
    const std::shared_ptr<Stream> stream = find_stream(handle);
    const Work work = make_memset_work(p);
    validate(std::get<MemsetWork>(work));
    submit(*stream, work);
  });
}

}  // namespace

CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count) {
  return set_now(params(to, 0, value, 1, count, 1));
}

CUresult cuMemsetD16_v2(CUdeviceptr to, unsigned short value, size_t count) {
  return set_now(params(to, 0, value, 2, count, 1));
}

CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned value, size_t count) {
  return set_now(params(to, 0, value, 4, count, 1));
}

CUresult cuMemsetD2D8_v2(CUdeviceptr to, size_t pitch, unsigned char value, size_t width,
                         size_t height) {
  return set_now(params(to, pitch, value, 1, width, height));
}

CUresult cuMemsetD2D16_v2(CUdeviceptr to, size_t pitch, unsigned short value, size_t width,
                          size_t height) {
  return set_now(params(to, pitch, value, 2, width, height));
}

CUresult cuMemsetD2D32_v2(CUdeviceptr to, size_t pitch, unsigned value, size_t width,
                          size_t height) {
  return set_now(params(to, pitch, value, 4, width, height));
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
  return set_on(stream, params(to, 0, value, 1, count, 1));
}

CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream stream) {
  return set_on(stream, params(to, 0, value, 2, count, 1));
}

CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream stream) {
  return set_on(stream, params(to, 0, value, 4, count, 1));
}

CUresult cuMemsetD2D8Async(CUdeviceptr to, size_t pitch, unsigned char value, size_t width,
                           size_t height, CUstream stream) {
  return set_on(stream, params(to, pitch, value, 1, width, height));
}

CUresult cuMemsetD2D16Async(CUdeviceptr to, size_t pitch, unsigned short value, size_t width,
                            size_t height, CUstream stream) {
  return set_on(stream, params(to, pitch, value, 2, width, height));
}

CUresult cuMemsetD2D32Async(CUdeviceptr to, size_t pitch, unsigned value, size_t width,
                            size_t height, CUstream stream) {
  return set_on(stream, params(to, pitch, value, 4, width, height));
}

}  // namespace tilewright::sim::abi
