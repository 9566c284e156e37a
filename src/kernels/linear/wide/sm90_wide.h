// What Hopper's linear layers for many tokens are told: one matrix, or one per expert; tokens in
// bf16 (sm90_wide_bf16.h) or FP8 (sm90_wide_e4m3.h).
#pragma once

#include <cstdint>

namespace tilewright::kernels {

/// y[i, j] = (alpha * sum_k x[i, k] w[j, k] + bias[j]) * row_weight[i]; with is_swiglu the rows of
/// w are 8 of gate and 8 of up in turn (swiglu_row()), and
///   y[i, 8 q + r] = silu(min(gate, limit)) * clamp(up, -limit, limit) * row_weight[i],
///   gate = alpha * sum + bias of row 16 q + r, up = that of row 16 q + 8 + r.
struct WideParams {
  alignas(64) std::uint8_t x_map[128];  ///< of x: [tokens, k], boxes of 128 bytes of k, 128B
                                        ///< swizzle, zeros outside; rows multiples of 16 bytes
  const std::uint8_t* weights;          ///< bricks of packed_weight.h, rows padded to 16 and k to
                                        ///< 64 with zeros; matrices one after the other
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
  float* parts;               ///< null, or WideParts: then the last units are cut along k, so that
  std::uint64_t* part_flags;  ///< all clusters have the same number of steps
  std::uint64_t part_key;     ///< of this launch; not 0
  std::int32_t tokens;        ///< rows of x
  std::int32_t n, k;          ///< rows of w (a multiple of 16) and columns (any)
  std::int32_t matrices;
  std::int32_t tile_tokens;  ///< most of a tile: a multiple of kWideGranule
  std::int32_t token_group;  ///< token tiles whose units come together: what L2 is to hold
  std::int32_t splits;       ///< CTAs of a cluster that share k
  float alpha;
  float swiglu_limit;  ///< infinity for none
  std::uint8_t is_swiglu, is_f32;
  /// sm90_wide_spread.h: block_scales are powers of two from 2^kLeastPowerScale to
  /// 2^kMostPowerScale, with which every product of a weight is exact in bf16.
  std::uint8_t has_power_scales;
};

/// Of has_power_scales: so far from the ends of bf16 and f32 that no product of a token leaves them
/// which would not without its scale.
inline constexpr int kLeastPowerScale = -60, kMostPowerScale = 7;
inline constexpr int kWideGranule = 32;  ///< tiles are that many tokens, or a multiple
/// Results on their way out: 64 tokens of the 64 rows of a warpgroup in bf16.
inline constexpr int kWideStagingBytes = 64 * 64 * 2;

/// Memory through which clusters pass the sums of units that they share: for each CTA, rows x
/// tile_tokens sums in f32, 16-byte aligned, and kFlags flags. What flags hold before a launch does
/// not matter as long as it is not the key of the launch; a launch leaves none of them at its key.
/// Of one matrix, without `splits`.
struct WideParts {
  static constexpr int kFlags = 4;  ///< warpgroups of a CTA

  int ctas, rows, tile_tokens;

  constexpr std::int64_t flag_bytes() const { return std::int64_t{ctas} * kFlags * 8; }
  constexpr std::int64_t sum_bytes() const { return std::int64_t{ctas} * rows * tile_tokens * 4; }
};

}  // namespace tilewright::kernels
