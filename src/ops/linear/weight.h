// What a prepared weight is on a device.
#pragma once

#include "tilewright/linear.h"

#include "device/internal.h"
#include "device/memory.h"
#include "formats/packed_matrix.h"

namespace tilewright {

struct LinearWeight::State {
  Device handle;  ///< keeps the device open
  LinearWeightInfo info;
  kernels::PackedShape shape;  ///< of a group
  kernels::WordOrder order;
  float alpha_bf16 = 1, alpha_e4m3 = 1;  ///< PackedWeight::alpha()
  device::Buffer bricks;                 ///< or rows, where the device keeps_rows()
  device::Buffer block_scales;           ///< kFp8: fp32 [k / 128][n / 128]; else empty
  /// Those are powers of two within WideParams::has_power_scales.
  bool has_power_scales = false;
  // For block-scaled activations: rows [n, k], scales in tiles of 128 rows by 4, and alpha_bf16 the
  // scale of the tensor.

  // Groups stand one after the other in both.

  const device::Device& device() const { return opened(handle); }
  /// What belongs to a group in one of the buffers.
  template <class T>
  const T* pointer_to(const device::Buffer& buffer, std::int64_t group = 0) const {
    const std::size_t bytes = buffer.size_bytes() / static_cast<std::size_t>(info.groups);
    return reinterpret_cast<const T*>(buffer.address() + static_cast<std::size_t>(group) * bytes);
  }
};

}  // namespace tilewright
