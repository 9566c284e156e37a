// Contract of the combination: the rows of a token's experts become one row again.
#pragma once

#include <cstdint>

namespace tilewright::kernels {

/// out[t,:] = sum_i weights[t,i] * rows[slot_row[t,i],:] (+ shared row of t), summed in f32 in the
/// order of i, the shared expert last. A slot_row of -1 adds nothing.
struct MoeCombineParams {
  const std::uint16_t* rows;             ///< bf16 [.., hidden]
  const std::int32_t* slot_row;          ///< [tokens, topk]
  const float* weights;                  ///< [tokens, topk], or null: all 1
  const std::uint16_t* shared_rows;      ///< bf16 [.., hidden] or null
  const std::int32_t* shared_first;      ///< [1] token t's is row *shared_first + t; null: row t
  void* out;                             ///< bf16 or f32 [tokens, hidden]
  std::int64_t rows_stride, out_stride;  ///< elements, multiples of 8
  std::int32_t tokens, hidden, topk;     ///< hidden % 8 == 0
};

inline constexpr int kMoeCombineThreads = 128;
/// Entries moe_combine_bf16, moe_combine_f32; grid (ceil(hidden / kMoeCombineColumns), tokens).
inline constexpr int kMoeCombineColumns = kMoeCombineThreads * 8;

}  // namespace tilewright::kernels
