// Contract of Hopper's linear layer for many tokens: bf16 activations, packed weights that are
// decoded on their way to the tensor core. One matrix, or one per expert.
#pragma once

#include <cstdint>

namespace tilewright::kernels {

/// y[i, j] = (alpha * sum_k x[i, k] w[j, k] + bias[j]) * row_weight[i], sums by the tensor core in
/// f32; with is_swiglu the rows of w are 8 of gate and 8 of up in turn, and
///   y[i, 8 q + r] = silu(min(gate, limit)) * clamp(up, -limit, limit) * row_weight[i],
///   gate = alpha * sum + bias of row 16 q + r, up = that of row 16 q + 8 + r.
///
/// Weights: bricks of packed_weight.h in the word order for bf16 (WordOrder::kBf16), rows padded to
/// 16 and k to 64 with zeros; matrices one after the other. Entries linear_wide_bf16_NAME, NAME
/// = nvfp4, mxfp4, fp8, bf16; kWideBf16Threads threads.
///
/// Grid: any number of clusters of cluster_rows * splits CTAs (x only); each takes units in turn.
/// The CTAs of a cluster work on cluster_rows row tiles below each other, which load their tokens
/// together, and on `splits` parts of k, whose sums are added in a fixed order. Launched as a
/// programmatic dependent it waits before it reads anything.
struct WideBf16Params {
  alignas(64) std::uint8_t x_map[128];  ///< bf16 [tokens, k], boxes of 64 x box_tokens, 128B
                                        ///< swizzle, zeros outside; rows multiples of 16 bytes
  const std::uint8_t* weights;
  const float* block_scales;     ///< fp8: [matrix][ceil(k/128)][ceil(n/128)], all above 0; with
                                 ///< is_swiglu [..][gate, up][ceil(n/256)]; or null
  const float* alphas;           ///< [matrices] factors beside alpha, or null; of
                                 ///< SwiGLU [matrices][2], of gate and up
  const float* bias;             ///< [matrix][n], or null
  const float* row_weights;      ///< [tokens], or null
  const std::int32_t* segments;  ///< [matrices + 1]: rows segments[e] .. segments[e + 1] of x are
                                 ///< for matrix e; null: one matrix, rows 0 .. tokens
  void* y;                       ///< 16-byte aligned
  std::int64_t y_pitch;          ///< elements between rows; rows multiples of 16 bytes
  std::int64_t matrix_bytes;     ///< from one packed matrix to the next
  std::int32_t tokens;           ///< rows of x; not read with segments
  std::int32_t n, k;             ///< rows of w (a multiple of 16) and columns (any)
  std::int32_t matrices;
  std::int32_t tile_tokens;   ///< most of a tile: a multiple of kWideBf16Granule, up to 256
  std::int32_t box_tokens;    ///< divides kWideBf16Granule with segments, else tile_tokens as well
  std::int32_t cluster_rows;  ///< 1, 2 or 4
  std::int32_t splits;        ///< 1, 2, 4 or 8; tile_tokens / splits a multiple of 16
  std::int32_t token_group;   ///< token tiles whose units come together: what L2 is to hold
  std::int32_t stages;        ///< of the ring: WideBf16Layout::stages()
  float alpha;
  float swiglu_limit;  ///< infinity for none
  std::uint8_t is_swiglu, is_f32;
};

inline constexpr int kWideBf16Threads = 384;
inline constexpr int kWideBf16Rows = 128;    ///< of w in a tile
inline constexpr int kWideBf16Step = 64;     ///< of k
inline constexpr int kWideBf16Granule = 32;  ///< tiles are that many tokens, or a multiple
inline constexpr int kWideBf16MaxTokens = 256;

/// The entries linear_wide_bf16_tall_NAME: twice the rows, few tokens. For those it is decoding
/// that takes time, and more warps hide more of it.
inline constexpr int kWideBf16TallThreads = 640;
inline constexpr int kWideBf16TallRows = 256;
inline constexpr int kWideBf16TallMaxTokens = 64;

/// Shared memory of a launch, in this order.
struct WideBf16Layout {
  static constexpr int kLargestCtaBytes = 232448, kMaxStages = 16;
  static constexpr int kBarrierBytes = 2 * 8 * kMaxStages;

  int brick_bytes, tile_tokens, matrices;
  int rows = kWideBf16Rows;  ///< or kWideBf16TallRows

  constexpr int x_bytes() const { return tile_tokens * kWideBf16Step * 2; }
  constexpr int w_bytes() const { return rows / 16 * brick_bytes; }
  /// Results on their way out, 8 KB for each warpgroup of 64 rows.
  constexpr int staging_bytes() const { return rows / 64 * 8192; }
  /// First units of each matrix, and a word for each warp that adds them up.
  constexpr int table_bytes() const { return (matrices + 1 + (rows / 64 + 1) * 4) * 4; }
  constexpr int fixed_bytes() const { return staging_bytes() + kBarrierBytes + table_bytes(); }
  constexpr int stages() const {
    const int fitting = (kLargestCtaBytes - fixed_bytes()) / (x_bytes() + w_bytes());
    return fitting < kMaxStages ? fitting : kMaxStages;
  }
  constexpr int shared_bytes() const { return stages() * (x_bytes() + w_bytes()) + fixed_bytes(); }
};

}  // namespace tilewright::kernels
