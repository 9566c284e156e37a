// Contract of the scatter: the row of a token goes to all rows of its experts.
#pragma once

#include <cstdint>

namespace tilewright::kernels {

/// out[slot_row[t,i],:] = x[t,:] for all i (-1: nowhere), and out[*shared_first + t,:].
///
/// moe_scatter_bf16 copies. moe_scatter_e4m3 quantises on the way, each token once: e4m3 in operand
/// order (formats/packed_weight.h) with a scale per row or per 128 columns, by the rule of
/// format fp8_1x128, or with is_pow2 fp8_1x128_ue8m0 (the scale is stored as f32 in either case).
/// What shares a scale with a NaN or an infinity gets a NaN scale.
struct MoeScatterParams {
  const std::uint16_t* x;            ///< bf16 [tokens, hidden], rows 16-byte aligned
  const std::int32_t* slot_row;      ///< [tokens, topk]
  const std::int32_t* shared_first;  ///< [1] or null
  void* out;                         ///< rows 16-byte aligned
  float* scales;                     ///< e4m3: [rows], or [ceil(hidden / 128)][scale_pitch]
  std::int64_t x_stride;             ///< elements
  std::int64_t out_stride_bytes;
  std::int64_t scale_pitch;  ///< elements
  std::int32_t tokens, hidden, topk;
  std::int32_t out_columns;  ///< hidden rounded up to 128 (bf16: to 16); the rest is zeros
  bool is_pow2, has_row_scales;
};

/// moe_scatter_bf16: grid (ceil(out_columns / kMoeScatterColumns), tokens).
inline constexpr int kMoeScatterThreads = 128;
inline constexpr int kMoeScatterColumns = kMoeScatterThreads * 16;

/// moe_scatter_e4m3: a CTA per token. A thread holds up to 4 pieces of 16 columns.
inline constexpr int kMoeScatterMaxThreads = 512;
inline constexpr int kMoeScatterHeld = 4;
inline constexpr int kMoeScatterMaxColumns = kMoeScatterMaxThreads * kMoeScatterHeld * 16;
constexpr int moe_scatter_threads(std::int64_t out_columns) {
  const auto threads = static_cast<int>((out_columns / 16 + kMoeScatterHeld - 1) / kMoeScatterHeld);
  return (threads + 31) / 32 * 32;
}

}  // namespace tilewright::kernels
