// targets: sm_90a sm_100f
//
// The schedule of the indexer's logits, by one CTA: units of up to eight tokens of a sequence, the
// sum of the chunks of keys before each, and in which unit each CTA of the logits begins.
//
//   ragged: a thread per sequence counts its units | scan | writes them
//   a thread per unit: the longest of its tokens -> chunks | scan | the CTAs that begin in it
//
// Limit: latency; about 2 us for up to 1024 units. One schedule serves all layers of a step.
#include "kernels/sparse_attention/indexer/schedule.h"
#include "ptx/grid_dependency.h"
#include "tile/entry.h"

namespace tilewright::kernels {
namespace {

constexpr int kThreads = kIndexerScheduleThreads;

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

__device__ void schedule(const IndexerScheduleParams& params) {
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  const std::int32_t per_sequence = (params.q_len + kIndexerUnitTokens - 1) / kIndexerUnitTokens;
  std::int32_t num_units = params.batch * per_sequence;
  if (params.offsets != nullptr) num_units = cut_sequences(params);
  const std::int32_t costs = place_units(
      params, num_units, [&](std::int32_t u) { return find_unit(params, u); },
      [](const IndexerUnit& unit) { return (unit.num_keys + kIndexerChunk - 1) / kIndexerChunk; });
  place_ctas(params, num_units, costs);
}

}  // namespace

TILEWRIGHT_KERNEL(indexer_schedule, IndexerScheduleParams,
                  __launch_bounds__(kIndexerScheduleThreads), schedule)

}  // namespace tilewright::kernels
