// Lines asked for ahead of their use, alone or beside a copy. PTX ISA: "prefetch", "cp.async".
#pragma once

#include <cstdint>

namespace tilewright::ptx {

/// Asks for the line of 128 bytes around `at` to be brought to the L2 cache. Nothing is read:
/// a later read finds what was last written, before or after this.
__device__ inline void prefetch_global_L2(const void* at) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(__cvta_generic_to_global(at)));
}

/// Starts to copy 16 bytes past the L1 cache. The 256 bytes around the source, aligned to that,
/// come into the L2 cache.
__device__ inline void cp_async_cg_l2_256_shared_global_16(std::uint32_t destination,
                                                           const void* source) {
  asm volatile("cp.async.cg.shared.global.L2::256B [%0], [%1], 16;" ::"r"(destination),
               "l"(__cvta_generic_to_global(source))
               : "memory");
}

}  // namespace tilewright::ptx
