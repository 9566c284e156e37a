// One head of a query that several groups shared: what sparse_combine.cu and its form for pairs of
// queries are made of.
#pragma once

#include "kernels/sparse_attention/finish.h"
#include "kernels/sparse_attention/sparse_schedule.h"
#include "kernels/sparse_attention/work.h"
#include "ptx/math.h"
#include "tile/element.h"

#include <cstdint>

#include <math.h>

namespace tilewright::kernels {
namespace {

constexpr unsigned kAllLanes = 0xffffffffu;
constexpr int kChunks = kKvDims / 32 / 4;  // of four floats a lane, 128 apart

struct Parts {
  const SparseDecodeParams& params;
  const SparseMerge& merge;
  std::int32_t head;

  __device__ std::int64_t row(std::int32_t part) const {
    return std::int64_t{sparse_part_slot(merge.first_slot, part)} * params.heads + head;
  }
  __device__ float lse(std::int32_t part) const {
    return part < merge.parts ? params.partial_lse[row(part)] : -INFINITY;
  }

  // Largest lse, and sum of the parts' sums relative to it.
  __device__ tile::SparseRowSum sum(std::int32_t lane) const {
    float top = -INFINITY;
#pragma unroll 1
    for (std::int32_t i = lane; i < merge.parts; i += 32) top = fmaxf(top, lse(i));
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
      top = fmaxf(top, __shfl_xor_sync(kAllLanes, top, step));
    const float base = top == -INFINITY ? 0.0f : top;
    float sum = 0;
#pragma unroll 1
    for (std::int32_t i = lane; i < merge.parts; i += 32)
      sum += ptx::ex2_approx_ftz_f32(lse(i) - base);
#pragma unroll
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(kAllLanes, sum, step);
    return {top, sum};
  }
};

// Some parts, on their way: those that are none are zeros.
template <int AtOnce>
struct PartsAhead {
  float4 x[AtOnce][kChunks];
  float lse[AtOnce];

  __device__ PartsAhead(const Parts& parts, std::int32_t first, std::int32_t lane) {
#pragma unroll
    for (int i = 0; i < AtOnce; ++i) {
      const std::int32_t part = first + i;
      lse[i] = parts.lse(part);
      const bool is_there = part < parts.merge.parts;
      const auto* const from =
          reinterpret_cast<const float4*>(parts.params.partial_out +
                                          parts.row(is_there ? part : 0) * kKvDims) +
          lane;
#pragma unroll
      for (int c = 0; c < kChunks; ++c) x[i][c] = is_there ? from[32 * c] : float4{};
    }
  }
  __device__ void add(float base, float4 (&out)[kChunks]) const {
#pragma unroll
    for (int i = 0; i < AtOnce; ++i) {
      const float weight = ptx::ex2_approx_ftz_f32(lse[i] - base);
#pragma unroll
      for (int c = 0; c < kChunks; ++c) {
        out[c].x = fmaf(weight, x[i][c].x, out[c].x);
        out[c].y = fmaf(weight, x[i][c].y, out[c].y);
        out[c].z = fmaf(weight, x[i][c].z, out[c].z);
        out[c].w = fmaf(weight, x[i][c].w, out[c].w);
      }
    }
  }
};

// `AtOnce` parts are on their way at a time. Each line of it runs once and comes from memory, so
// there are few.
template <int AtOnce>
__device__ void combine(const SparseDecodeParams& params, const SparseMerge& merge,
                        std::int32_t head, std::int32_t lane) {
  const Parts parts{params, merge, head};
  const tile::SparseQuery query(params, merge.query);
  float4 out[kChunks] = {};
  PartsAhead<AtOnce> ahead(parts, 0, lane);  // before their weights are known
  const tile::SparseRowSum row = parts.sum(lane);
  const float base = row.max == -INFINITY ? 0.0f : row.max;
#pragma unroll 1
  for (std::int32_t next = AtOnce;; next += AtOnce) {
    ahead.add(base, out);
    if (next >= merge.parts) break;
    ahead = PartsAhead<AtOnce>(parts, next, lane);
  }
  const float factor = row.factor(params.sink, head);
  auto* const to =
      reinterpret_cast<uint2*>(params.out + query.offset(params.out_strides, head)) + lane;
#pragma unroll
  for (int c = 0; c < kChunks; ++c) {
    to[32 * c] = make_uint2(tile::Bf16::pack(out[c].x * factor, out[c].y * factor),
                            tile::Bf16::pack(out[c].z * factor, out[c].w * factor));
  }
  if (lane == 0) tile::store_sparse_row_sum(params, query, -1, head, row);
}

}  // namespace
}  // namespace tilewright::kernels
