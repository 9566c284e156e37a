// targets: sm_90a sm_100f
//
// One producer warp, four consumer warps, and a ring of stages between them. A stage is full when
// its bytes have landed, and empty when the tensor copy that stores it has read it. The consumers
// change the bytes in place, so each stage goes async proxy, generic proxy, async proxy.
#include "arch/smem_descriptor.h"
#include "kernels/probe/ring_copy.h"
#include "ptx/address.h"
#include "ptx/bulk_tensor_copy.h"
#include "ptx/fence.h"
#include "ptx/mbarrier.h"
#include "ptx/warp_roles.h"

namespace tilewright::kernels {
namespace {

struct Coordinates {
  std::int32_t x, y, z;
};

template <int Rank>
__device__ Coordinates first_element(const RingCopyParams& params, std::int32_t box) {
  constexpr RingCopyBox kBox = Rank == 2 ? kRingCopyBox2d : kRingCopyBox3d;
  const std::int32_t x = box % params.num_boxes[0];
  const std::int32_t yz = box / params.num_boxes[0];
  return {params.origin[0] + x * kBox.x, params.origin[1] + yz % params.num_boxes[1] * kBox.y,
          params.origin[2] + yz / params.num_boxes[1] * kBox.z};
}

template <int Rank>
__device__ void load(const RingCopyParams& params, std::int32_t box, std::uint32_t stage,
                     std::uint32_t barrier) {
  const Coordinates at = first_element<Rank>(params, box);
  ptx::mbarrier_arrive_expect_tx(barrier, kRingCopyStageBytes);
  if constexpr (Rank == 2) {
    ptx::cp_async_bulk_tensor_2d_shared_global(stage, params.source_map, at.x, at.y, barrier);
  } else {
    ptx::cp_async_bulk_tensor_3d_shared_global(stage, params.source_map, at.x, at.y, at.z, barrier);
  }
}

template <int Rank>
__device__ void store(const RingCopyParams& params, std::int32_t box, std::uint32_t stage) {
  const Coordinates at = first_element<Rank>(params, box);
  if constexpr (Rank == 2) {
    ptx::cp_async_bulk_tensor_2d_global_shared(params.target_map, at.x, at.y, stage);
  } else {
    ptx::cp_async_bulk_tensor_3d_global_shared(params.target_map, at.x, at.y, at.z, stage);
  }
}

// Adds its index to each of eight 16-bit numbers, and returns their part of the checksum.
__device__ std::uint32_t change(uint4& chunk, std::uint32_t first_index) {
  std::uint32_t words[4] = {chunk.x, chunk.y, chunk.z, chunk.w};
  std::uint32_t sum = 0;
#pragma unroll
  for (std::uint32_t i = 0; i < 4; ++i) {
    const std::uint32_t low = words[i] & 0xffff, high = words[i] >> 16;
    const std::uint32_t index = first_index + 2 * i;
    sum += low * (index + 1) + high * (index + 2);
    words[i] = ((low + index) & 0xffff) | (high + index + 1) << 16;
  }
  chunk = {words[0], words[1], words[2], words[3]};
  return sum;
}

// A quarter of a 128-byte row per thread.
__device__ std::uint32_t change_stage(std::uint8_t* memory, std::uint32_t start,
                                      std::uint32_t stage, unsigned thread) {
  std::uint32_t sum = 0;
#pragma unroll
  for (unsigned i = 0; i < 2; ++i) {
    const unsigned row = thread / 4, chunk = thread % 4 * 2 + i;
    const std::uint32_t address =
        arch::swizzle_address(arch::SmemSwizzle::k128B, stage + row * 128 + chunk * 16);
    uint4& bytes = *reinterpret_cast<uint4*>(memory + (address - start));
    sum += change(bytes, row * 64 + chunk * 8);
  }
  return sum;
}

// Full and empty barriers of the stages, and where stage and phase stand for the n-th box.
template <int Stages>
struct Ring {
  std::uint32_t first_stage;
  std::uint32_t barriers;  // full ones, then empty ones

