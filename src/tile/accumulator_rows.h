// The two rows of a thread's warpgroup-MMA accumulators: the largest element of each, and products
// with a factor a row.
//
// A thread holds columns 8j + 2q + c of rows r and r + 8 (register 4j + 2h + c, h the row); the
// four threads of a quad share the rows.
#pragma once

#include "arch/register_index.h"

namespace tilewright::tile {

/// The largest of a thread's scores in row h, over four partial maxima: one chain of them all
/// would be as long as the tile is wide.
template <int Count>
__device__ float row_maximum(const float (&s)[Count], int h) {
  float top[4] = {s[2 * h], s[2 * h + 1], s[2 * h + 4], s[2 * h + 5]};
#pragma unroll
  for (int i = 8; i < Count; i += 4) {
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      float& part = top[i / 4 % 2 * 2 + c];
      part = fmaxf(part, s[i + 2 * h + c]);
    }
  }
  return fmaxf(fmaxf(top[0], top[1]), fmaxf(top[2], top[3]));
}

/// Multiplies the two rows of accumulators.
template <int Count>
__device__ inline void scale_rows(float (&o)[Count], const float (&factor)[2]) {
#pragma unroll
  for (int i = 0; i < Count; ++i) o[i] *= factor[arch::accumulator_row(i)];
}

}  // namespace tilewright::tile
