// Copies. Device memory is host memory here, so that a direction only says what may be checked.
#include "sim/driver/abi/functions.h"
#include "sim/driver/objects/graph.h"
#include "sim/driver/objects/stream.h"

namespace tilewright::sim::abi {

namespace {

CUDA_MEMCPY3D flat(CUmemorytype to_type, std::uint64_t to, CUmemorytype from_type,
                   std::uint64_t from, size_t bytes) {
  CUDA_MEMCPY3D copy{};
  copy.src_memory_type = from_type;
  copy.src_host = reinterpret_cast<const void*>(from);
  copy.src_device = from;
  copy.dst_memory_type = to_type;
  copy.dst_host = reinterpret_cast<void*>(to);
  copy.dst_device = to;
  copy.width_in_bytes = bytes;
  copy.height = 1;
  copy.depth = 1;
  return copy;
}

CUDA_MEMCPY3D as_3d(const CUDA_MEMCPY2D& c) {
  CUDA_MEMCPY3D copy{};
  copy.src_x_in_bytes = c.src_x_in_bytes;
  copy.src_y = c.src_y;
  copy.src_memory_type = c.src_memory_type;
  copy.src_host = c.src_host;
  copy.src_device = c.src_device;
  copy.src_pitch = c.src_pitch;
  copy.dst_x_in_bytes = c.dst_x_in_bytes;
  copy.dst_y = c.dst_y;
  copy.dst_memory_type = c.dst_memory_type;
  copy.dst_host = c.dst_host;
  copy.dst_device = c.dst_device;
  copy.dst_pitch = c.dst_pitch;
  copy.width_in_bytes = c.width_in_bytes;
  copy.height = c.height;
  copy.depth = 1;
  return copy;
}

CUDA_MEMCPY3D without_contexts(const CUDA_MEMCPY3D_PEER& c) {
  CUDA_MEMCPY3D copy{};
  static_assert(sizeof copy == sizeof c);
  __builtin_memcpy(&copy, &c, sizeof copy);  // the contexts are where the other has reserved words
  copy.reserved0 = nullptr;
  copy.reserved1 = nullptr;
  return copy;
}

/// On the legacy stream, and done when the call returns.
void copy_now(const CUDA_MEMCPY3D& copy) {
  Context& context = usable_context();
  require_not_captured(*context.legacy_stream);
  run(context, make_copy_work(copy));
}

void copy_on(CUstream handle, const CUDA_MEMCPY3D& copy) {
  const std::shared_ptr<Stream> stream = find_stream(handle);
  const Work work = make_copy_work(copy);
  validate(std::get<CopyWork>(work));
  submit(*stream, work);
}

constexpr CUmemorytype kHost = CUmemorytype::kHost;
constexpr CUmemorytype kDevice = CUmemorytype::kDevice;
constexpr CUmemorytype kUnified = CUmemorytype::kUnified;

std::uint64_t address(const void* pointer) {
  return reinterpret_cast<std::uint64_t>(pointer);
}

}  // namespace

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return call([&] { copy_now(flat(kUnified, to, kUnified, from, bytes)); });
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t bytes) {
  return call([&] { copy_now(flat(kDevice, to, kHost, address(from), bytes)); });
}

CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t bytes) {
  return call([&] { copy_now(flat(kHost, address(to), kDevice, from, bytes)); });
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return call([&] { copy_now(flat(kDevice, to, kDevice, from, bytes)); });
}

CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, size_t bytes) {
  return call([&] { copy_now(flat(kDevice, to, kDevice, from, bytes)); });
}

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D* copy) {
  return call([&] {
    expect(copy != nullptr);
    copy_now(as_3d(*copy));
  });
}

CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* copy) {
  return cuMemcpy2D_v2(copy);
}

CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D* copy) {
  return call([&] {
    expect(copy != nullptr);
    copy_now(*copy);
  });
}

CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER* copy) {
  return call([&] {
    expect(copy != nullptr);
    copy_now(without_contexts(*copy));
  });
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return call([&] { copy_on(stream, flat(kUnified, to, kUnified, from, bytes)); });
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  return call([&] { copy_on(stream, flat(kDevice, to, kHost, address(from), bytes)); });
}

CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return call([&] { copy_on(stream, flat(kHost, address(to), kDevice, from, bytes)); });
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return call([&] { copy_on(stream, flat(kDevice, to, kDevice, from, bytes)); });
}

CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, size_t bytes,
                           CUstream stream) {
  return call([&] { copy_on(stream, flat(kDevice, to, kDevice, from, bytes)); });
}

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* copy, CUstream stream) {
  return call([&] {
    expect(copy != nullptr);
    copy_on(stream, as_3d(*copy));
  });
}

CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* copy, CUstream stream) {
  return call([&] {
    expect(copy != nullptr);
    copy_on(stream, *copy);
  });
}

CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER* copy, CUstream stream) {
  return call([&] {
    expect(copy != nullptr);
    copy_on(stream, without_contexts(*copy));
  });
}

}  // namespace tilewright::sim::abi
