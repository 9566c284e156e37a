// The mix of hyper-connections from its sums: gates of the streams, and Sinkhorn by one warp.
#pragma once

#include "kernels/model/hyper_connection.h"
#include "ptx/reciprocal.h"

#include <cstdint>

#include <math.h>

namespace tilewright::kernels::hyper {

__device__ inline float sigmoid(float x) {
  return 1.0f / (1.0f + expf(-x));
}

// Factors of rows or columns that make all of them sum up to 1, but for eps: number i in the lanes
// i mod 4. An entry is u_i K_ij v_j. A new u_i is 1 / (sum over j of K_ij v_j + eps / u_i): the
// same as dividing entries by the sums of their rows + eps, but with one reciprocal in every lane.
// Four of them in a row, in every lane the same, would be half of the time of an iteration.
struct Factors {
  float entries[kHyperStreams];  // entry m: of the number that is this one's exclusive-or with m
  float factor = 1, inverse = 1;

  __device__ void fit(const Factors& other, float eps) {
    const auto product = [&](int m, float sum) {
      return fmaf(entries[m], m == 0 ? other.factor : __shfl_xor_sync(~0u, other.factor, m), sum);
    };
    inverse = product(1, product(0, eps * inverse)) + product(3, product(2, 0.0f));
    factor = ptx::rcp_approx_ftz_f32(inverse);
  }
};

// Logit (i, j) in lane 8 + 4 i + j, which gets that entry.
__device__ inline float sinkhorn(float logit, int iterations, float eps, int lane) {
  float largest = fmaxf(logit, __shfl_xor_sync(~0u, logit, 1));
  largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 2));
  float entry = expf(logit - largest);
  float sum = entry + __shfl_xor_sync(~0u, entry, 1);
  sum += __shfl_xor_sync(~0u, sum, 2);
  entry = fmaf(entry, ptx::rcp_approx_ftz_f32(sum), eps);
  constexpr int kFirst = 2 * kHyperStreams;
  Factors rows, columns;
#pragma unroll
  for (int m = 0; m < kHyperStreams; ++m) {
    const int own = lane % kHyperStreams, other = own ^ m;
    rows.entries[m] = __shfl_sync(~0u, entry, kFirst + kHyperStreams * own + other);
    columns.entries[m] = __shfl_sync(~0u, entry, kFirst + kHyperStreams * other + own);
  }
  columns.fit(rows, eps);
  for (int i = 1; i < iterations; ++i) {
    rows.fit(columns, eps);
    columns.fit(rows, eps);
  }
  return entry * __shfl_sync(~0u, rows.factor, lane / kHyperStreams - 2) * columns.factor;
}

// What makes a logit of a dot product: of number i of the mix in lane i.
struct MixTerms {
  float base, scale;

  __device__ MixTerms(const HyperPreParams& p, int lane) {
    const int rows = p.is_head ? kHyperHeadRows : kHyperMixRows;
    base = lane < rows ? p.base[lane] : 0.0f;
    scale = lane < rows ? p.scale[lane < 4 ? 0 : lane < 8 ? 1 : 2] : 0.0f;
  }
  __device__ float logit(const HyperPreParams& p, float sum, float squares) const {
    const float m =
        sum * rsqrtf(squares / static_cast<float>(kHyperStreams * p.hidden) + p.norm_eps);
    return fmaf(m, scale, base);
  }
};

// Logit i of the mix in lane i, from dot product i in lane i and the sum of squares in the lane
// kHyperSquares.
__device__ inline float mix_logit(const HyperPreParams& p, float sum, int lane) {
  const float squares = __shfl_sync(~0u, sum, kHyperSquares);
  return MixTerms(p, lane).logit(p, sum, squares);
}

// pre in lanes 0 to 3, post in 4 to 7.
__device__ inline float gate(const HyperPreParams& p, float logit, int lane) {
  return sigmoid(logit) * (lane < 4 ? 1.0f : 2.0f) + (lane < 4 ? p.eps : 0.0f);
}

// By one warp.
__device__ inline void store_mix(const HyperPreParams& p, std::int64_t token, float logit,
                                 int lane) {
  const int rows = p.is_head ? kHyperHeadRows : kHyperMixRows;
  float value = gate(p, logit, lane);
  if (!p.is_head) {
    const float comb = sinkhorn(logit, p.iterations, p.eps, lane);
    if (lane >= 2 * kHyperStreams) value = comb;
  }
  if (lane < rows) p.mix[token * rows + lane] = value;
}

}  // namespace tilewright::kernels::hyper
