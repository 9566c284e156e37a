// Columns of Tensor Memory. PTX ISA: "tcgen05.alloc, tcgen05.dealloc,
// tcgen05.relinquish_alloc_permit". Layouts of what lies there: arch/fragments/tmem.h.
//
// All lanes of one warp together; for pairs of CTAs (CtaGroup 2) one warp of each. Every tcgen05
// instruction of a kernel has the same CtaGroup.
#pragma once

#include <cstdint>

namespace tilewright::ptx {

/// Takes `columns` (32, 64, 128, 256 or 512) columns of all 128 lanes, waiting until so many are
/// free, and writes their address to shared memory. An ordinary store: a barrier shows it to other
/// warps. The columns hold whatever was left there.
template <int CtaGroup = 1>
__device__ inline void tcgen05_alloc(std::uint32_t destination, std::uint32_t columns) {
  static_assert(CtaGroup == 1 || CtaGroup == 2);
  asm volatile(
      "tcgen05.alloc.cta_group::%2.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(destination),
      "r"(columns), "n"(CtaGroup)
      : "memory");
}

/// Gives them back; all that was allocated must be, before the CTA ends.
template <int CtaGroup = 1>
__device__ inline void tcgen05_dealloc(std::uint32_t address, std::uint32_t columns) {
  static_assert(CtaGroup == 1 || CtaGroup == 2);
  asm volatile("tcgen05.dealloc.cta_group::%2.sync.aligned.b32 %0, %1;" ::"r"(address),
               "r"(columns), "n"(CtaGroup));
}

/// This CTA allocates no more: another one of the same SM may.
template <int CtaGroup = 1>
__device__ inline void tcgen05_relinquish_alloc_permit() {
  static_assert(CtaGroup == 1 || CtaGroup == 2);
  asm volatile("tcgen05.relinquish_alloc_permit.cta_group::%0.sync.aligned;" ::"n"(CtaGroup));
}

}  // namespace tilewright::ptx
