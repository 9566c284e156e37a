// What is asked for ahead of its use: lines, alone or beside a copy, and registers. PTX ISA:
// "prefetch", "cp.async", "ld.global.nc".
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

/// 16 aligned bytes that no thread writes meanwhile. Read here: a plain load moves to its use.
__device__ inline uint4 ld_global_nc_v4_u32(const void* from) {
  uint4 words;
  asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
               : "l"(__cvta_generic_to_global(from)));
  return words;
}

}  // namespace tilewright::ptx
