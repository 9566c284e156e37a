// The mix of hyper-connections from its sums: gates of the streams, and Sinkhorn by one warp.
#pragma once

#include "kernels/model/hyper_connection.h"

#include <cstdint>

#include <math.h>

namespace tilewright::kernels::hyper {

__device__ inline float sigmoid(float x) {
  return 1.0f / (1.0f + expf(-x));
}

using Square = float[kHyperStreams][kHyperStreams];

// Rows (or columns) of c divided by their sums + eps.
template <bool IsColumns>
__device__ inline void divide_by_sums(Square& c, float eps) {
#pragma unroll
  for (int i = 0; i < kHyperStreams; ++i) {
    const auto entry = [&](int j) -> float& { return IsColumns ? c[j][i] : c[i][j]; };
    const float factor = __fdividef(1.0f, (entry(0) + entry(1)) + (entry(2) + entry(3)) + eps);
#pragma unroll
    for (int j = 0; j < kHyperStreams; ++j) entry(j) *= factor;
  }
}

__device__ inline void sinkhorn(Square& c, int iterations, float eps) {
#pragma unroll
  for (int j = 0; j < kHyperStreams; ++j) {
    float(&row)[kHyperStreams] = c[j];
    const float largest = fmaxf(fmaxf(row[0], row[1]), fmaxf(row[2], row[3]));
#pragma unroll
    for (float& x : row) x = expf(x - largest);
  }
  divide_by_sums<false>(c, 0);
#pragma unroll
  for (int i = 0; i < kHyperStreams * kHyperStreams; ++i) c[i / 4][i % 4] += eps;
  divide_by_sums<true>(c, eps);
  for (int i = 1; i < iterations; ++i) {
    divide_by_sums<false>(c, eps);
    divide_by_sums<true>(c, eps);
  }
}

// Logit i of the mix in lane i, from dot product i in lane i and the sum of squares in the lane
// kHyperSquares.
__device__ inline float mix_logit(const HyperPreParams& p, float sum, int lane) {
  const float squares = __shfl_sync(~0u, sum, kHyperSquares);
  const float m = sum * rsqrtf(squares / static_cast<float>(kHyperStreams * p.hidden) + p.norm_eps);
  const int rows = p.is_head ? kHyperHeadRows : kHyperMixRows;
  const float base = lane < rows ? p.base[lane] : 0.0f;
  const float scale = lane < rows ? p.scale[lane < 4 ? 0 : lane < 8 ? 1 : 2] : 0.0f;
  return fmaf(m, scale, base);
}

// pre in lanes 0 to 3, post in 4 to 7.
__device__ inline float gate(const HyperPreParams& p, float logit, int lane) {
  return sigmoid(logit) * (lane < 4 ? 1.0f : 2.0f) + (lane < 4 ? p.eps : 0.0f);
}

// By one warp, every lane with all of comb.
__device__ inline void store_mix(const HyperPreParams& p, std::int64_t token, float logit,
                                 int lane) {
  const int rows = p.is_head ? kHyperHeadRows : kHyperMixRows;
  float value = gate(p, logit, lane);
  if (!p.is_head) {
    Square comb;
#pragma unroll
    for (int i = 0; i < kHyperStreams * kHyperStreams; ++i)
      comb[i / 4][i % 4] = __shfl_sync(~0u, logit, 8 + i);
    sinkhorn(comb, p.iterations, p.eps);
#pragma unroll
    for (int i = 0; i < kHyperStreams * kHyperStreams; ++i)
      if (lane == 8 + i) value = comb[i / 4][i % 4];
  }
  if (lane < rows) p.mix[token * rows + lane] = value;
}

}  // namespace tilewright::kernels::hyper