  __device__ std::uint32_t stage(int n) const {
    return first_stage + n % Stages * kRingCopyStageBytes;
  }
  __device__ std::uint32_t full(int n) const { return barriers + n % Stages * 8; }
  __device__ std::uint32_t empty(int n) const { return barriers + (Stages + n % Stages) * 8; }
  __device__ std::uint32_t parity(int n) const { return n / Stages & 1; }
};

template <int Rank, int Stages>
__device__ void produce(const RingCopyParams& params, const Ring<Stages>& ring, int num_boxes) {
  int n = 0;
  for (int box = static_cast<int>(blockIdx.x); box < num_boxes; box += gridDim.x, ++n) {
    ptx::mbarrier_wait_parity(ring.empty(n), ring.parity(n) ^ 1);  // passes in the first round
    load<Rank>(params, box, ring.stage(n), ring.full(n));
  }
}

template <int Rank, int Stages>
__device__ void consume(const RingCopyParams& params, const Ring<Stages>& ring, int num_boxes,
                        std::uint8_t* memory, std::uint32_t start) {
  const unsigned thread = threadIdx.x - 32;
  std::uint32_t sum = 0;
  int n = 0;
  for (int box = static_cast<int>(blockIdx.x); box < num_boxes; box += gridDim.x, ++n) {
    ptx::mbarrier_wait_parity(ring.full(n), ring.parity(n));
    sum += change_stage(memory, start, ring.stage(n), thread);
    ptx::fence_proxy_async_shared_cta();
    ptx::bar_sync<1, kRingCopyConsumers>();
    if (thread == 0) {
      store<Rank>(params, box, ring.stage(n));
      ptx::cp_async_bulk_commit_group();
      ptx::cp_async_bulk_wait_group_read<0>();
      ptx::mbarrier_arrive(ring.empty(n));
    }
  }
  if (thread == 0) ptx::cp_async_bulk_wait_group<0>();
  if (sum != 0) atomicAdd(params.checksum, sum);
}

template <int Rank, int Stages>
__device__ void ring_copy(const RingCopyParams& params) {
  extern __shared__ std::uint8_t dynamic[];
  __shared__ alignas(8) std::uint64_t barrier_storage[2 * Stages];
  const std::uint32_t start = ptx::shared_address(dynamic);
  const Ring<Stages> ring = {
      (start + kRingCopyAlignment - 1) / kRingCopyAlignment * kRingCopyAlignment,
      ptx::shared_address(barrier_storage)};
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < Stages; ++stage) {
      ptx::mbarrier_init(ring.full(stage), 1);
      ptx::mbarrier_init(ring.empty(stage), 1);
    }
    ptx::fence_mbarrier_init_release_cluster();
  }
  __syncthreads();
  const int num_boxes = params.num_boxes[0] * params.num_boxes[1] * params.num_boxes[2];
  if (threadIdx.x >= 32) {
    consume<Rank>(params, ring, num_boxes, dynamic, start);
  } else if (ptx::elect_sync()) {
    ptx::prefetch_tensormap(params.source_map);
    produce<Rank>(params, ring, num_boxes);
  }
}

}  // namespace
}  // namespace tilewright::kernels

#define TILEWRIGHT_RING_COPY(RANK, STAGES)                                            \
  extern "C" __global__ void __launch_bounds__(tilewright::kernels::kRingCopyThreads) \
      ring_copy_##RANK##d_s##STAGES(                                                  \
          const __grid_constant__ tilewright::kernels::RingCopyParams params) {       \
    tilewright::kernels::ring_copy<RANK, STAGES>(params);                             \
  }

TILEWRIGHT_RING_COPY(2, 1)
TILEWRIGHT_RING_COPY(2, 2)
TILEWRIGHT_RING_COPY(2, 4)
TILEWRIGHT_RING_COPY(3, 1)
TILEWRIGHT_RING_COPY(3, 2)
TILEWRIGHT_RING_COPY(3, 4)
