// What the schedules of the indexer's logits share, by one CTA: costs of units, and the shares of
// the CTAs that score.
#pragma once

#include "kernels/sparse_attention/indexer/indexer_logits.h"

#include <cstdint>

namespace tilewright::kernels {

/// Sum over the threads before this one; `total` that of all.
__device__ inline std::int32_t scan(std::int32_t x, std::int32_t& total) {
  __shared__ std::int32_t of_warps[32];
  const auto lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
  std::int32_t sum = x;
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const std::int32_t before = __shfl_up_sync(~0u, sum, step);
    if (lane >= step) sum += before;
  }
  if (lane == 31) of_warps[warp] = sum;
  __syncthreads();
  std::int32_t others = of_warps[lane];
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const std::int32_t before = __shfl_up_sync(~0u, others, step);
    if (lane >= step) others += before;
  }
  total = __shfl_sync(~0u, others, 31);
  const std::int32_t warps_before = __shfl_sync(~0u, others, warp == 0 ? 0 : warp - 1);
  __syncthreads();
  return sum - x + (warp == 0 ? 0 : warps_before);
}

/// Writes all units, of which find(u) gives one without its cost, and chunks(unit) says how many it
/// has; the sum of their costs.
template <class Params, class Find, class Chunks>
__device__ std::int32_t place_units(const Params& params, std::int32_t num_units, Find&& find,
                                    Chunks&& chunks_of) {
  std::int32_t costs = 0;
  for (std::int32_t first = 0; first < num_units; first += kIndexerScheduleThreads) {
    const std::int32_t u = first + static_cast<std::int32_t>(threadIdx.x);
    IndexerUnit unit = {};
    if (u < num_units) unit = find(u);
    const std::int32_t chunks = chunks_of(unit);
    std::int32_t total;
    unit.first_cost = costs + scan(chunks > 0 ? chunks + indexer_unit_cost(unit.count) : 0, total);
    if (u < num_units) params.units[u] = unit;
    costs += total;
  }
  if (threadIdx.x == 0) {
    params.units[num_units] = {};
    params.units[num_units].first_cost = costs;
  }
  __syncthreads();
  return costs;
}

/// CTA c begins in the last unit that does not begin behind it.
template <class Params>
__device__ void place_ctas(const Params& params, std::int32_t num_units, std::int64_t costs) {
  for (auto c = static_cast<std::int32_t>(threadIdx.x); c < params.ctas;
       c += kIndexerScheduleThreads) {
    IndexerShare share = {};
    share.begin_cost = static_cast<std::int32_t>(c * costs / params.ctas);
    share.end_cost = static_cast<std::int32_t>((c + 1) * costs / params.ctas);
    std::int32_t low = 0, high = num_units;
    while (high - low > 1) {
      const std::int32_t middle = (low + high) / 2;
      (params.units[middle].first_cost <= share.begin_cost ? low : high) = middle;
    }
    share.unit_idx = low;
    share.unit = params.units[low];
    params.shares[c] = share;
  }
}

}  // namespace tilewright::kernels
