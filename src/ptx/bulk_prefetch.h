// Runs of memory asked for ahead of their use. PTX ISA: "cp.async.bulk.prefetch".
#pragma once

#include <cstdint>

namespace tilewright::ptx {

/// Asks for `bytes` from `at` on, both multiples of 16, to be brought to the L2 cache. Nothing is
/// read: a later read finds what was last written, before or after this.
__device__ inline void cp_async_bulk_prefetch_L2_global(const void* at, std::uint32_t bytes) {
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(__cvta_generic_to_global(at)),
               "r"(bytes));
}

}  // namespace tilewright::ptx
