// The variant of K7 that serves a problem.
#pragma once

#include "kernels/attention/k7/k7_fp8.h"

namespace tilewright::kernels {

/// nullptr if there is none. Without block scales any variant will do, so one that has none is
/// preferred where it exists.
constexpr const K7Variant* find_k7_variant(int head_dim, Fp8Values values, bool needs_block_scales,
                                           Fp8Sums sums, bool is_short = false) {
  const K7Variant* found = nullptr;
  for (const K7Variant& v : kK7Variants) {
    if (v.head_dim != head_dim || v.values != values || v.sums != sums) continue;
    if (v.is_short != is_short) continue;
    if (needs_block_scales && !v.has_block_scales) continue;
    if (found == nullptr || (found->has_block_scales && !v.has_block_scales)) found = &v;
  }
  return found;
}

}  // namespace tilewright::kernels
