// Ordering of what tcgen05 does by itself. PTX ISA: "tcgen05.wait", "tcgen05.commit",
// "tcgen05.fence", "Memory Consistency Model" of the 5th generation tensor core.
//
// Loads, stores, copies and products are asynchronous. The chain from one to another, in another
// thread: [ld or st, wait] or [mma or cp, commit to an mbarrier, wait for it]; fence before and
// after the barrier that both threads take part in (commit brings the one before along).
#pragma once

#include <cstdint>

namespace tilewright::ptx {

/// Waits until all of this thread's tcgen05.ld are done: their registers may be read, and what they
/// read may be overwritten. All lanes of a warp together.
__device__ inline void tcgen05_wait_ld_sync_aligned() {
  asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
}

/// The same for tcgen05.st: what they wrote may be read.
__device__ inline void tcgen05_wait_st_sync_aligned() {
  asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory");
}

/// No instruction: keeps the compiler from moving uses of loaded registers before the wait.
template <int Count>
__device__ inline void tcgen05_fence_operand(float (&registers)[Count]) {
#pragma unroll
  for (int i = 0; i < Count; ++i) asm volatile("" : "+f"(registers[i])::"memory");
}

/// Earlier tcgen05 of this thread before its next arrival at a barrier.
__device__ inline void tcgen05_fence_before_thread_sync() {
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
}

/// Later tcgen05 of this thread after the barrier it waited at.
__device__ inline void tcgen05_fence_after_thread_sync() {
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
}

/// An arrival at the mbarrier when all earlier mma and cp of this thread are done: what they read
/// may be overwritten and, after fence::after_thread_sync, what they wrote be read.
template <int CtaGroup = 1>
__device__ inline void tcgen05_commit(std::uint32_t barrier) {
  static_assert(CtaGroup == 1 || CtaGroup == 2);
  asm volatile(
      "tcgen05.commit.cta_group::%1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(barrier),
      "n"(CtaGroup)
      : "memory");
}

/// The same, at the barrier of that place in every CTA of the cluster whose bit is set.
template <int CtaGroup = 1>
__device__ inline void tcgen05_commit_multicast(std::uint32_t barrier, std::uint16_t cta_mask) {
  static_assert(CtaGroup == 1 || CtaGroup == 2);
  asm volatile(
      "tcgen05.commit.cta_group::%2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 "
      "[%0], %1;" ::"r"(barrier),
      "h"(cta_mask), "n"(CtaGroup)
      : "memory");
}

}  // namespace tilewright::ptx
