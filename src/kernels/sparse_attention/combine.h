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
    for (std::int32_t i = lane; i < merge.parts; i += 32) top = fmaxf(top, lse(i));
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
      top = fmaxf(top, __shfl_xor_sync(kAllLanes, top, step));
    const float base = top == -INFINITY ? 0.0f : top;
    float sum = 0;
    for (std::int32_t i = lane; i < merge.parts; i += 32)
      sum += ptx::ex2_approx_ftz_f32(lse(i) - base);
#pragma unroll
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(kAllLanes, sum, step);
    return {top, sum};
  }

  __device__ void load(std::int32_t lane, std::int32_t part, float4 (&x)[kChunks]) const {
    const auto* const from =
        reinterpret_cast<const float4*>(params.partial_out + row(part) * kKvDims) + lane;
#pragma unroll
    for (int c = 0; c < kChunks; ++c) x[c] = from[32 * c];
  }
  static __device__ void add(const float4 (&x)[kChunks], float weight, float4 (&out)[kChunks]) {
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      out[c].x = fmaf(weight, x[c].x, out[c].x);
      out[c].y = fmaf(weight, x[c].y, out[c].y);
      out[c].z = fmaf(weight, x[c].z, out[c].z);
      out[c].w = fmaf(weight, x[c].w, out[c].w);
    }
  }

  // All parts from the third on.
  __device__ void add_others(std::int32_t lane, float base, float4 (&out)[kChunks]) const {
    for (std::int32_t first = 2; first < merge.parts; first += 32) {
      const float mine = ptx::ex2_approx_ftz_f32(lse(first + lane) - base);
      const std::int32_t count = min(merge.parts - first, 32);
#pragma unroll 4
      for (std::int32_t i = 0; i < count; ++i) {
        float4 x[kChunks];
        load(lane, first + i, x);
        add(x, __shfl_sync(kAllLanes, mine, i), out);
      }
    }
  }
};

__device__ void combine(const SparseDecodeParams& params, const SparseMerge& merge,
                        std::int32_t head, std::int32_t lane) {
  const Parts parts{params, merge, head};
  const tile::SparseQuery query(params, merge.query);
  // Most queries that are cut have two parts: they are on their way before their weights are known.
  float4 two[2][kChunks], out[kChunks] = {};
  parts.load(lane, 0, two[0]);
  parts.load(lane, 1, two[1]);
  const tile::SparseRowSum row = parts.sum(lane);
  const float base = row.max == -INFINITY ? 0.0f : row.max;
#pragma unroll
  for (int i = 0; i < 2; ++i) Parts::add(two[i], ptx::ex2_approx_ftz_f32(parts.lse(i) - base), out);
  parts.add_others(lane, base, out);
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
