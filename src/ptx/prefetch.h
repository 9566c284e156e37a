// Lines asked for ahead of their use. PTX ISA: "prefetch".
#pragma once

namespace tilewright::ptx {

/// Asks for the line of 128 bytes around `at` to be brought to the L2 cache. Nothing is read:
/// a later read finds what was last written, before or after this.
__device__ inline void prefetch_global_L2(const void* at) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(__cvta_generic_to_global(at)));
}

}  // namespace tilewright::ptx
