// Copies and fills. The kind of a copy says which side is whose.
#include "sim/runtime/copy.h"

#include "sim/runtime/answer.h"
#include "sim/runtime/registry.h"

namespace tilewright::sim::runtime {

namespace {

using Kind = cudaMemcpyKind;

struct Sides {
  CUmemorytype from, to;
};

Sides sides_of(Kind kind) {
  switch (kind) {
    case Kind::kHostToHost:
      return {CUmemorytype::kHost, CUmemorytype::kHost};
    case Kind::kHostToDevice:
      return {CUmemorytype::kHost, CUmemorytype::kDevice};
    case Kind::kDeviceToHost:
      return {CUmemorytype::kDevice, CUmemorytype::kHost};
    case Kind::kDeviceToDevice:
      return {CUmemorytype::kDevice, CUmemorytype::kDevice};
    case Kind::kDefault:
      return {CUmemorytype::kUnified, CUmemorytype::kUnified};
  }
  refuse(cudaError::kInvalidMemcpyDirection);
}

void copy_now(void* to, const void* from, std::size_t bytes, Kind kind) {
  sides_of(kind);  // or refuse
  if (bytes == 0) return;
  switch (kind) {
    case Kind::kHostToDevice:
      return check(cuMemcpyHtoD_v2(address_of(to), from, bytes));
    case Kind::kDeviceToHost:
      return check(cuMemcpyDtoH_v2(to, address_of(from), bytes));
    case Kind::kDeviceToDevice:
      return check(cuMemcpyDtoD_v2(address_of(to), address_of(from), bytes));
    default:
      return check(cuMemcpy(address_of(to), address_of(from), bytes));
  }
}

void copy_on(CUstream stream, void* to, const void* from, std::size_t bytes, Kind kind) {
  sides_of(kind);  // or refuse
  if (bytes == 0) return;
  switch (kind) {
    case Kind::kHostToDevice:
      return check(cuMemcpyHtoDAsync_v2(address_of(to), from, bytes, stream));
    case Kind::kDeviceToHost:
      return check(cuMemcpyDtoHAsync_v2(to, address_of(from), bytes, stream));
    case Kind::kDeviceToDevice:
      return check(cuMemcpyDtoDAsync_v2(address_of(to), address_of(from), bytes, stream));
    default:
      return check(cuMemcpyAsync(address_of(to), address_of(from), bytes, stream));
  }
}

CUDA_MEMCPY2D rows(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                   std::size_t width, std::size_t height, Kind kind) {
  expect(width <= to_pitch && width <= from_pitch, cudaError::kInvalidPitchValue);
  const Sides sides = sides_of(kind);
  CUDA_MEMCPY2D copy{};
  copy.src_memory_type = sides.from;
  copy.src_host = from;
  copy.src_device = address_of(from);
  copy.src_pitch = from_pitch;
  copy.dst_memory_type = sides.to;
  copy.dst_host = to;
  copy.dst_device = address_of(to);
  copy.dst_pitch = to_pitch;
  copy.width_in_bytes = width;
  copy.height = height;
  return copy;
}

/// One side of such a copy is the device's.
void require_kind(Kind kind, Kind other) {
  expect(kind == other || kind == Kind::kDeviceToDevice || kind == Kind::kDefault,
         cudaError::kInvalidMemcpyDirection);
}

bool is_empty(const cudaExtent& extent) {
  return extent.width == 0 || extent.height == 0 || extent.depth == 0;
}

cudaMemcpy3DParms without_devices(const cudaMemcpy3DPeerParms& p) {
  return {p.src_array, p.src_pos, p.src_ptr, p.dst_array,
          p.dst_pos,   p.dst_ptr, p.extent,  Kind::kDefault};
}

/// Slices one below the other are one block of rows if nothing lies between them.
template <class Fill>
void fill_slices(const cudaPitchedPtr& to, const cudaExtent& extent, Fill&& fill) {
  if (is_empty(extent)) return;
  expect(extent.width <= to.pitch, cudaError::kInvalidPitchValue);
  if (extent.height == to.ysize || extent.depth == 1) {
    return fill(address_of(to.ptr), extent.height * extent.depth);
  }
  for (std::size_t z = 0; z < extent.depth; ++z) {
    fill(address_of(to.ptr) + z * to.pitch * to.ysize, extent.height);
  }
}

}  // namespace

CUDA_MEMCPY3D driver_copy(const cudaMemcpy3DParms& p) {
  expect(p.src_array == nullptr && p.dst_array == nullptr, cudaError::kNotSupported);
  const Sides sides = sides_of(p.kind);
  CUDA_MEMCPY3D copy{};
  copy.src_x_in_bytes = p.src_pos.x;
  copy.src_y = p.src_pos.y;
  copy.src_z = p.src_pos.z;
  copy.src_memory_type = sides.from;
  copy.src_host = p.src_ptr.ptr;
  copy.src_device = address_of(p.src_ptr.ptr);
  copy.src_pitch = p.src_ptr.pitch;
  copy.src_height = p.src_ptr.ysize;
  copy.dst_x_in_bytes = p.dst_pos.x;
  copy.dst_y = p.dst_pos.y;
  copy.dst_z = p.dst_pos.z;
  copy.dst_memory_type = sides.to;
  copy.dst_host = p.dst_ptr.ptr;
  copy.dst_device = address_of(p.dst_ptr.ptr);
  copy.dst_pitch = p.dst_ptr.pitch;
  copy.dst_height = p.dst_ptr.ysize;
  copy.width_in_bytes = p.extent.width;
  copy.height = p.extent.height;
  copy.depth = p.extent.depth;
  return copy;
}

CUDA_MEMCPY3D driver_copy(void* to, const void* from, std::size_t bytes, Kind kind) {
  cudaMemcpy3DParms copy{};
  copy.src_ptr = {const_cast<void*>(from), bytes, bytes, 1};
  copy.dst_ptr = {to, bytes, bytes, 1};
  copy.extent = {bytes, 1, 1};
  copy.kind = kind;
  return driver_copy(copy);
}

void* part_of(const void* symbol, std::size_t bytes, std::size_t offset) {
  const Variable variable = find_variable(symbol);
  expect(offset <= variable.bytes && bytes <= variable.bytes - offset);
  return reinterpret_cast<void*>(variable.address + offset);
}

extern "C" {

cudaError cudaMemcpy(void* to, const void* from, std::size_t bytes, Kind kind) {
  return in_context([&] { copy_now(to, from, bytes, kind); });
}

cudaError cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, Kind kind,
                          CUstream stream) {
  return in_context([&] { copy_on(stream, to, from, bytes, kind); });
}

cudaError cudaMemcpyPeer(void* to, int, const void* from, int, std::size_t bytes) {
  return in_context([&] { copy_now(to, from, bytes, Kind::kDeviceToDevice); });
}

cudaError cudaMemcpyPeerAsync(void* to, int, const void* from, int, std::size_t bytes,
                              CUstream stream) {
  return in_context([&] { copy_on(stream, to, from, bytes, Kind::kDeviceToDevice); });
}

cudaError cudaMemcpyToSymbol(const void* symbol, const void* from, std::size_t bytes,
                             std::size_t offset, Kind kind) {
  return in_context([&] {
    require_kind(kind, Kind::kHostToDevice);
    copy_now(part_of(symbol, bytes, offset), from, bytes, kind);
  });
}

cudaError cudaMemcpyToSymbolAsync(const void* symbol, const void* from, std::size_t bytes,
                                  std::size_t offset, Kind kind, CUstream stream) {
  return in_context([&] {
    require_kind(kind, Kind::kHostToDevice);
    copy_on(stream, part_of(symbol, bytes, offset), from, bytes, kind);
  });
}

cudaError cudaMemcpyFromSymbol(void* to, const void* symbol, std::size_t bytes, std::size_t offset,
                               Kind kind) {
  return in_context([&] {
    require_kind(kind, Kind::kDeviceToHost);
    copy_now(to, part_of(symbol, bytes, offset), bytes, kind);
  });
}

cudaError cudaMemcpyFromSymbolAsync(void* to, const void* symbol, std::size_t bytes,
                                    std::size_t offset, Kind kind, CUstream stream) {
  return in_context([&] {
    require_kind(kind, Kind::kDeviceToHost);
    copy_on(stream, to, part_of(symbol, bytes, offset), bytes, kind);
  });
}

cudaError cudaMemcpy2D(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                       std::size_t width, std::size_t height, Kind kind) {
  return in_context([&] {
    const CUDA_MEMCPY2D copy = rows(to, to_pitch, from, from_pitch, width, height, kind);
    if (width != 0 && height != 0) check(cuMemcpy2DUnaligned_v2(&copy));
  });
}

cudaError cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from,
                            std::size_t from_pitch, std::size_t width, std::size_t height,
                            Kind kind, CUstream stream) {
  return in_context([&] {
    const CUDA_MEMCPY2D copy = rows(to, to_pitch, from, from_pitch, width, height, kind);
    if (width != 0 && height != 0) check(cuMemcpy2DAsync_v2(&copy, stream));
  });
}

