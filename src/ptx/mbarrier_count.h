// Arrivals and bytes of mbarriers apart from each other. PTX ISA: "mbarrier.expect_tx",
// "mbarrier.arrive".
#pragma once

#include <cstdint>

namespace tilewright::ptx {

/// Adds to the bytes the phase waits for. It arrives nowhere: the caller knows of an arrival behind
/// this without which the phase does not complete.
__device__ inline void mbarrier_expect_tx(std::uint32_t barrier, std::uint32_t bytes) {
  asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}

/// Arrives `count` times. Release at CTA scope.
__device__ inline void mbarrier_arrive(std::uint32_t barrier, std::uint32_t count) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(count)
               : "memory");
}

}  // namespace tilewright::ptx
