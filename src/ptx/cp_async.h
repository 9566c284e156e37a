// Copies of 16 bytes from global to shared memory without a register. PTX ISA: "cp.async".
#pragma once

#include <cstdint>

namespace tilewright::ptx {

/// Copies the first `valid_bytes` (0 to 16) of 16 aligned bytes and zeroes the rest; with 0 the
/// source is not read. Asynchronous, by the generic proxy, and not ordered with anything until
/// cp_async_wait_group of the same thread; then a barrier shows the bytes to others.
__device__ inline void cp_async_cg_shared_global_16(std::uint32_t destination, const void* source,
                                                    std::uint32_t valid_bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(destination),
               "l"(__cvta_generic_to_global(source)), "r"(valid_bytes)
               : "memory");
}

/// The same of all 16 bytes.
__device__ inline void cp_async_cg_shared_global_16(std::uint32_t destination, const void* source) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(destination),
               "l"(__cvta_generic_to_global(source))
               : "memory");
}

/// The same for 4 bytes of which all or none are valid, through the L1 cache.
__device__ inline void cp_async_ca_shared_global_4(std::uint32_t destination, const void* source,
                                                   std::uint32_t valid_bytes) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(destination),
               "l"(__cvta_generic_to_global(source)), "r"(valid_bytes)
               : "memory");
}

/// The same for 8 bytes.
__device__ inline void cp_async_ca_shared_global_8(std::uint32_t destination, const void* source,
                                                   std::uint32_t valid_bytes) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(destination),
               "l"(__cvta_generic_to_global(source)), "r"(valid_bytes)
               : "memory");
}

/// Arrives at an mbarrier when all earlier copies of this thread are done; the arrival is one of
/// the barrier's expected count.
__device__ inline void cp_async_mbarrier_arrive_noinc(std::uint32_t barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
}

/// Closes a group of all copies of this thread since the last one; it may be empty.
__device__ inline void cp_async_commit_group() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

/// Waits until at most Pending of this thread's groups are in flight.
template <int Pending>
__device__ inline void cp_async_wait_group() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
}

}  // namespace tilewright::ptx
