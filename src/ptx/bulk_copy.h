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

/// Copies `bytes` (a multiple of 16) from global to this CTA's shared memory, both 16-byte aligned,
/// under an L2 policy (cache_policy.h). Asynchronous, by the async proxy; the bytes are announced
/// to `barrier` (complete_tx) when they are visible.
__device__ inline void cp_async_bulk_shared_global(std::uint32_t destination, const void* source,
                                                   std::uint32_t bytes, std::uint32_t barrier,
                                                   std::uint64_t policy) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], "
      "[%1], %2, [%3], %4;" ::"r"(destination),
      "l"(__cvta_generic_to_global(source)), "r"(bytes), "r"(barrier), "l"(policy)
      : "memory");
}

/// The same without a policy.
__device__ inline void cp_async_bulk_shared_global(std::uint32_t destination, const void* source,
                                                   std::uint32_t bytes, std::uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, "
      "[%3];" ::"r"(destination),
      "l"(__cvta_generic_to_global(source)), "r"(bytes), "r"(barrier)
      : "memory");
}

/// Copies `bytes` (a multiple of 16) from this CTA's shared memory to that of a CTA of the cluster,
/// both 16-byte aligned; `remote_destination` and `remote_barrier` are of that CTA
/// (mapa_shared_cluster). Asynchronous, by the async proxy (fence.proxy.async by the writers); the
/// bytes are announced to the barrier when they are visible there.
__device__ inline void cp_async_bulk_shared_cluster_shared_cta(std::uint32_t remote_destination,
                                                               std::uint32_t source,
                                                               std::uint32_t bytes,
                                                               std::uint32_t remote_barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, "
      "[%3];" ::"r"(remote_destination),
      "r"(source), "r"(bytes), "r"(remote_barrier)
      : "memory");
}

}  // namespace tilewright::ptx
