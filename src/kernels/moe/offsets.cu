// targets: sm_90a sm_100f
//
// Limit: latency, one warp and at most 12 steps of 32 experts.
#include "kernels/moe/offsets.h"
#include "ptx/grid_dependency.h"
#include "tile/entry.h"

namespace tilewright::kernels {
namespace {

constexpr unsigned kAllLanes = 0xffffffffu;

__device__ std::int32_t sum_to_lane(std::int32_t value) {
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const std::int32_t before = __shfl_up_sync(kAllLanes, value, step);
    if (static_cast<int>(threadIdx.x) >= step) value += before;
  }
  return value;
}

__device__ void offsets(const MoeOffsetsParams& params) {
  const auto lane = static_cast<std::int32_t>(threadIdx.x);
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  MoeStatus status = {0, 0, kMoeNone, kMoeNone};
  std::int32_t before = 0;
  for (std::int32_t first = 0; first < params.experts; first += 32) {
    const std::int32_t expert = first + lane;
    const std::int32_t count = expert < params.experts ? params.counts[expert] : 0;
    // No sum overflows: 384 of them, each at most rows + 1.
    const std::int32_t end = before + sum_to_lane(min(max(count, 0), params.rows + 1));
    if (expert < params.experts) {
      params.offsets[expert + 1] = min(end, params.rows);
      if (count < 0 || (count > 0 && end > params.rows)) {
        ++status.num_out_of_range;
        status.first_out_of_range =
            min(status.first_out_of_range, static_cast<std::uint32_t>(expert));
      }
    }
    before = __shfl_sync(kAllLanes, end, 31);
  }
  status.num_out_of_range = __reduce_add_sync(kAllLanes, status.num_out_of_range);
  status.first_out_of_range = __reduce_min_sync(kAllLanes, status.first_out_of_range);
  if (lane != 0) return;
  params.offsets[0] = 0;
  *params.status = status;
}

}  // namespace
TILEWRIGHT_KERNEL(moe_offsets, MoeOffsetsParams, __launch_bounds__(32), offsets)

}  // namespace tilewright::kernels
