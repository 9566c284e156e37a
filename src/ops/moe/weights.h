// Experts in device memory, as the kernels read them.
#pragma once

#include "tilewright/moe.h"

#include "device/memory.h"
#include "formats/packed_matrix.h"

#include <cstdint>

namespace tilewright {

namespace ops {

/// One projection of all experts: matrices one after the other, the shared expert's last.
struct PackedExperts {
  kernels::PackedShape shape;  ///< of one matrix
  device::Buffer bricks;
  device::Buffer block_scales;  ///< kFp8: of each matrix, [k / 128][row / 128] (gate, then up)
  /// Factors of the products, of weights decoded to bf16: [matrices], gate_up [matrices][2].
  device::Buffer alphas;

  std::int64_t block_scale_elems = 0;  ///< of one matrix

  /// For block-scaled activations the bricks are plain rows of so many bytes, and these the scales
  /// of each matrix in whole tiles of 128 rows by 4 (formats/scale_layout.h).
  device::Buffer scales;
  std::int64_t row_bytes = 0;
  bool has_power_scales = false;  ///< block_scales are what WideParams says

  /// Beside alphas, of weights decoded to e4m3.
  float e4m3_alpha() const noexcept;
};

}  // namespace ops

struct MoeWeights::State {
  Device device;  // keeps it open
  MoeWeightsInfo info;
  ops::PackedExperts gate_up, down;

  std::int64_t matrices() const { return info.experts + (info.has_shared ? 1 : 0); }
};

}  // namespace tilewright
