// targets: sm_90a sm_100f
//
// Merges the partial results of queries that several groups shared, and applies the sink, once. A
// warp takes a head of one such query; CTAs of groups in which none begins end at once.
//
//   out = sum_i 2^(lse_i - top) out_i / (sum_i 2^(lse_i - top) + 2^(sink log2 e - top))
//
// Limit: 2 KB of partial results a head and part, read once, out of L2. With two queries of ten
// parts and 64 heads that is 2.6 MB, below the latency of the launch.
// Right on an H200; not timed alone.
#include "kernels/sparse_attention/combine.h"
#include "ptx/grid_dependency.h"
#include "tile/entry.h"

namespace tilewright::kernels {
namespace {

__device__ void combine(const SparseCombineParams& params) {
  // Before the wait: the projection behind this one has room while few CTAs attend, and fetches its
  // weights then.
  ptx::griddepcontrol_launch_dependents();
  ptx::griddepcontrol_wait();
  const SparseMerge merge = params.merges[blockIdx.x];
  const auto head = static_cast<std::int32_t>(blockIdx.y * kSparseCombineHeads + threadIdx.x / 32);
  if (merge.query < 0 || head >= params.decode.heads) return;
  combine<4>(params.decode, merge, head, static_cast<std::int32_t>(threadIdx.x % 32));
}

}  // namespace

TILEWRIGHT_KERNEL(sparse_combine, SparseCombineParams, __launch_bounds__(kSparseCombineThreads),
                  combine)

}  // namespace tilewright::kernels
