// Contract of stage E: the fast shape.
#pragma once

#include "kernels/attention/support.h"
#include "kernels/attention_sm100/attention_sm100.h"

namespace tilewright::kernels {

/// Entries attention_sm100_stage_e_{bf16,f16}_{d64,d128,d192_v128}: as stage C, with two tiles of
/// rows a CTA; the last has 192 columns of queries and keys and 128 of values. Every fourth pair of
/// powers goes through a polynomial.
inline constexpr AttentionSupport kStageESupport = {.max_head_dim = 128,
                                                    .has_lse = true,
                                                    .has_window = true,
                                                    .has_packed_sequences = true,
                                                    .has_softcap = true,
                                                    .has_sink = true};

/// Warps 0-3 and 4-7 softmax of a tile each, 8-11 correction, 12 multiplies, 13 loads.
inline constexpr int kStageEThreads = 512;
inline constexpr int kStageEStages = 8;  ///< boxes of the ring

/// Queries, ring, factors of rows, barriers.
constexpr int stage_e_shared_bytes(int head_dim) {
  return (2 * head_dim / 64 + kStageEStages) * kSm100BoxBytes + 2 * 128 * 4 + 256;
}

constexpr AttentionTile stage_e_tile(int head_dim, int group) {
  return {.queries = 2 * sm100_group_queries(group),
          .keys = 128,
          .box_queries = sm100_group_queries(group),
          .threads = kStageEThreads,
          .shared_bytes = stage_e_shared_bytes(head_dim),
          .is_persistent = false};
}

}  // namespace tilewright::kernels
