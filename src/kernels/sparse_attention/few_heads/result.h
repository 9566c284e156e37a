// Results of few heads: sums shared by the warps of a team, then each warp's 64 dimensions.
#pragma once

#include "kernels/sparse_attention/few_heads/decode_few_heads.h"
#include "kernels/sparse_attention/few_heads/keys.h"
#include "kernels/sparse_attention/finish.h"
#include "kernels/sparse_attention/work.h"
#include "ptx/warp_roles.h"
#include "tile/element.h"
#include "tile/element_chunk.h"
#include "tile/row_end.h"

#include <cstdint>

#include <math.h>

namespace tilewright::tile {

/// What weights are relative to before the first key: weights relative to it would be 0.
inline constexpr float kFewHeadsNoKey = -1e30f;

/// Of each tile of 8 heads a lane has heads 2 t and 2 t + 1.
template <int Tiles>
using PerHead = float[Tiles][2];

template <KvFormat Format, int Tiles>
struct FewHeadsResult {
  using Keys = FewHeadsKeys<Format>;

  const kernels::SparseDecodeParams& p;
  kernels::FewHeadsFixed<Tiles * 8>& fixed;
  std::int32_t first_head;
  std::uint32_t warp, g, t, barrier;  ///< barrier: the team's
  const float (&o)[4][Tiles][4];
  const PerHead<Tiles>& reference;
  PerHead<Tiles>& sum;
  std::uint32_t ceiling;

  __device__ std::uint32_t head_of(int n, int h) const {
    return static_cast<std::uint32_t>(n * 8 + h) + t * 2;
  }

  /// The warp's 64 dimensions of a head, eight a lane.
  __device__ void store_head(const SparseQuery& query, std::int32_t partial, int n, int h,
                             std::int32_t head, float factor) const {
    const float unit_of_values = Keys::kIsF16 ? __uint_as_float(ceiling << 23) : Keys::kValue;
    const float scale = warp == kernels::kFewHeadsConsumers - 1 ? factor : factor * unit_of_values;
    const std::uint32_t dim = warp * 64 + g * 8;
    float x[8];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      x[2 * i] = o[i][n][h] * scale;
      x[2 * i + 1] = o[i][n][2 + h] * scale;
    }
    if (partial >= 0) {
      const std::int64_t to = (std::int64_t{partial} * p.heads + head) * kKvDims + dim;
      auto* const out = reinterpret_cast<float4*>(p.partial_out + to);
      out[0] = make_float4(x[0], x[1], x[2], x[3]);
      out[1] = make_float4(x[4], x[5], x[6], x[7]);
    } else {
      std::uint16_t* const to = p.out + query.offset(p.out_strides, head) + dim;
      *reinterpret_cast<uint4*>(to) = pack_chunk<Bf16>(x, 1.0f);
    }
  }
  /// The largest score is not what weights are relative to.
  __device__ void store_largest(const SparseQuery& query, std::int32_t partial,
                                std::int32_t head) const {
    if (p.max_logits == nullptr || partial >= 0) return;
    float all = -INFINITY;
#pragma unroll
    for (int w = 0; w < kernels::kFewHeadsConsumers; ++w)
      all = fmaxf(all, fixed.maxima[w][head - first_head]);
    p.max_logits[query.offset(p.lse_strides, head)] = all * kLn2;
  }

  /// Sums of all keys' weights, which the lanes of a quad, the quads and the warps have parts of.
  __device__ void share_sums() {
    const std::uint32_t lane = threadIdx.x % 32;
    if (lane < Tiles * 8) fixed.maxima[warp][lane] = fixed.largest[warp][lane];
    __syncwarp();  // sums take the place of the largest
#pragma unroll
    for (int n = 0; n < Tiles; ++n) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
#pragma unroll
        for (int step = 4; step < 32; step *= 2)
          sum[n][h] += __shfl_xor_sync(0xffffffffu, sum[n][h], step);
        if (g != 0) continue;
        fixed.sums[warp][head_of(n, h)] = sum[n][h];
      }
    }
    ptx::bar_sync<kernels::kFewHeadsConsumers * 32>(barrier);
  }

  __device__ void store(const SparseQuery& query, std::int32_t partial) {
    share_sums();
    const float* const sinks = partial < 0 && p.sink != nullptr ? fixed.sinks : nullptr;
#pragma unroll
    for (int n = 0; n < Tiles; ++n) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const std::uint32_t column = head_of(n, h);
        const std::int32_t head = first_head + static_cast<std::int32_t>(column);
        if (head >= p.heads) continue;
        float total = 0.0f;
#pragma unroll
        for (int w = 0; w < kernels::kFewHeadsConsumers; ++w) total += fixed.sums[w][column];
        const bool is_empty = reference[n][h] == kFewHeadsNoKey;
        const SparseRowSum row = {is_empty ? -INFINITY : reference[n][h], total};
        store_head(query, partial, n, h, head,
                   row.factor(sinks, static_cast<std::int32_t>(column)));
        if (warp != 0 || g != 0) continue;
        store_sparse_row_sum(p, query, partial, head, row);
        store_largest(query, partial, head);
      }
    }
  }
};

}  // namespace tilewright::tile
