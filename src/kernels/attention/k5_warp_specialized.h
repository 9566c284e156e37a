// K5: one warp loads, two warpgroups compute.
#pragma once

#include "kernels/attention/attention.h"

namespace tilewright::kernels {

/// Entries attention_k5_{bf16,f16}_d{64,128,256}. Every feature of AttentionParams but next_tile.
/// Grid (q_tiles, heads, batch).
constexpr AttentionTile k5_tile(int head_dim) {
  const int keys = head_dim == 256 ? 80 : 128;
  constexpr int kConsumers = 2, kStages = 2, kBarrierBytes = 256;
  const int shared = kConsumers * 64 * head_dim * 2 + 2 * kStages * keys * head_dim * 2;
  return {kConsumers * 64, keys, 64, (kConsumers + 1) * 128, shared + kBarrierBytes, false};
}

}  // namespace tilewright::kernels
