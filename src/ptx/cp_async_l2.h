// Copies of 16 bytes that bring what is around their source into the second cache.
#pragma once

#include <cstdint>

namespace tilewright::ptx {

/// Starts to copy 16 bytes past the L1 cache. The 256 bytes around the source, aligned to that,
/// come into the L2 cache.
__device__ inline void cp_async_cg_l2_256_shared_global_16(std::uint32_t destination,
                                                           const void* source) {
  asm volatile("cp.async.cg.shared.global.L2::256B [%0], [%1], 16;" ::"r"(destination),
               "l"(__cvta_generic_to_global(source))
               : "memory");
}

}  // namespace tilewright::ptx
