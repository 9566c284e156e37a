// K6.1: K5 with CTAs that stay.
#pragma once

#include "kernels/attention/k5_warp_specialized.h"

namespace tilewright::kernels {

/// Entries attention_k6_1_{bf16,f16}_d{64,128}. Every feature of AttentionParams. Any grid; one CTA
/// per SM is meant. (At 256 this plain form of the later rungs spills; K6 does not.)
constexpr AttentionTile k6_1_tile(int head_dim) {
  constexpr int kDealtTilesBytes = 256;
  AttentionTile tile = k5_tile(head_dim);
  tile.shared_bytes += kDealtTilesBytes;
  tile.is_persistent = true;
  return tile;
}

}  // namespace tilewright::kernels
