// Contract of K3: K2 fed by tensor copies through a ring of 1, 2 or 5 stages.
#pragma once

#include "kernels/attention/attention.h"
#include "kernels/attention/support.h"

namespace tilewright::kernels {

/// Entries attention_k3_1_TYPE_dDIM (one stage), attention_k3_2_ (two), attention_k3_3_ (five);
/// TYPE is bf16 or f16, DIM 64 or 128. Maps of q, k and v without swizzle, boxes of 64 rows.
inline constexpr AttentionSupport kK3Support = {.max_head_dim = 128,
                                                .has_lse = true,
                                                .has_window = true,
                                                .has_packed_sequences = false,
                                                .has_softcap = false,
                                                .has_sink = false};

/// Queries, keys and values of each stage; barriers; probabilities in f32, 68 to a row.
constexpr AttentionTile k3_tile(int head_dim, int stages) {
  return {.queries = 64,
          .keys = 64,
          .box_queries = 64,
          .threads = 256,
          .shared_bytes = (1 + 2 * stages) * 64 * head_dim * 2 + (1 + stages) * 16 + 64 * 68 * 4,
          .is_persistent = false};
}
constexpr AttentionTile k3_1_tile(int head_dim) {
  return k3_tile(head_dim, 1);
}
constexpr AttentionTile k3_2_tile(int head_dim) {
  return k3_tile(head_dim, 2);
}
constexpr AttentionTile k3_3_tile(int head_dim) {
  return k3_tile(head_dim, 5);
}

}  // namespace tilewright::kernels
