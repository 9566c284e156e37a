// Tensor Memory of a CTA with roles: which warp allocates it, and how a thread reaches its row.
#pragma once

#include "arch/tensor_memory_index.h"
#include "ptx/address.h"
#include "ptx/cluster.h"
#include "ptx/fence.h"
#include "ptx/mbarrier.h"
#include "ptx/tcgen05_alloc.h"
#include "ptx/tcgen05_ld_st.h"
#include "ptx/tcgen05_sync.h"
#include "ptx/warp_roles.h"

#include <cstdint>

namespace tilewright::tile {

/// All threads of the CTA, or of the pair of CTAs.
template <int Ctas>
__device__ void sync_ctas() {
  if constexpr (Ctas == 2) {
    ptx::cluster_sync();
  } else {
    __syncthreads();
  }
}

/// Beginning of a kernel, all threads (of both CTAs of a pair): warp 0 takes the columns, thread 32
/// sets up the barriers. Returns the address of the first column, lane 0.
template <int Columns, int Ctas = 1, class Initialise>
__device__ std::uint32_t open_tensor_memory(std::uint32_t& slot, Initialise&& initialise) {
  if (threadIdx.x < 32) {
    ptx::tcgen05_alloc<Ctas>(ptx::shared_address(&slot), Columns);
    ptx::tcgen05_relinquish_alloc_permit<Ctas>();
  } else if (threadIdx.x == 32) {
    initialise();
    ptx::fence_mbarrier_init_release_cluster();
  }
  ptx::tcgen05_fence_before_thread_sync();
  sync_ctas<Ctas>();
  ptx::tcgen05_fence_after_thread_sync();
  return ptx::uniform(slot);
}

/// The end, all threads, none of which has anything under way there.
template <int Columns, int Ctas = 1>
__device__ void close_tensor_memory(std::uint32_t address) {
  ptx::tcgen05_fence_before_thread_sync();
  sync_ctas<Ctas>();
  ptx::tcgen05_fence_after_thread_sync();
  if (threadIdx.x < 32) ptx::tcgen05_dealloc<Ctas>(address, Columns);
}

/// The address of a column for the warps that own the 128 lanes between them: with lane = row,
/// thread t of warp w has row 32 w + t.
__device__ inline std::uint32_t own_lanes(std::uint32_t address) {
  return address + arch::tensor_cell(threadIdx.x / 32 % 4 * 32, 0);
}

/// Waits for what tensor-core instructions arrive at, or other users of Tensor Memory.
__device__ inline void wait_for_tensor_memory(std::uint32_t barrier, std::uint32_t parity) {
  ptx::mbarrier_wait_parity(barrier, parity);
  ptx::tcgen05_fence_after_thread_sync();
}

/// The same where threads or commits of the other CTA of a pair arrive too.
__device__ inline void wait_for_pair(std::uint32_t barrier, std::uint32_t parity) {
  ptx::mbarrier_wait_parity_cluster(barrier, parity);
  ptx::tcgen05_fence_after_thread_sync();
}

/// A thread's loads and stores of Tensor Memory are done; arrives.
__device__ inline void hand_over_tensor_memory(std::uint32_t barrier) {
  ptx::tcgen05_fence_before_thread_sync();
  ptx::mbarrier_arrive(barrier);
}

/// Columns of the thread's row: Chunks loads of 32 in flight together, one wait.
template <int Chunks>
__device__ void load_row(float (&x)[Chunks][32], std::uint32_t address) {
#pragma unroll
  for (int i = 0; i < Chunks; ++i) ptx::tcgen05_ld_32x32b(x[i], address + i * 32);
  ptx::tcgen05_wait_ld_sync_aligned();
#pragma unroll
  for (int i = 0; i < Chunks; ++i) ptx::tcgen05_fence_operand(x[i]);
}

/// Multiplies Columns columns of the thread's row.
template <int Columns>
__device__ void scale_row(std::uint32_t address, float factor) {
#pragma unroll 1
  for (int column = 0; column < Columns; column += 32) {
    float x[1][32];
    load_row(x, address + column);
    std::uint32_t words[32];
#pragma unroll
    for (int i = 0; i < 32; ++i) words[i] = __float_as_uint(x[0][i] * factor);
    ptx::tcgen05_st_32x32b(address + column, words);
  }
}

}  // namespace tilewright::tile
