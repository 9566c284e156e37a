// What codes of e4m3 are to be multiplied with.
#pragma once

#include "kernels/attention/k7/fp8_operands.h"

#include <cstdint>

namespace tilewright::tile {

/// That of a sequence, a head of a tensor and a block of its tokens.
__device__ inline float find_scale(const kernels::Fp8Scales& scales, std::int32_t batch,
                                   std::int32_t head, std::int32_t block) {
  return scales.values[batch * scales.batch_stride + head * scales.head_stride +
                       std::int64_t{block} * scales.block_stride];
}

}  // namespace tilewright::tile
