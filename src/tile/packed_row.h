// The largest of a row of scores, three at a time, as Blackwell has it.
#pragma once

#include "ptx/packed_math.h"

namespace tilewright::tile {

/// That of an array of numbers, of one dimension or two, and `largest`.
template <class Row>
__device__ float largest_of(const Row& row, float largest) {
  const auto* const x = reinterpret_cast<const float*>(&row);
  float top[4] = {largest, largest, largest, largest};
#pragma unroll
  for (int i = 0; i < static_cast<int>(sizeof row / 4); i += 2)
    top[i / 2 % 4] = ptx::max3_f32(top[i / 2 % 4], x[i], x[i + 1]);
  return fmaxf(ptx::max3_f32(top[0], top[1], top[2]), top[3]);
}

}  // namespace tilewright::tile
