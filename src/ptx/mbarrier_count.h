// Mbarriers: arrivals and bytes apart from each other, and asking without waiting. PTX ISA:
// "mbarrier.expect_tx", "mbarrier.arrive", "mbarrier.test_wait".
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

/// True once the phase of the given parity is complete; never suspends the thread. Acquire at CTA
/// scope.
__device__ inline bool mbarrier_test_wait_parity(std::uint32_t barrier, std::uint32_t parity) {
  std::uint32_t done;
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;\n"
      "selp.u32 %0, 1, 0, p;\n"
      "}\n"
      : "=r"(done)
      : "r"(barrier), "r"(parity)
      : "memory");
  return done != 0;
}

}  // namespace tilewright::ptx
