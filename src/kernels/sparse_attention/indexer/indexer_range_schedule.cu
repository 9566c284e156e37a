// targets: sm_90a sm_100f
//
// The schedule of the indexer's logits over keys without pages, by one CTA: neighbouring tokens
// whose ranges of keys lie together become units, at most eight tokens each.
//
//   a thread per eight tokens counts their units | scan | writes them
//   a thread per unit: chunks | scan | the CTAs that begin in it
//
// Ranges of packed prompts grow with the sequences: a unit of tokens of two of them would score
// each against the keys of both.
//
// Limit: latency. One schedule serves all layers of a step.
#include "kernels/sparse_attention/indexer/schedule.h"
#include "ptx/grid_dependency.h"
#include "tile/entry.h"

namespace tilewright::kernels {
namespace {

constexpr int kThreads = kIndexerScheduleThreads;

// Chunks of keys, of a token or of a unit.
struct Chunks {
  std::int32_t begin, end;  // 0, 0: none

  __device__ explicit Chunks(const IndexerRange& range)
      : begin(range.begin / kIndexerChunk), end((range.end + kIndexerChunk - 1) / kIndexerChunk) {}
  __device__ std::int32_t count() const { return end - begin; }
};

// A unit as it grows token by token.
class GrowingUnit {
 public:
  __device__ GrowingUnit(std::int32_t token, const IndexerRange& range)
      : unit_{token, 1, {}, range.end, 0}, chunks_(range), longest_(chunks_.count()) {}

  // Whether the token joins: with it there is at most a chunk more than its longest token has. One
  // that sees nothing joins any.
  __device__ bool add(const IndexerRange& range) {
    const Chunks of_token(range);
    Chunks all = chunks_.count() == 0 ? of_token : chunks_;
    if (of_token.count() > 0) {
      all.begin = min(all.begin, of_token.begin);
      all.end = max(all.end, of_token.end);
    }
    const std::int32_t longest = max(longest_, of_token.count());
    if (all.count() > longest + 1) return false;
    ++unit_.count;
    unit_.num_keys = max(unit_.num_keys, range.end);
    chunks_ = all;
    longest_ = longest;
    return true;
  }
  __device__ IndexerUnit unit() const {
    IndexerUnit unit = unit_;
    unit.first_chunk = chunks_.begin;
    return unit;
  }

 private:
  IndexerUnit unit_;
  Chunks chunks_;
  std::int32_t longest_;  // chunks of a token
};

// Calls work(unit) for the units of tokens [first, end).
template <class Work>
__device__ void cut(const IndexerRanges& ranges, std::int32_t first, std::int32_t end,
                    Work&& work) {
  if (first >= end) return;
  GrowingUnit unit(first, ranges.of(first));
  for (std::int32_t token = first + 1; token < end; ++token) {
    const IndexerRange range = ranges.of(token);
    if (unit.add(range)) continue;
    work(unit.unit());
    unit = GrowingUnit(token, range);
  }
  work(unit.unit());
}

// Writes the units without their costs; their number.
__device__ std::int32_t cut_all(const IndexerRangeScheduleParams& params) {
  std::int32_t units = 0;
  for (std::int32_t first = 0; first < params.tokens; first += kThreads * kIndexerUnitTokens) {
    const std::int32_t begin = first + static_cast<std::int32_t>(threadIdx.x) * kIndexerUnitTokens;
    const std::int32_t end = min(begin + kIndexerUnitTokens, params.tokens);
    std::int32_t mine = 0, total;
    cut(params.ranges, begin, end, [&](const IndexerUnit&) { ++mine; });
    std::int32_t at = units + scan(mine, total);
    cut(params.ranges, begin, end, [&](const IndexerUnit& unit) { params.units[at++] = unit; });
    units += total;
  }
  __syncthreads();
  return units;
}

__device__ void schedule(const IndexerRangeScheduleParams& params) {
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  const std::int32_t num_units = cut_all(params);
  const std::int32_t costs = place_units(
      params, num_units, [&](std::int32_t u) { return params.units[u]; },
      [](const IndexerUnit& unit) {
        return (unit.num_keys + kIndexerChunk - 1) / kIndexerChunk - unit.first_chunk;
      });
  place_ctas(params, num_units, costs);
}

}  // namespace

TILEWRIGHT_KERNEL(indexer_range_schedule, IndexerRangeScheduleParams,
                  __launch_bounds__(kIndexerScheduleThreads), schedule)

}  // namespace tilewright::kernels
