// Contract of stage F over keys in pages, and with lengths that only the device knows.
#pragma once

#include "kernels/attention/forward/pages.h"
#include "kernels/attention_sm100/stage_f_cta_pair.h"

namespace tilewright::kernels {

/// Entries attention_sm100_pages_{bf16,f16}_d256: AttentionPagedParams as stage E over pages has
/// them (stage_e_pages.h), but page_box is at most kStageFBoxKeys: half of a tile of keys is a
/// CTA's. Grid (2 * tiles of all sequences, kv_heads) in clusters of two: as many tiles as there
/// can be, pairs beyond end at once.
constexpr AttentionTile stage_f_pages_tile(int head_dim, int group) {
  return stage_f_tile(head_dim, group);
}

}  // namespace tilewright::kernels
