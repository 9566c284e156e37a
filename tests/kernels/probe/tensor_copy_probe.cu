// targets: sm_90a sm_100f
//
// One tensor copy by tensor map, and the bytes it left in shared memory: the hardware's word on
// boxes, swizzles and out-of-range elements. Recorded by tools/hardware/record.cpp.
#include "kernels/probe/tensor_copy_probe.h"
#include "ptx/address.h"
#include "ptx/bulk_tensor_copy.h"
#include "ptx/fence.h"
#include "ptx/mbarrier.h"

extern "C" __global__ void __launch_bounds__(tilewright::kernels::kTensorCopyProbeThreads)
    tensor_copy_probe(const __grid_constant__ tilewright::kernels::TensorCopyProbeParams params) {
  namespace ptx = tilewright::ptx;
  using namespace tilewright::kernels;
  extern __shared__ std::uint32_t dynamic[];
  __shared__ alignas(8) std::uint64_t barrier_storage;

  const std::uint32_t start = ptx::shared_address(dynamic);
  const std::uint32_t box = (start + kTensorCopyProbeAlignment - 1) / kTensorCopyProbeAlignment *
                            kTensorCopyProbeAlignment;
  const std::uint32_t barrier = ptx::shared_address(&barrier_storage);
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(barrier, 1);
    ptx::fence_mbarrier_init_release_cluster();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    ptx::mbarrier_arrive_expect_tx(barrier, params.box_bytes);
    ptx::cp_async_bulk_tensor_2d_shared_global(box, params.tensor_map, params.x, params.y, barrier);
  }
  ptx::mbarrier_wait_parity(barrier, 0);
  for (std::uint32_t i = threadIdx.x; i < params.box_bytes / 4; i += kTensorCopyProbeThreads) {
    params.shared_out[i] = dynamic[(box - start) / 4 + i];
  }
}
