// Bulk copies of contiguous bytes. PTX ISA: "cp.async.bulk".
#pragma once

#include <cstdint>

namespace tilewright::ptx {

/// Copies `bytes` (a multiple of 16) from shared to global memory, both 16-byte aligned.
/// Asynchronous, by the async proxy (fence.proxy.async by the writers); belongs to the bulk group
/// that this thread commits next.
__device__ inline void cp_async_bulk_global_shared(void* destination, std::uint32_t source,
                                                   std::uint32_t bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(
                   __cvta_generic_to_global(destination)),
               "r"(source), "r"(bytes)
               : "memory");
}

}  // namespace tilewright::ptx
