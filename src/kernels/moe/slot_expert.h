// What the ids of a call say about a slot, and what is wrong with them.
#pragma once

#include "kernels/moe/permute.h"

namespace tilewright::kernels {

enum class SlotFlaw { kNone, kOutOfRange, kDuplicated };

/// The expert of a slot, or -1.
__device__ inline std::int32_t expert_of_slot(const std::int32_t* ids, std::int32_t topk,
                                              std::int32_t experts, std::int32_t slot,
                                              SlotFlaw& flaw) {
  flaw = SlotFlaw::kNone;
  const std::int32_t id = ids[slot];
  if (id == -1) return -1;
  if (id < 0 || id >= experts) {
    flaw = SlotFlaw::kOutOfRange;
    return -1;
  }
  for (std::int32_t other = slot - slot % topk; other < slot; ++other) {
    if (ids[other] == id) {
      flaw = SlotFlaw::kDuplicated;
      return -1;
    }
  }
  return id;
}

__device__ inline void report_flaw(MoeStatus& status, SlotFlaw flaw, std::int32_t slot) {
  if (flaw == SlotFlaw::kNone) return;
  const bool is_duplicated = flaw == SlotFlaw::kDuplicated;
  atomicAdd(is_duplicated ? &status.num_duplicated : &status.num_out_of_range, 1u);
  atomicMin(is_duplicated ? &status.first_duplicated : &status.first_out_of_range,
            static_cast<std::uint32_t>(slot));
}

}  // namespace tilewright::kernels
