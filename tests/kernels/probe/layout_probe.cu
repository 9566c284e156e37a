// targets: sm_90a sm_100a
//
// Layouts as constants of a kernel: every offset is computed on the device from a template
// argument. The test looks at the PTX (no division, no remainder, no local memory) and at the
// numbers.
#include "kernels/probe/layout_probe.h"
#include "layout/constant.h"

extern "C" __global__ void __launch_bounds__(tilewright::kernels::kLayoutProbeThreads)
    layout_probe(const __grid_constant__ tilewright::kernels::LayoutProbeParams params) {
  using namespace tilewright::kernels;
  const std::uint32_t i = blockIdx.x * kLayoutProbeThreads + threadIdx.x;
  if (i >= params.count) return;
  params.offsets[i] = tilewright::offset_in<kLayoutProbeTile>(i % 128, i / 128);
  params.offsets[params.count + i] = tilewright::offset_in<kLayoutProbeFragment>(i % 128, i / 128);
  params.offsets[2 * params.count + i] = tilewright::offset_in<kLayoutProbeOdd>(i);
}
