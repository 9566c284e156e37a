// targets: sm_90a sm_100f
//
// The schedule of the indexer's logits, by one CTA: units of up to eight tokens of a sequence, the
// sum of the chunks of keys before each, and in which unit each CTA of the logits begins.
//
//   ragged: a thread per sequence counts its units | scan | writes them
//   a thread per unit: the longest of its tokens -> chunks | scan | the CTAs that begin in it
//
// Limit: latency; about 2 us for up to 1024 units. One schedule serves all layers of a step.
#include "kernels/sparse_attention/indexer/indexer_logits.h"
#include "ptx/grid_dependency.h"
#include "tile/entry.h"

namespace tilewright::kernels {
namespace {

constexpr int kThreads = kIndexerScheduleThreads;

// Sum over the threads before this one; `total` that of all.
__device__ std::int32_t scan(std::int32_t x, std::int32_t& total) {
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

// Writes the units of ragged sequences, without chunks; their number.
__device__ std::int32_t cut_sequences(const IndexerScheduleParams& params) {
  std::int32_t units = 0;
  for (std::int32_t first = 0; first < params.batch; first += kThreads) {
    const std::int32_t b = first + static_cast<std::int32_t>(threadIdx.x);
    std::int32_t begin = 0, end = 0;
    if (b < params.batch) begin = params.offsets[b], end = params.offsets[b + 1];
    begin = max(begin, 0);
    end = min(end, params.tokens);
    const std::int32_t mine =
        end > begin ? (end - begin + kIndexerUnitTokens - 1) / kIndexerUnitTokens : 0;
    std::int32_t total;
    std::int32_t at = units + scan(mine, total);
    for (std::int32_t token = begin; token < end; token += kIndexerUnitTokens)
      params.units[at++] = {token, min(end - token, kIndexerUnitTokens), b, 0, 0};
    units += total;
  }
  __syncthreads();
  return units;
}

// Unit number u, without its cost.
__device__ IndexerUnit find_unit(const IndexerScheduleParams& params, std::int32_t u) {
  IndexerUnit unit = {};
  if (params.offsets != nullptr) {
    unit = params.units[u];
  } else {
    const std::int32_t per_sequence = (params.q_len + kIndexerUnitTokens - 1) / kIndexerUnitTokens;
    unit.sequence = u / per_sequence;
    const std::int32_t first = (u - unit.sequence * per_sequence) * kIndexerUnitTokens;
    unit.token = unit.sequence * params.q_len + first;
    unit.count = min(params.q_len - first, kIndexerUnitTokens);
  }
  for (std::int32_t i = 0; i < unit.count; ++i) {
    const std::int32_t length = params.lengths.of(unit.token + i);
    unit.num_keys = max(unit.num_keys, length);
  }
  return unit;
}

// Writes all units; the sum of their costs.
__device__ std::int32_t place_units(const IndexerScheduleParams& params, std::int32_t num_units) {
  std::int32_t costs = 0;
  for (std::int32_t first = 0; first < num_units; first += kThreads) {
    const std::int32_t u = first + static_cast<std::int32_t>(threadIdx.x);
    IndexerUnit unit = {};
    if (u < num_units) unit = find_unit(params, u);
    const std::int32_t chunks = (unit.num_keys + kIndexerChunk - 1) / kIndexerChunk;
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

// CTA c begins in the last unit that does not begin behind it.
__device__ void place_ctas(const IndexerScheduleParams& params, std::int32_t num_units,
                           std::int64_t costs) {
  for (auto c = static_cast<std::int32_t>(threadIdx.x); c < params.ctas; c += kThreads) {
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

__device__ void schedule(const IndexerScheduleParams& params) {
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  const std::int32_t per_sequence = (params.q_len + kIndexerUnitTokens - 1) / kIndexerUnitTokens;
  std::int32_t num_units = params.batch * per_sequence;
  if (params.offsets != nullptr) num_units = cut_sequences(params);
  place_ctas(params, num_units, place_units(params, num_units));
}

}  // namespace

TILEWRIGHT_KERNEL(indexer_schedule, IndexerScheduleParams,
                  __launch_bounds__(kIndexerScheduleThreads), schedule)

}  // namespace tilewright::kernels
