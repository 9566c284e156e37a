// Contract of stage G: stage D by pairs of CTAs.
#pragma once

#include "kernels/attention_sm100/stage_d_paged_fp8.h"

namespace tilewright::kernels {

/// Entries attention_sm100_stage_g_{bf16,f16}_deepseek and attention_sm100_stage_g_bf16_e4m3_d512:
/// what stage D computes, with its StageDParams, for an even number of heads, at most 128. Grid
/// (2 * q_len, 1, batch) in clusters of two, which have half of the heads each: q_map and out_map
/// have boxes of 64 x heads / 2 x 1 x 1.
inline constexpr int kStageGKeys = 64;      ///< of a step; a CTA converts half of them
inline constexpr int kStageGRawStages = 3;  ///< of 16 tokens
inline constexpr int kStageGThreads = 320;  ///< warps 0-3 rows, 4 multiplies, 5 loads, 6-9 convert

/// Queries of 64 rows, two tiles of keys and of values, raw rows, barriers and what rows exchange.
constexpr int stage_g_shared_bytes(int row_bytes) {
  return 64 * 512 * 2 + 2 * (32 * 512 + 64 * 256) * 2 + kStageGRawStages * 16 * row_bytes + 2048;
}

}  // namespace tilewright::kernels
