// Contract of stage C: attention.
#pragma once

#include "kernels/attention/support.h"
#include "kernels/attention_sm100/attention_sm100.h"

namespace tilewright::kernels {

/// Entries attention_sm100_stage_c_{bf16,f16}_d{64,128,256,512}; what attention.h says, with maps,
/// grid and shared memory as attention_sm100.h says. head_dim 512: two CTAs share a tile of
/// queries, 256 value columns each.
inline constexpr AttentionSupport kStageCSupport = {.max_head_dim = 512,
                                                    .has_lse = true,
                                                    .has_window = true,
                                                    .has_packed_sequences = true,
                                                    .has_softcap = true,
                                                    .has_sink = true};

constexpr AttentionTile stage_c_tile(int head_dim, int group) {
  return sm100_tile(head_dim, group);
}

}  // namespace tilewright::kernels
