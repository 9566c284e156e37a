// An exchange of words among the four lanes of a quad.
#pragma once

#include <cstdint>

namespace tilewright::tile {

/// The 4x4 words that the threads of a quad hold, transposed: word i of thread q becomes word q of
/// thread i.
__device__ inline void transpose_quad(std::uint32_t (&w)[4]) {
  const bool is_odd = threadIdx.x & 1, is_upper = threadIdx.x & 2;
#pragma unroll
  for (int i = 0; i < 4; i += 2) {
    const std::uint32_t sent = is_odd ? w[i] : w[i + 1];
    const std::uint32_t got = __shfl_xor_sync(0xffffffffu, sent, 1);
    w[i] = is_odd ? got : w[i];
    w[i + 1] = is_odd ? w[i + 1] : got;
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const std::uint32_t sent = is_upper ? w[i] : w[i + 2];
    const std::uint32_t got = __shfl_xor_sync(0xffffffffu, sent, 2);
    w[i] = is_upper ? got : w[i];
    w[i + 2] = is_upper ? w[i + 2] : got;
  }
}

}  // namespace tilewright::tile
