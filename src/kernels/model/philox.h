// Counter-based random bits: Philox4x32 with ten rounds.
#pragma once

#include <cstdint>

namespace tilewright::kernels {

/// Four words of random bits, a function of counter and key alone (Salmon, Moraes, Dror and Shaw,
/// "Parallel random numbers: as easy as 1, 2, 3", 2011).
__device__ inline uint4 philox(uint4 counter, uint2 key) {
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const std::uint32_t low0 = 0xd2511f53u * counter.x, high0 = __umulhi(0xd2511f53u, counter.x);
    const std::uint32_t low1 = 0xcd9e8d57u * counter.z, high1 = __umulhi(0xcd9e8d57u, counter.z);
    counter = make_uint4(high1 ^ counter.y ^ key.x, low1, high0 ^ counter.w ^ key.y, low0);
    key.x += 0x9e3779b9u;
    key.y += 0xbb67ae85u;
  }
  return counter;
}

}  // namespace tilewright::kernels
