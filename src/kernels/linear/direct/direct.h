// Contract of the direct kernel of linear layers, for both chips: one to 32 tokens, FP4 weights
// straight from memory into registers.
#pragma once

#include "formats/packed_weight.h"

#include <algorithm>
#include <cstdint>

namespace tilewright::kernels {

/// How a launch cuts the problem. A cluster computes `warps * warp_bricks` bricks of rows for all
/// tokens; its CTAs, and in a CTA `k_groups` groups of `warps` warps, share K.
/// Entries linear_direct_FORMAT_nTOKENS[_deep], FORMAT nvfp4, mxfp4, TOKENS 8, 16, 32; `_deep` (8
/// tokens only) has one brick a warp instead of two and more loads ahead, for matrices that are
/// read in a few microseconds.
struct DirectTile {
  int tokens;    ///< 8, 16, 32
  bool is_deep;  ///< 8 tokens: one brick a warp
  int warps, k_groups, cluster;

  static constexpr int kMaxWarps = 15;  ///< of a CTA: 136 registers a thread

  constexpr int warp_bricks() const { return tokens == 32 || is_deep ? 1 : 2; }
  constexpr int bricks() const { return warps * warp_bricks(); }
  constexpr int threads() const { return warps * k_groups * 32; }
  constexpr int parts() const { return cluster * k_groups; }
  constexpr bool is_possible() const {
    return warps >= 1 && k_groups >= 1 && warps * k_groups <= kMaxWarps &&
           (cluster == 1 || cluster == 2 || cluster == 4 || cluster == 8);
  }
  constexpr std::int32_t clusters(std::int32_t n) const {
    return ((n + kBrickRows - 1) / kBrickRows + bricks() - 1) / bricks();
  }
  /// K blocks of 64 in a CTA, at most.
  constexpr std::int32_t cta_blocks(std::int32_t k) const {
    const std::int32_t blocks = (k + kBrickK - 1) / kBrickK;
    std::int32_t most = 0;
    for (int rank = 0; rank < cluster; ++rank) {
      const std::int64_t begin = std::int64_t{blocks} * rank * k_groups / parts();
      const std::int64_t end = std::int64_t{blocks} * (rank + 1) * k_groups / parts();
      most = std::max(most, static_cast<std::int32_t>(end - begin));
    }
    return most;
  }
  /// Of a token in shared memory; the 16 bytes more spread tokens over the banks.
  constexpr std::uint32_t token_bytes(std::int32_t k) const {
    return static_cast<std::uint32_t>(cta_blocks(k)) * 128 + 16;
  }
  /// Behind the tokens: the sums of all parts, 512 bytes for 16 rows by 8 tokens.
  constexpr std::uint32_t sums_at(std::int32_t k) const {
    return (token_bytes(k) * static_cast<std::uint32_t>(tokens) + 127) / 128 * 128;
  }
  constexpr std::uint32_t shared_bytes(std::int32_t k) const {
    const int slots = (bricks() + cluster - 1) / cluster * parts();
    return sums_at(k) + static_cast<std::uint32_t>(slots * tokens / 8 * 512);
  }
};

/// y[i, r] = alpha * sum over k of x[i, k] w[r, k] + bias[r]; weights packed (packed_weight.h,
/// WordOrder::kBf16), x bf16, products exact, sums in f32. Grid: clusters(n) * cluster CTAs.
/// The order of all sums depends on k and the tile only: results repeat bit for bit, and those of
/// one token do not depend on others.
struct DirectParams {
  const std::uint8_t* weights;
  const std::uint16_t* x;  ///< rows of x_stride elements, 16-byte aligned
  void* y;                 ///< bf16, or f32 if is_y_f32; rows of y_stride elements
  const float* bias;       ///< [n]; null: none
  std::int64_t x_stride, y_stride;
  std::int32_t m;                         ///< rows, at most the tile's tokens
  std::int32_t n, k;                      ///< k a multiple of 8
  std::int32_t warps, k_groups, cluster;  ///< of DirectTile
  std::uint32_t token_bytes, sums_at;
  std::int32_t is_y_f32;
  float alpha;  ///< with 2^bias_exponent of packed_weight.h
};

}  // namespace tilewright::kernels
