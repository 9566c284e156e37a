// What the contracts of attention on Blackwell have in common.
#pragma once

#include "kernels/attention/attention.h"

namespace tilewright::kernels {

/// AttentionParams as for the Hopper ladder, with these maps, all 4-D with swizzle 128B and boxes
/// of 64 columns. `group` = heads / kv_heads, at most 128; a CTA has 128 / group queries (rounded
/// down) with all heads of a group: decoding fills rows with heads.
///   q, out  [batch, row, head, head_dim] (head_dim innermost, then heads); box 64 x group x
///           (128 / group) x 1
///   k, v    [batch, head, row, head_dim] (head_dim innermost, then rows); box 64 x 128 x 1 x 1
/// Grid (q_tiles * value splits, kv_heads, batch). Strides and addresses as the maps need them:
/// multiples of 16 bytes.
constexpr int sm100_group_queries(int group) {
  return 128 / group;
}

/// Value columns of a CTA. Results are head_dim columns of Tensor Memory beside 128 of scores and
/// 64 of probabilities: 256 fit in its 512, 512 do not.
constexpr int sm100_value_columns(int head_dim) {
  return head_dim < 256 ? head_dim : 256;
}
constexpr int sm100_value_splits(int head_dim) {
  return head_dim / sm100_value_columns(head_dim);
}

/// Boxes of the ring: what fits beside the queries.
constexpr int sm100_stages(int head_dim) {
  return head_dim == 512 ? 6 : head_dim == 64 ? 4 : 8;
}

constexpr int kSm100Threads = 192;  ///< warps 0-3 rows, 4 multiplies, 5 loads
constexpr int kSm100BoxBytes = 128 * 128;

/// Queries, ring, barriers.
constexpr int sm100_shared_bytes(int head_dim) {
  return (head_dim / 64 + sm100_stages(head_dim)) * kSm100BoxBytes + 256;
}

constexpr AttentionTile sm100_tile(int head_dim, int group) {
  return {.queries = sm100_group_queries(group),
          .keys = 128,
          .box_queries = sm100_group_queries(group),
          .threads = kSm100Threads,
          .shared_bytes = sm100_shared_bytes(head_dim),
          .is_persistent = false};
}

}  // namespace tilewright::kernels
