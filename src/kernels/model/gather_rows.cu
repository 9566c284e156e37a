// targets: sm_90a sm_100f
//
// Rows of a step that need logits, side by side for the head. A CTA a row, 16 bytes a thread.
//
// Limit: latency; 64 rows of 4096 numbers are 1 MB.
// Sources: none.
#include "kernels/model/sample.h"
#include "ptx/grid_dependency.h"
#include "tile/entry.h"

namespace tilewright::kernels {
namespace {

__device__ void gather(const GatherRowsParams& params) {
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  const auto row = static_cast<std::int64_t>(blockIdx.x);
  const std::int32_t from = params.index[row];
  const bool is_there = from >= 0 && from < params.x_rows;
  for (auto c = 8 * static_cast<std::int32_t>(threadIdx.x); c < params.cols;
       c += 8 * kGatherRowsThreads) {
    uint4 x = make_uint4(0, 0, 0, 0);
    if (is_there)
      x = *reinterpret_cast<const uint4*>(params.x + std::int64_t{from} * params.cols + c);
    *reinterpret_cast<uint4*>(params.out + row * params.cols + c) = x;
  }
}

}  // namespace
TILEWRIGHT_KERNEL(gather_rows, GatherRowsParams, __launch_bounds__(kGatherRowsThreads), gather)

}  // namespace tilewright::kernels
