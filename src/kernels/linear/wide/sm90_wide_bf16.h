// Contract of Hopper's linear layer for many tokens: bf16 activations, packed weights that are
// decoded on their way to the tensor core. One matrix, or one per expert.
#pragma once

#include "kernels/linear/wide/sm90_wide.h"

#include <cstdint>

namespace tilewright::kernels {

/// Entries linear_wide_bf16_NAME, NAME = nvfp4, mxfp4 (weights in the word order for bf16,
/// WordOrder::kBf16), nvfp4_braided, mxfp4_braided (WordOrder::kE4m3), fp8, bf16;
/// kWideBf16Threads threads.
///
/// Grid: any number of clusters of cluster_rows * splits CTAs (x only); each takes units in turn.
/// The CTAs of a cluster work on cluster_rows row tiles below each other, which load their tokens
/// together, and on `splits` parts of k, whose sums are added in a fixed order: splits 1, 2, 4 or
/// 8, tile_tokens / splits a multiple of 16. Launched as a programmatic dependent it waits before
/// it reads anything.
struct WideBf16Params : WideParams {
  std::int32_t box_tokens;    ///< of x_map, a box; divides kWideGranule with segments, else
                              ///< tile_tokens as well
  std::int32_t cluster_rows;  ///< 1, 2 or 4
  std::int32_t stages;        ///< of the ring: WideBf16Layout::stages()
};

inline constexpr int kWideBf16Threads = 384;
inline constexpr int kWideBf16Rows = 128;  ///< of w in a tile
inline constexpr int kWideBf16Step = 64;   ///< of k
inline constexpr int kWideBf16MaxTokens = 256;

/// The entries linear_wide_bf16_tall_NAME: twice the rows, few tokens. For those it is decoding
/// that takes time, and more warps hide more of it.
inline constexpr int kWideBf16TallThreads = 640;
inline constexpr int kWideBf16TallRows = 256;
inline constexpr int kWideBf16TallMaxTokens = 64;

/// Shared memory of a launch, in this order.
struct WideBf16Layout {
  static constexpr int kLargestCtaBytes = 232448, kMaxStages = 16;
  static constexpr int kBarrierBytes = 2 * 8 * kMaxStages, kDealBytes = 32;

  int brick_bytes, tile_tokens, matrices;
  int rows = kWideBf16Rows;  ///< or kWideBf16TallRows

  constexpr int x_bytes() const { return tile_tokens * kWideBf16Step * 2; }
  constexpr int w_bytes() const { return rows / 16 * brick_bytes; }
  constexpr int staging_bytes() const { return rows / 64 * kWideStagingBytes; }
  /// First units of each matrix, and a word for each warp that adds them up.
  constexpr int table_bytes() const { return (matrices + 1 + (rows / 64 + 1) * 4) * 4; }
  constexpr int fixed_bytes() const {
    return staging_bytes() + kBarrierBytes + kDealBytes + table_bytes();
  }
  constexpr int stages() const {
    const int fitting = (kLargestCtaBytes - fixed_bytes()) / (x_bytes() + w_bytes());
    return fitting < kMaxStages ? fitting : kMaxStages;
  }
  constexpr int shared_bytes() const { return stages() * (x_bytes() + w_bytes()) + fixed_bytes(); }
};

}  // namespace tilewright::kernels