cudaError cudaMemcpy3D(const cudaMemcpy3DParms* params) {
  return in_context([&] {
    expect(params != nullptr);
    const CUDA_MEMCPY3D copy = driver_copy(*params);
    if (!is_empty(params->extent)) check(cuMemcpy3D_v2(&copy));
  });
}

cudaError cudaMemcpy3DAsync(const cudaMemcpy3DParms* params, CUstream stream) {
  return in_context([&] {
    expect(params != nullptr);
    const CUDA_MEMCPY3D copy = driver_copy(*params);
    if (!is_empty(params->extent)) check(cuMemcpy3DAsync_v2(&copy, stream));
  });
}

cudaError cudaMemcpy3DPeer(const cudaMemcpy3DPeerParms* params) {
  if (params == nullptr) return remember(cudaError::kInvalidValue);
  const cudaMemcpy3DParms copy = without_devices(*params);
  return cudaMemcpy3D(&copy);
}

cudaError cudaMemcpy3DPeerAsync(const cudaMemcpy3DPeerParms* params, CUstream stream) {
  if (params == nullptr) return remember(cudaError::kInvalidValue);
  const cudaMemcpy3DParms copy = without_devices(*params);
  return cudaMemcpy3DAsync(&copy, stream);
}

cudaError cudaMemset(void* to, int value, std::size_t bytes) {
  return in_context([&] {
    if (bytes == 0) return;
    check(cuMemsetD8_v2(address_of(to), static_cast<unsigned char>(value), bytes));
  });
}

