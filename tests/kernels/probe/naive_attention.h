// Contract of the naive attention: three plain kernels (scores, softmax, output) with the scores in
// global memory between them. Sequences are packed and of any length.
#pragma once

#include <cstdint>

namespace tilewright::kernels {

/// s[h,i,j] = scale * q[i,h,:] . k[j,g,:],  p[h,i,:] = softmax over the visible j,
/// out[i,h,:] = sum_j p[h,i,j] v[j,g,:],  g = h / (heads / kv_heads)
///
/// Query i of a sequence stands at key i + kv_len - q_len and sees, if causal, no later key. A
/// query that sees none gets zeros. All accumulation is in f32; q, k and v are f32 or bf16.
struct NaiveAttentionParams {
  const void* q;  ///< [total_q, heads, head_dim]
  const void* k;  ///< [total_kv, kv_heads, head_dim]
  const void* v;  ///< [total_kv, kv_heads, head_dim]
  float* scores;  ///< [heads, total_q, max_kv_len], scratch: scores, then probabilities
  float* out;     ///< [total_q, heads, head_dim]
  const std::int32_t* cu_seqlens_q;   ///< [batch + 1] first row of each sequence, and total_q
  const std::int32_t* cu_seqlens_kv;  ///< [batch + 1]
  std::int32_t batch;
  std::int32_t heads;
  std::int32_t kv_heads;  ///< divides heads
  std::int32_t head_dim;  ///< 1 or more
  std::int32_t max_kv_len;
  float scale;
  std::int32_t is_causal;  ///< 0 or 1
};

/// naive_attention_scores_f32 / _bf16: grid (ceil(max_kv_len / threads), total_q, heads).
inline constexpr int kNaiveAttentionScoresThreads = 64;
/// naive_attention_softmax: a warp per row, grid (ceil(total_q / warps), heads).
inline constexpr int kNaiveAttentionSoftmaxWarps = 4;
/// naive_attention_output_f32 / _bf16: grid (ceil(head_dim / threads), total_q, heads).
inline constexpr int kNaiveAttentionOutputThreads = 64;

}  // namespace tilewright::kernels
