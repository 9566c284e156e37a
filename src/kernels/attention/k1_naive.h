// Contract of K1: three launches, one after another, with the scores in global memory between them.
#pragma once

#include "kernels/attention/attention.h"
#include "kernels/attention/support.h"

namespace tilewright::kernels {

/// Entries, in order: attention_k1_scores_TYPE_dDIM, attention_k1_softmax,
/// attention_k1_output_TYPE_dDIM; TYPE is bf16 or f16, DIM 64 or 128. No tensor maps. Scores are
/// overwritten: [batch, heads, kv_len, q_len] probabilities afterwards.
inline constexpr AttentionSupport kK1Support = {.max_head_dim = 128,
                                                .has_lse = true,
                                                .has_window = true,
                                                .has_packed_sequences = false,
                                                .has_softcap = false,
                                                .has_sink = false};

inline constexpr int kK1Tile = 16;  ///< threads of a CTA of the scores and of the output, squared
inline constexpr int kK1Threads = kK1Tile * kK1Tile;
inline constexpr int kK1SoftmaxRows = 256;  ///< softmax: threads of a CTA

/// A launch; one with an extent of 0 is left out. batch * heads and q_len / 16 are below 65536.
struct K1Launch {
  std::int32_t grid[3], block[2];
};
constexpr K1Launch k1_scores_launch(const AttentionParams& p) {
  return {
      {(p.kv_len + kK1Tile - 1) / kK1Tile, (p.q_len + kK1Tile - 1) / kK1Tile, p.batch * p.heads},
      {kK1Tile, kK1Tile}};
}
constexpr K1Launch k1_softmax_launch(const AttentionParams& p) {
  return {{(p.q_len + kK1SoftmaxRows - 1) / kK1SoftmaxRows, p.batch * p.heads, 1},
          {kK1SoftmaxRows, 1}};
}
constexpr K1Launch k1_output_launch(const AttentionParams& p) {
  return {{p.head_dim / kK1Tile, (p.q_len + kK1Tile - 1) / kK1Tile, p.batch * p.heads},
          {kK1Tile, kK1Tile}};
}

/// Of the first and the last launch.
constexpr AttentionTile k1_tile(int /*head_dim*/) {
  return {.queries = kK1Tile,
          .keys = kK1Tile,
          .box_queries = 0,
          .threads = kK1Threads,
          .shared_bytes = 0,
          .is_persistent = false};
}

}  // namespace tilewright::kernels
