// Contract of stage B: two products with nothing between them but a change of places.
#pragma once

#include "kernels/attention_sm100/attention_sm100.h"

namespace tilewright::kernels {

/// out[b,i,h,:] = sum_j round(scale s_j) v[b,j,g,:], s_j = q[b,i,h,:] . k[b,j,g,:], round to the
/// type of v: attention with the identity for a softmax; `scale` is params.scale_log2. Entries
/// attention_sm100_stage_b_{bf16,f16}_d{64,128}: maps, grid and shared memory as
/// attention_sm100.h says; no lse, window, sink or packed sequences.
///
/// attention_sm100_stage_b_wrong_{bf16,f16}_d64 do the same and keep P where the accumulator was:
/// kept to show what the simulator's `tmem` check says of it.
constexpr AttentionTile stage_b_tile(int head_dim, int group) {
  return sm100_tile(head_dim, group);
}

}  // namespace tilewright::kernels
