// Contract of K4.2: both products by warpgroup MMAs, softmax in registers.
#pragma once

#include "kernels/attention/attention.h"
#include "kernels/attention/support.h"

namespace tilewright::kernels {

/// Entries attention_k4_2_TYPE_dDIM; TYPE is bf16 or f16, DIM 64, 128 or 256. Maps of q, k and v
/// with swizzle 128B, boxes of 64 columns by 64 rows.
inline constexpr AttentionSupport kK42Support = {.max_head_dim = 256,
                                                 .has_lse = true,
                                                 .has_window = true,
                                                 .has_packed_sequences = false,
                                                 .has_softcap = false,
                                                 .has_sink = false};

/// As many as fit: 80, 160, and at head_dim 256 192 KiB.
constexpr int k4_2_stages(int head_dim) {
  return head_dim <= 128 ? 5 : 3;
}

/// Queries, keys and values of each stage; barriers.
constexpr AttentionTile k4_2_tile(int head_dim) {
  const int stages = k4_2_stages(head_dim);
  return {.queries = 64,
          .keys = 64,
          .box_queries = 64,
          .threads = 128,
          .shared_bytes = (1 + 2 * stages) * 64 * head_dim * 2 + (1 + stages) * 16,
          .is_persistent = false};
}

}  // namespace tilewright::kernels
