// What both kernels for many tokens (sm90_wide.h) are given, dense or by experts.
#pragma once

#include "device/device.h"
#include "formats/packed_matrix.h"
#include "kernels/linear/wide/sm90_wide.h"

#include <cstdint>

namespace tilewright::ops {

/// Rows of x: bf16 or, of one byte, e4m3.
struct WideRows {
  const char* name;
  const void* address;
  std::int64_t columns, rows, stride_bytes;
  int elem_bytes;
  int box_rows;  ///< of a copy; 128 bytes of each
};

/// Matrices of one shape, and where their products go.
struct WideProduct {
  WideRows x;
  const std::uint8_t* bricks;
  const float* block_scales;
  const kernels::PackedShape& shape;  ///< of one of them
  void* y;
  std::int64_t y_pitch;
};

/// Everything but tiles, factors, experts and the form of results: one matrix, no SwiGLU, k whole,
/// alpha 1. Errors as device::encode_tensor_map.
void bind_wide(const device::Device& device, const WideProduct& product,
               kernels::WideParams& params);

}  // namespace tilewright::ops
