// Asking mbarriers without waiting. PTX ISA: "mbarrier.test_wait".
#pragma once

#include <cstdint>

namespace tilewright::ptx {

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
