// A maximum over the threads of a CTA.
#pragma once

#include <cstdint>

namespace tilewright::tile {

/// The largest of all threads of the CTA, whole warps, in each of them. Once in a kernel: what the
/// warps have found is not read again before it would be overwritten.
template <int MaxThreads>
__device__ std::uint32_t max_of_cta(std::uint32_t x) {
  static_assert(MaxThreads % 32 == 0 && MaxThreads <= 1024);
  __shared__ std::uint32_t of_warps[MaxThreads / 32];
  x = __reduce_max_sync(~0u, x);
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = x;
  __syncthreads();
  const std::uint32_t lane = threadIdx.x % 32;
  return __reduce_max_sync(~0u, lane < blockDim.x / 32 ? of_warps[lane] : 0);
}

}  // namespace tilewright::tile
