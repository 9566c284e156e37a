// What the L2 cache shall do with lines after an access. PTX ISA: "createpolicy".
#pragma once

#include <cstdint>

namespace tilewright::ptx {

/// Read once: the first to leave.
__device__ inline std::uint64_t createpolicy_fractional_l2_evict_first() {
  std::uint64_t policy;
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}

/// Read by many: the last to leave.
__device__ inline std::uint64_t createpolicy_fractional_l2_evict_last() {
  std::uint64_t policy;
  asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}

}  // namespace tilewright::ptx
