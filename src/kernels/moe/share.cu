// targets: sm_90a sm_100f
//
// Limit: latency, a load and a store for each thread.
#include "kernels/moe/own_expert.h"
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
  params.own[slot] = own_expert(params.ids[slot], params.first, params.experts, params.all);
}

}  // namespace
TILEWRIGHT_KERNEL(moe_share, MoeShareParams, __launch_bounds__(kMoeShareThreads), share)

}  // namespace tilewright::kernels
