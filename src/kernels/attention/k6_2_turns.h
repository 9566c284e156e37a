// K6.2: K6.1 with warpgroups in turn.
#pragma once

#include "kernels/attention/k6_1_persistent.h"

namespace tilewright::kernels {

/// Entries attention_k6_2_{bf16,f16}_d{64,128}. Everything as in K6.1.
constexpr AttentionTile k6_2_tile(int head_dim) {
  return k6_1_tile(head_dim);
}

}  // namespace tilewright::kernels
