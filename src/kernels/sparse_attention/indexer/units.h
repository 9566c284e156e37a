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

/// Calls work(unit, begin, end) for every part of a unit that is this CTA's.
template <class Work>
__device__ void for_each_unit(const kernels::IndexerLogitsParams& params, Work&& work) {
  const kernels::IndexerShare share = params.shares[blockIdx.x];
  kernels::IndexerUnit unit = share.unit;
  std::int32_t cost = share.begin_cost;
  for (std::int32_t u = share.unit_idx; cost < share.end_cost; ++u) {
    if (u != share.unit_idx) unit = params.units[u];
    const std::int32_t chunks =
        (unit.num_keys + kernels::kIndexerChunk - 1) / kernels::kIndexerChunk;
    if (chunks == 0) continue;
    const std::int32_t first = unit.first_cost + kernels::indexer_unit_cost(unit.count);
    const std::int32_t begin = max(cost - first, 0), end = min(share.end_cost - first, chunks);
    if (end > begin) work(unit, begin, end);
    cost = first + chunks;
  }
}

}  // namespace tilewright::tile
