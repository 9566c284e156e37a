// Contract of stage H over keys in pages, and with lengths that only the device knows.
#pragma once

#include "kernels/attention/k7/paged_operands.h"
#include "kernels/attention_sm100/stage_h_e4m3.h"

namespace tilewright::kernels {

/// Entries attention_sm100_pages_e4m3_{d64,d128,d256}: AttentionPagedFp8Params with rows as
/// attention_sm100.h says, maps in bytes as stage H's, but k and v [page, head, row, head_dim] in
/// boxes of page_box rows. group_shift and page_divisor are not read. PageCopies and grid as for
/// stage E over pages (stage_e_pages.h); a part that is copied has 128 bytes or more.
constexpr int stage_h_pages_shared_bytes(int head_dim) {
  return stage_h_shared_bytes(head_dim) + 128;
}

constexpr AttentionTile stage_h_pages_tile(int head_dim, int group) {
  AttentionTile tile = stage_h_tile(head_dim, group);
  tile.shared_bytes = stage_h_pages_shared_bytes(head_dim);
  return tile;
}

}  // namespace tilewright::kernels
