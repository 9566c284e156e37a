// Stores to shared memory of a cluster that tell a barrier when they are there. PTX ISA:
// "st.async".
#pragma once

#include <cstdint>

namespace tilewright::ptx {

/// Writes to the shared memory of any CTA of the cluster, and announces the bytes to a barrier
/// there (mapa_shared_cluster) when they are visible. Asynchronous; whoever waits for the barrier
/// sees them, and nobody has to meet. In clusters of two CTAs or more.
__device__ inline void st_async_shared_cluster_f32(std::uint32_t address, float x,
                                                   std::uint32_t barrier) {
  asm volatile(
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.f32 [%0], %1, [%2];" ::"r"(address),
      "f"(x), "r"(barrier)
      : "memory");
}

/// The same for 8 and 16 aligned bytes.
__device__ inline void st_async_shared_cluster_v2_f32(std::uint32_t address, float2 x,
                                                      std::uint32_t barrier) {
  asm volatile(
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%0], {%1, %2}, [%3];" ::"r"(
          address),
      "f"(x.x), "f"(x.y), "r"(barrier)
      : "memory");
}
__device__ inline void st_async_shared_cluster_v4_f32(std::uint32_t address, float4 x,
                                                      std::uint32_t barrier) {
  asm volatile(
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, "
      "[%5];" ::"r"(address),
      "f"(x.x), "f"(x.y), "f"(x.z), "f"(x.w), "r"(barrier)
      : "memory");
}

}  // namespace tilewright::ptx
