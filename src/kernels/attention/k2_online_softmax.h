// Contract of K2: one launch, tiles of 64 queries by 64 keys, scalar arithmetic.
#pragma once

#include "kernels/attention/attention.h"
#include "kernels/attention/support.h"

namespace tilewright::kernels {

/// Entries attention_k2_TYPE_dDIM; TYPE is bf16 or f16, DIM 64 or 128. No tensor maps.
inline constexpr AttentionSupport kK2Support = {.max_head_dim = 128,
                                                .has_lse = true,
                                                .has_window = true,
                                                .has_packed_sequences = false,
                                                .has_softcap = false,
                                                .has_sink = false};

/// Queries, and keys or values; probabilities in f32, 68 to a row.
constexpr AttentionTile k2_tile(int head_dim) {
  return {.queries = 64,
          .keys = 64,
          .box_queries = 0,
          .threads = 256,
          .shared_bytes = 2 * 64 * head_dim * 2 + 64 * 68 * 4,
          .is_persistent = false};
}

}  // namespace tilewright::kernels
