// Contract of stage A: scores alone.
#pragma once

#include "arch/limits.h"

#include <cstdint>

namespace tilewright::kernels {

/// s[i, j] = sum_c q[i, c] k[j, c], f32, for i < q_len, j < kv_len, c < head_dim, a multiple of 64.
/// Maps: q and k 2-D [row, column] of 16 bits, boxes of 64 columns by 128 rows; s 2-D [i, j], boxes
/// of 32 columns by 128 rows; all with swizzle 128B. What lies outside reads as 0 and is not
/// written.
struct StageAParams {
  alignas(64) std::uint8_t q_map[128];  ///< the driver's opaque CUtensorMap
  alignas(64) std::uint8_t k_map[128];
  alignas(64) std::uint8_t s_map[128];
  std::int32_t head_dim;
};

/// Entries attention_sm100_stage_a_{bf16,f16}; grid (keys / 128, queries / 128), rounded up.
inline constexpr int kStageATile = 128;
inline constexpr int kStageAThreads = 192;  ///< warps 0-3 read results, 4 multiplies, 5 loads
inline constexpr int kStageAStages = 4;
inline constexpr int kStageASharedBytes =
    kStageAStages * 2 * 128 * 128 + 128 * 128 * 4 + 256;  ///< stages of q and k, s, barriers

}  // namespace tilewright::kernels
