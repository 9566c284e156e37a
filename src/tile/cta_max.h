// Maxima over the threads of a CTA.
#pragma once

#include <cstdint>

namespace tilewright::tile {

/// The largest of `warps` neighbouring warps, in each of their threads; the warps of a CTA come in
/// such groups. Once in a kernel: what the warps have found is not read again before it would be
/// overwritten.
template <int MaxThreads>
__device__ std::uint32_t max_of_warps(std::uint32_t x, std::uint32_t warps) {
  static_assert(MaxThreads % 32 == 0 && MaxThreads <= 1024);
  __shared__ std::uint32_t of_warps[MaxThreads / 32];
  const std::uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  x = __reduce_max_sync(~0u, x);
  if (lane == 0) of_warps[warp] = x;
  __syncthreads();
  return __reduce_max_sync(~0u, lane < warps ? of_warps[warp / warps * warps + lane] : 0);
}

/// The largest of all threads of the CTA, whole warps, in each of them. Once in a kernel.
template <int MaxThreads>
__device__ std::uint32_t max_of_cta(std::uint32_t x) {
  return max_of_warps<MaxThreads>(x, blockDim.x / 32);
}

}  // namespace tilewright::tile
