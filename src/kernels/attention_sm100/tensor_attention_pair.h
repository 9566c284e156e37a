// Attention by pairs of CTAs on Blackwell: the first CTA of a cluster of two multiplies for both.
//
// With 64 rows a CTA (M = 128 of the pair) the tensor core puts the second half of the columns of
// its result into lanes 64 to 127: lanes r and r + 64 have a row between them.
#pragma once

#include "kernels/attention_sm100/boxes_16bit.h"
#include "ptx/bulk_tensor_copy_pair.h"
#include "ptx/cluster.h"

#include <cstdint>

namespace tilewright::tile {

inline constexpr int kPairCtas = 2;
inline constexpr int kHalfRows = kTensorRows / 2;  ///< of a CTA, where a row has two lanes
inline constexpr int kPairWarps = kPairCtas * kRowThreads / 32;  ///< of both that have rows

/// The address in the CTA that multiplies.
__device__ inline std::uint32_t in_leader(std::uint32_t address) {
  return ptx::mapa_shared_cluster(address, 0);
}

/// The multiplying thread: arrives in both CTAs when its products so far are done.
__device__ inline void commit_to_pair(std::uint64_t& barrier) {
  ptx::tcgen05_commit_multicast<kPairCtas>(ptx::shared_address(&barrier), 0b11);
}

/// All lanes of a warp are done with what the multiplying thread waits for at `barrier`.
__device__ inline void hand_over_to_leader(std::uint64_t& barrier) {
  ptx::tcgen05_fence_before_thread_sync();
  __syncwarp();
  if (threadIdx.x % 32 == 0) ptx::mbarrier_arrive_cluster(in_leader(ptx::shared_address(&barrier)));
}

/// Both threads of a row get each other's number; all 128 together, rounds one after the other.
__device__ inline float exchange_in_row(float (&exchanged)[2][kRowThreads], std::int32_t round,
                                        float x) {
  const std::uint32_t lane = threadIdx.x % kRowThreads;
  exchanged[round & 1][lane] = x;
  ptx::bar_sync<kRowBarrier, kRowThreads>();
  return exchanged[round & 1][lane ^ kHalfRows];
}

/// The A operand of 64 rows in shared memory, boxes of 64 keys: this thread's keys of its row.
/// Neighbouring rows meet in different banks.
template <class Element, int Chunks>
__device__ void store_operand_of_halves(std::uint8_t* boxes, const float (&p)[Chunks][32]) {
  constexpr int kBytes = kHalfRows * kBoxRowBytes;
  const std::uint32_t first = threadIdx.x % kRowThreads / kHalfRows * Chunks * 32;
#pragma unroll
  for (int i = 0; i < Chunks * 4; ++i) {
    *line_chunk<uint4>(boxes + first / kBoxElems * kBytes, threadIdx.x % kHalfRows,
                       first % kBoxElems / 8 + i) = pack_chunk<Element>(&p[i / 4][i % 4 * 8], 1.0f);
  }
  ptx::fence_proxy_async_shared_cta();
}

/// The first boxes of queries as an A operand in Tensor Memory, 32 columns each, every row in both
/// of its lanes: there they do not cost the bandwidth of shared memory for every tile of keys.
template <int HeldBoxes, int Boxes>
__device__ void hold_queries(std::uint8_t (&q)[Boxes][kHalfRows * kBoxRowBytes],
                             std::uint32_t address) {
#pragma unroll 1
  for (int box = 0; box < HeldBoxes; ++box) {
    std::uint32_t cells[32];
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const uint4 chunk = *line_chunk<uint4>(q[box], threadIdx.x % kHalfRows, i);
      cells[i * 4] = chunk.x;
      cells[i * 4 + 1] = chunk.y;
      cells[i * 4 + 2] = chunk.z;
      cells[i * 4 + 3] = chunk.w;
    }
    ptx::tcgen05_st_32x32b(address + box * 32, cells);
  }
  ptx::tcgen05_wait_st_sync_aligned();
}

}  // namespace tilewright::tile
