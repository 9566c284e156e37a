// targets: sm_90a sm_100f
//
// Layouts as constants of a kernel: every offset and coordinate is computed on the device from a
// template argument and run-time coordinates. The test looks at the PTX (no division, no remainder,
// no local memory) and compares the numbers with those of the algebra on the host.
#include "kernels/probe/layout_probe.h"
#include "layout/constant.h"

extern "C" __global__ void __launch_bounds__(tilewright::kernels::kLayoutProbeThreads)
    layout_probe(const __grid_constant__ tilewright::kernels::LayoutProbeParams params) {
  using namespace tilewright::kernels;
  using tilewright::coordinate_in, tilewright::offset_in;
  const std::uint32_t i = blockIdx.x * kLayoutProbeThreads + threadIdx.x;
  if (i >= params.count) return;
  std::uint32_t* to = params.offsets + i;
  const auto put = [&](std::uint32_t found) {
    *to = found;
    to += params.count;
  };
  put(offset_in<kLayoutProbeTile>(i % 128, i / 128));
  put(offset_in<kLayoutProbeFragment>(i % 128, i / 128));
  put(offset_in<kLayoutProbeOdd>(i));
  put(offset_in<kLayoutProbeScatter>(threadIdx.x, blockIdx.x));
  const auto place = coordinate_in<kLayoutProbePlaces>(threadIdx.x, blockIdx.x);
  put(place[0]);
  put(place[1]);
  const auto operand = coordinate_in<kLayoutProbeOperand>(threadIdx.x, blockIdx.x);
  put(operand[0]);
  put(operand[1]);
  put(offset_in<kLayoutProbeRowsColumns>(i % 2, i / 2 % 64));
  put(offset_in<kLayoutProbeHandOff>(i % 8, 0u, i / 8 % 16));
}
