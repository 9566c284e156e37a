// Ordering of warpgroup MMAs. PTX ISA: "wgmma.fence", "wgmma.commit_group", "wgmma.wait_group".
#pragma once

#include <cstdint>

namespace tilewright::ptx {

/// Orders earlier register accesses of the warpgroup before the registers of the next wgmma. Needed
/// before the first wgmma and whenever accumulators or A fragments were touched in between.
__device__ inline void wgmma_fence_sync_aligned() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

/// Closes a group of all wgmma issued since the last one.
__device__ inline void wgmma_commit_group_sync_aligned() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/// Waits until at most Pending groups are in flight; the registers of the finished ones may be
/// read.
template <int Pending>
__device__ inline void wgmma_wait_group_sync_aligned() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
}

/// No instruction: keeps the compiler from moving uses of these registers over a wait or a fence,
/// which it cannot know to concern them.
template <int Count>
__device__ inline void wgmma_fence_operand(float (&d)[Count]) {
#pragma unroll
  for (int i = 0; i < Count; ++i) asm volatile("" : "+f"(d[i])::"memory");
}
/// The same for a fragment of A: what makes it stays before, so that the next fence covers it.
template <int Count>
__device__ inline void wgmma_fence_operand(std::uint32_t (&a)[Count]) {
#pragma unroll
  for (int i = 0; i < Count; ++i) asm volatile("" : "+r"(a[i])::"memory");
}

}  // namespace tilewright::ptx
