// targets: sm_90a sm_100f
//
// Reductions and a scan over one row per CTA: shuffles of all four kinds, votes, redux, and lanes
// that leave loops at different times.
#include "kernels/probe/block_reduction.h"

namespace tilewright::kernels {
namespace {

constexpr int kWarps = kBlockReductionThreads / 32;

struct Partial {
  float sum, largest;
  std::int32_t int_sum;
  std::uint32_t int_xor, num_negative;
};

__device__ void add(Partial& to, const Partial& from) {
  to.sum += from.sum;
  to.largest = fmaxf(to.largest, from.largest);
  to.int_sum += from.int_sum;
  to.int_xor ^= from.int_xor;
  to.num_negative += from.num_negative;
}

__device__ void reduce_warp(Partial& partial) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) {
    partial.sum += __shfl_down_sync(~0u, partial.sum, step);
    partial.largest = fmaxf(partial.largest, __shfl_xor_sync(~0u, partial.largest, step));
  }
  partial.int_sum = static_cast<std::int32_t>(
      __reduce_add_sync(~0u, static_cast<std::uint32_t>(partial.int_sum)));
  partial.int_xor = __reduce_xor_sync(~0u, partial.int_xor);
  partial.num_negative = __reduce_add_sync(~0u, partial.num_negative);
}

__device__ std::int32_t scan_warp(std::int32_t x) {
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const std::int32_t before = __shfl_up_sync(~0u, x, step);
    if (threadIdx.x % 32 >= step) x += before;
  }
  return x;
}

// Inclusive sums of one value per thread, and their total in `carry`, which every thread has.
__device__ std::int32_t scan_block(std::int32_t x, std::int32_t& carry) {
  __shared__ std::int32_t warp_sums[kWarps];
  const std::int32_t scanned = scan_warp(x);
  if (threadIdx.x % 32 == 31) warp_sums[threadIdx.x / 32] = scanned;
  __syncthreads();
  std::int32_t before = carry;
  for (unsigned warp = 0; warp < threadIdx.x / 32; ++warp) before += warp_sums[warp];
  for (int warp = 0; warp < kWarps; ++warp) carry += warp_sums[warp];
  __syncthreads();
  return before + scanned;
}

}  // namespace
}  // namespace tilewright::kernels

extern "C" __global__ void __launch_bounds__(tilewright::kernels::kBlockReductionThreads)
    block_reduction(const __grid_constant__ tilewright::kernels::BlockReductionParams params) {
  using namespace tilewright::kernels;
  __shared__ Partial partials[kWarps];
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * params.cols;
  Partial mine = {0, -INFINITY, 0, 0, 0};
  for (int i = static_cast<int>(threadIdx.x); i < params.cols; i += kBlockReductionThreads) {
    const float x = params.floats[row + i];
    const std::int32_t number = params.ints[row + i];
    add(mine, {x, x, number, static_cast<std::uint32_t>(number), number < 0 ? 1u : 0u});
  }
  reduce_warp(mine);
  if (threadIdx.x % 32 == 0) partials[threadIdx.x / 32] = mine;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int warp = 1; warp < kWarps; ++warp) add(mine, partials[warp]);
    params.sum[blockIdx.x] = mine.sum;
    params.largest[blockIdx.x] = mine.largest;
    params.int_sum[blockIdx.x] = mine.int_sum;
    params.int_xor[blockIdx.x] = mine.int_xor;
    params.num_negative[blockIdx.x] = mine.num_negative;
  }

  std::int32_t carry = 0;
  for (int i0 = 0; i0 < params.cols; i0 += kBlockReductionThreads) {
    const int i = i0 + static_cast<int>(threadIdx.x);
    const std::int32_t sum = scan_block(i < params.cols ? params.ints[row + i] : 0, carry);
    if (i < params.cols) params.prefix[row + i] = sum;
  }
}
