// Contract of stage E over keys in pages, and with lengths that only the device knows.
#pragma once

#include "kernels/attention/forward/pages.h"
#include "kernels/attention_sm100/stage_e_two_tiles.h"

namespace tilewright::kernels {

/// Entries attention_sm100_pages_{bf16,f16}_{d64,d128,d192_v128}: AttentionPagedParams with rows
/// and maps as attention_sm100.h says, but k and v [page, head, row, head_dim] in boxes of page_box
/// rows. group_shift is not read. With PageCopies::kWarps a warp copies the parts of a tile. With
/// kRows it gathers: k and v are maps [row, head_dim] in boxes of a row, and k_strides and
/// v_strides count the rows of these.
/// Grid (tiles of all sequences, kv_heads): as many as there can be, those beyond end at once.
constexpr int stage_e_pages_shared_bytes(int head_dim) {
  return stage_e_shared_bytes(head_dim) + 128;
}

constexpr AttentionTile stage_e_pages_tile(int head_dim, int group) {
  AttentionTile tile = stage_e_tile(head_dim, group);
  tile.shared_bytes = stage_e_pages_shared_bytes(head_dim);
  return tile;
}

}  // namespace tilewright::kernels
