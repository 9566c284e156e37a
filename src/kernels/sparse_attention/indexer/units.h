// The work of a CTA of the indexer's logits, as the schedule cut it.
#pragma once

#include "kernels/sparse_attention/indexer/indexer_logits.h"

#include <cstdint>

namespace tilewright::tile {

/// -inf behind the length of every token.
__device__ inline void fill_behind(const kernels::IndexerLogitsParams& params) {
  for (auto token = static_cast<std::int32_t>(blockIdx.x); token < params.tokens;
       token += static_cast<std::int32_t>(gridDim.x)) {
    float* const row = params.logits + token * params.logits_stride;
    const std::int32_t begin = params.lengths.of(token);
    for (auto key = begin + static_cast<std::int32_t>(threadIdx.x); key < params.lengths.max_len;
         key += static_cast<std::int32_t>(blockDim.x))
      row[key] = -INFINITY;
  }
}

/// -inf in columns [begin, end) of a row, by a warp: 16 bytes at a time, if the row begins so.
__device__ inline void fill_columns(float* row, std::int32_t begin, std::int32_t end) {
  const auto lane = static_cast<std::int32_t>(threadIdx.x % 32);
  const bool is_aligned = reinterpret_cast<std::uintptr_t>(row) % sizeof(float4) == 0;
  const std::int32_t first = is_aligned ? min((begin + 3) / 4 * 4, end) : end,
                     last = max(first, end / 4 * 4);
  for (std::int32_t column = begin + lane; column < first; column += 32) row[column] = -INFINITY;
  for (std::int32_t column = first + 4 * lane; column < last; column += 4 * 32)
    *reinterpret_cast<float4*>(row + column) =
        make_float4(-INFINITY, -INFINITY, -INFINITY, -INFINITY);
  for (std::int32_t column = last + lane; column < end; column += 32) row[column] = -INFINITY;
}

/// -inf outside of the range of every token, by the first `warps` warps of each CTA: a warp a
/// token, as ranges are far away.
__device__ inline void fill_outside(const kernels::IndexerRangeLogitsParams& params,
                                    std::int32_t warps) {
  const kernels::IndexerRanges& ranges = params.ranges;
  const auto warp = static_cast<std::int32_t>(threadIdx.x / 32),
             ctas = static_cast<std::int32_t>(gridDim.x);
  for (std::int32_t token = warp * ctas + static_cast<std::int32_t>(blockIdx.x);
       token < params.tokens; token += warps * ctas) {
    float* const row = params.logits + token * params.logits_stride;
    const kernels::IndexerRange range = ranges.of(token);
    const std::int32_t shift = ranges.shift(range);
    fill_columns(row, 0, range.begin - shift);
    fill_columns(row, range.end - shift, ranges.columns);
  }
}

/// Calls work(unit, begin, end) for every part of a unit that is this CTA's: chunks from key 0 on.
template <class Params, class Work>
__device__ void for_each_unit(const Params& params, Work&& work) {
  const kernels::IndexerShare share = params.shares[blockIdx.x];
  kernels::IndexerUnit unit = share.unit;
  std::int32_t cost = share.begin_cost;
  for (std::int32_t u = share.unit_idx; cost < share.end_cost; ++u) {
    if (u != share.unit_idx) unit = params.units[u];
    const std::int32_t first_chunk = kernels::kHasRanges<Params> ? unit.first_chunk : 0;
    const std::int32_t chunks =
        (unit.num_keys + kernels::kIndexerChunk - 1) / kernels::kIndexerChunk;
    if (chunks == first_chunk) continue;
    const std::int32_t first =
        unit.first_cost + kernels::indexer_unit_cost(unit.count) - first_chunk;
    const std::int32_t begin = max(cost - first, first_chunk),
                       end = min(share.end_cost - first, chunks);
    if (end > begin) work(unit, begin, end);
    cost = first + chunks;
  }
}

}  // namespace tilewright::tile
