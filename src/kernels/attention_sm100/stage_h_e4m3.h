// Contract of stage H: queries, keys, values and weights in e4m3.
#pragma once

#include "kernels/attention/k7/fp8_operands.h"
#include "kernels/attention_sm100/attention_sm100.h"

namespace tilewright::kernels {

/// Entries attention_sm100_stage_h_e4m3_d{64,128,256}: AttentionFp8Params with maps, grid and rows
/// as attention_sm100.h says, but q, k and v in bytes and in boxes of stage_h_span() bytes. Values
/// are in rows. q_scales, k_scales, v_scales and v_reference as for K7, per block or not;
/// flush_tiles is not read: sums are f32. head_dim up to 256, every feature of AttentionParams.

constexpr int stage_h_span(int head_dim) {
  return head_dim < 128 ? head_dim : 128;
}
/// Tiles of rows of a CTA: results of two of 256 columns would be all of Tensor Memory.
constexpr int stage_h_tiles(int head_dim) {
  return head_dim < 256 ? 2 : 1;
}
inline constexpr int kStageHThreads = 512;  ///< as stage E
/// Items of the ring: the keys or the values of a step, 128 * head_dim bytes.
constexpr int stage_h_stages(int head_dim) {
  return head_dim < 256 ? 8 : 4;
}
/// Of results, where queries were: 16 bits against 8.
constexpr int stage_h_out_bytes(int head_dim) {
  return stage_h_tiles(head_dim) * 128 * head_dim * 2;
}
constexpr int stage_h_shared_bytes(int head_dim) {
  return stage_h_out_bytes(head_dim) + stage_h_stages(head_dim) * 128 * head_dim +
         stage_h_tiles(head_dim) * 128 * 4 + 512;
}

constexpr AttentionTile stage_h_tile(int head_dim, int group) {
  return {.queries = stage_h_tiles(head_dim) * sm100_group_queries(group),
          .keys = 128,
          .box_queries = sm100_group_queries(group),
          .threads = kStageHThreads,
          .shared_bytes = stage_h_shared_bytes(head_dim),
          .is_persistent = false};
}

}  // namespace tilewright::kernels
