// targets: sm_90a sm_100f
//
// Limit: latency, a load and a store for each thread.
#include "kernels/moe/route.h"
#include "kernels/moe/share.h"
#include "ptx/grid_dependency.h"
#include "tile/entry.h"

namespace tilewright::kernels {
namespace {

__device__ void share(const MoeShareParams& params) {
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  const auto slot = static_cast<std::int32_t>(blockIdx.x * kMoeShareThreads + threadIdx.x);
  if (slot >= params.slots) return;
  const std::int32_t id = params.ids[slot];
  const std::int32_t own = id - params.first;
  const bool is_own = own >= 0 && own < params.experts;
  const bool is_known = id >= -1 && id < params.all;
  params.own[slot] = is_own ? own : is_known ? -1 : kMoeNoExpert;
}

}  // namespace
TILEWRIGHT_KERNEL(moe_share, MoeShareParams, __launch_bounds__(kMoeShareThreads), share)

}  // namespace tilewright::kernels
