// Contract of stage D: attention over chosen tokens of a paged cache of 8-bit numbers.
#pragma once

#include "kernels/attention_sm100/attention_sm100.h"

namespace tilewright::kernels {

/// Every query of every batch has its own list of slots of the cache, and all heads share it. A
/// token's vector is key and value:
///   out[b,i,h,:] = sum_l p_l x[s_l,:], p = softmax over l of scale * q[b,i,h,:] . x[s_l,:]
/// over l < topk (or key_counts[b,i]) whose slot s_l = indices[b,i,l] exists: 0 <= s_l < num_slots.
/// x is rounded to the type of q after its scale (fp16: it must be below 65520). Slot s is token s
/// % page_tokens of page s / page_tokens.
///
/// Of `attention` are read: q_map, out_map (boxes 64 x heads x 1 x 1), lse, sink, the strides of
/// lse, batch, heads (at most 128), q_len, scale_log2.
struct StageDParams {
  AttentionParams attention;
  alignas(
      64) std::uint8_t cache_map[128];  ///< 2-D of 32-bit words: rows of a token, box of one row
  const std::uint8_t* cache;
  std::int64_t page_bytes;         ///< from page to page; a multiple of a token's row
  const std::int32_t* indices;     ///< [batch, q_len, topk]
  const std::int32_t* key_counts;  ///< [batch, q_len], or null
  std::int32_t page_tokens, num_slots, topk;
};

/// Entries attention_sm100_stage_d_{bf16,f16}_deepseek (rows of 576 bytes: 448 e4m3, 64 bf16; 8
/// bytes of scales a token behind the page's rows), attention_sm100_stage_d_{bf16,f16}_e4m3_d128
/// and attention_sm100_stage_d_bf16_e4m3_d512 (rows of head_dim e4m3; an f32 a token behind them).
/// Grid (q_len * value splits, 1, batch).
inline constexpr int kStageDKeys = 64;     ///< of a step
inline constexpr int kStageDRawKeys = 16;  ///< of a copy
inline constexpr int kStageDRawStages = 3;
inline constexpr int kStageDThreads = 320;  ///< warps 0-3 rows, 4 multiplies, 5 loads, 6-9 convert

constexpr int stage_d_shared_bytes(int head_dim, int row_bytes) {
  return head_dim / 64 * (128 + kStageDKeys) * 128 + kStageDRawStages * kStageDRawKeys * row_bytes +
         256;
}

}  // namespace tilewright::kernels
