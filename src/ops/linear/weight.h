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
  kernels::PackedShape shape;
  kernels::WordOrder order;
  float alpha_bf16 = 1, alpha_e4m3 = 1;  ///< PackedWeight::alpha()
  device::Buffer bricks;                 ///< or rows, where the device keeps_rows()
  device::Buffer block_scales;           ///< kFp8: fp32 [k / 128][n / 128]; else empty
  // For block-scaled activations: rows [n, k], scales in tiles of 128 rows by 4, and alpha_bf16 the
  // scale of the tensor.

  const device::Device& device() const { return opened(handle); }
  template <class T>
  static const T* pointer_to(const device::Buffer& buffer) {
    return reinterpret_cast<const T*>(buffer.address());
  }
};

}  // namespace tilewright
