// Instructions on whole predicate masks.
#pragma once

#include "sim/insn/lanes.h"

#include <cstdint>

namespace tilewright::sim {

/// op[0] = kOp(op[1], ...) on masks of 32 lanes.
template <auto kOp, int kNumSources>
Step on_masks(Warp& warp, const Insn& insn, std::uint32_t active) {
  std::uint32_t value = 0;
  if constexpr (kNumSources == 1) {
    value = kOp(warp.predicate(insn.op[1]));
  } else {
    value = kOp(warp.predicate(insn.op[1]), warp.predicate(insn.op[2]));
  }
  warp.set_predicate(insn.op[0], active, value);
  return Step::kNext;
}

}  // namespace tilewright::sim
