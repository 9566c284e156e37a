// Contract of stage F: pairs of CTAs share keys and values.
#pragma once

#include "kernels/attention/support.h"
#include "kernels/attention_sm100/attention_sm100.h"

namespace tilewright::kernels {

/// Entries attention_sm100_stage_f_{bf16,f16}_d{256,512}; what attention.h says, for head_dim 256
/// and 512 only. Grid (2 * q_tiles, kv_heads, batch) in clusters of two; a tile of queries is a
/// pair's. Maps as attention_sm100.h says, but
///   q, out  boxes of 64 x group x (stage_f_rows / group) x 1; group at most stage_f_rows
///   k, v    boxes of 64 x 64 x 1 x 1
inline constexpr AttentionSupport kStageFSupport = {.max_head_dim = 512,
                                                    .has_lse = true,
                                                    .has_window = true,
                                                    .has_packed_sequences = true,
                                                    .has_softcap = true,
                                                    .has_sink = true};

/// Rows of a CTA: at head_dim 512 results of 64 rows fill both halves of the lanes.
constexpr int stage_f_rows(int head_dim) {
  return head_dim == 512 ? 64 : 128;
}
inline constexpr int kStageFBoxKeys = 64;  ///< rows of the boxes of k and v

/// Stages of the ring, 16 KiB each; even, so that two that belong together are neighbours.
constexpr int stage_f_stages(int head_dim) {
  return head_dim == 512 ? 8 : 10;
}
/// Probabilities go through shared memory at head_dim 512, two tiles of 64 rows by 128 keys.
constexpr int stage_f_operand_bytes(int head_dim) {
  return head_dim == 512 ? 2 * 64 * 128 * 2 : 0;
}

/// Queries, ring, probabilities, barriers and what rows exchange.
constexpr int stage_f_shared_bytes(int head_dim) {
  return stage_f_rows(head_dim) * head_dim * 2 + stage_f_stages(head_dim) * kSm100BoxBytes +
         stage_f_operand_bytes(head_dim) + 2048;
}

constexpr AttentionTile stage_f_tile(int head_dim, int group) {
  const int queries = stage_f_rows(head_dim) / group;
  return {.queries = 2 * queries,
          .keys = 128,
          .box_queries = queries,
          .threads = kSm100Threads,
          .shared_bytes = stage_f_shared_bytes(head_dim),
          .is_persistent = false};
}

}  // namespace tilewright::kernels
