// Contract of the probe that decodes FP4 into shared memory for wgmma, with and without the fence.
#pragma once

#include <cstdint>

namespace tilewright::kernels {

/// y[i, j] = sum_k w[i, k] x[j, k] of 64 x 64 x 64. Entries decode_to_shared_fenced, which is
/// right, and decode_to_shared_unfenced, which lacks the proxy fence: on a GPU it is right most of
/// the time.
struct DecodeToSharedParams {
  const std::uint32_t* w;  ///< [64][8] words of eight e2m1 codes, lowest k in the lowest bits
  const std::uint32_t* x;  ///< [64][16] words of four e4m3
  float* y;                ///< [64][64]
};

inline constexpr int kDecodeToSharedTile = 64;
inline constexpr int kDecodeToSharedThreads = 128;

}  // namespace tilewright::kernels