cudaError cudaMemsetAsync(void* to, int value, std::size_t bytes, CUstream stream) {
  return in_context([&] {
    if (bytes == 0) return;
    check(cuMemsetD8Async(address_of(to), static_cast<unsigned char>(value), bytes, stream));
  });
}

cudaError cudaMemset3D(cudaPitchedPtr to, int value, cudaExtent extent) {
  return in_context([&] {
    fill_slices(to, extent, [&](CUdeviceptr at, std::size_t height) {
      check(cuMemsetD2D8_v2(at, to.pitch, static_cast<unsigned char>(value), extent.width, height));
    });
  });
}

cudaError cudaMemset3DAsync(cudaPitchedPtr to, int value, cudaExtent extent, CUstream stream) {
  return in_context([&] {
    fill_slices(to, extent, [&](CUdeviceptr at, std::size_t height) {
      check(cuMemsetD2D8Async(at, to.pitch, static_cast<unsigned char>(value), extent.width, height,
                              stream));
    });
  });
}

cudaError cudaMemset2D(void* to, std::size_t pitch, int value, std::size_t width,
                       std::size_t height) {
  return cudaMemset3D({to, pitch, width, height}, value, {width, height, 1});
}

cudaError cudaMemset2DAsync(void* to, std::size_t pitch, int value, std::size_t width,
                            std::size_t height, CUstream stream) {
  return cudaMemset3DAsync({to, pitch, width, height}, value, {width, height, 1}, stream);
}

cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, int kind) {
  return {x, y, z, w, kind};
}

}  // extern "C"

}  // namespace tilewright::sim::runtime
