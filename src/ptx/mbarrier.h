// mbarriers: phases that complete when all arrivals and all expected bytes are in. PTX ISA:
// "mbarrier".
#pragma once

#include <cstdint>

namespace tilewright::ptx {

/// Phase 0 begins, `count` arrivals pending. Only one thread, before any use of the barrier; then
/// fence_mbarrier_init and a CTA barrier.
__device__ inline void mbarrier_init(std::uint32_t barrier, std::uint32_t count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}

/// Adds to the bytes the phase waits for, then arrives once. Release at CTA scope.
__device__ inline void mbarrier_arrive_expect_tx(std::uint32_t barrier, std::uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}

/// Arrives once. Release at CTA scope.
__device__ inline void mbarrier_arrive(std::uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

/// Arrives once at a barrier of any CTA of the cluster (mapa_shared_cluster). Release at cluster
/// scope.
__device__ inline void mbarrier_arrive_cluster(std::uint32_t remote_barrier) {
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(remote_barrier)
               : "memory");
}

/// The same with release at CTA scope only: for threads that have read what the other CTA will
/// overwrite, and written nothing. The release at cluster scope is two fences of the whole GPU.
__device__ inline void mbarrier_arrive_remote(std::uint32_t remote_barrier) {
  asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(remote_barrier) : "memory");
}

/// True once the phase of the given parity is complete; may suspend the thread for a while. Acquire
/// at CTA scope.
__device__ inline bool mbarrier_try_wait_parity(std::uint32_t barrier, std::uint32_t parity) {
  std::uint32_t done;
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
      "selp.u32 %0, 1, 0, p;\n"
      "}\n"
      : "=r"(done)
      : "r"(barrier), "r"(parity)
      : "memory");
  return done != 0;
}

/// The same, acquire at cluster scope: for phases that other CTAs arrive at.
__device__ inline bool mbarrier_try_wait_parity_cluster(std::uint32_t barrier,
                                                        std::uint32_t parity) {
  std::uint32_t done;
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n"
      "selp.u32 %0, 1, 0, p;\n"
      "}\n"
      : "=r"(done)
      : "r"(barrier), "r"(parity)
      : "memory");
  return done != 0;
}

/// Waits until the phase of the given parity is complete.
__device__ inline void mbarrier_wait_parity(std::uint32_t barrier, std::uint32_t parity) {
  while (!mbarrier_try_wait_parity(barrier, parity)) {
  }
}
__device__ inline void mbarrier_wait_parity_cluster(std::uint32_t barrier, std::uint32_t parity) {
  while (!mbarrier_try_wait_parity_cluster(barrier, parity)) {
  }
}

}  // namespace tilewright::ptx
