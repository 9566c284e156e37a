// Contract of K4.1: scores by warpgroup MMAs, the rest scalar.
#pragma once

#include "kernels/attention/attention.h"
#include "kernels/attention/support.h"

namespace tilewright::kernels {

/// Entries attention_k4_1_TYPE_dDIM; TYPE is bf16 or f16, DIM 64 or 128. Maps of q, k and v with
/// swizzle 128B, boxes of 64 columns by 64 rows.
inline constexpr AttentionSupport kK41Support = {.max_head_dim = 128,
                                                 .has_lse = true,
                                                 .has_window = true,
                                                 .has_packed_sequences = false,
                                                 .has_softcap = false,
                                                 .has_sink = false};

inline constexpr int kK41Stages = 5;

/// Queries, keys and values of each stage; barriers; scores in f32, 68 to a row.
constexpr AttentionTile k4_1_tile(int head_dim) {
  return {.queries = 64,
          .keys = 64,
          .box_queries = 64,
          .threads = 128,
          .shared_bytes =
              (1 + 2 * kK41Stages) * 64 * head_dim * 2 + (1 + kK41Stages) * 16 + 64 * 68 * 4,
          .is_persistent = false};
}

}  // namespace tilewright::kernels
