// A result on its way from an accumulator in Tensor Memory to global memory.
//
// Four warps; thread t of warp w has row 32w + t of the CTA's 128. Columns go in runs of 64: loaded
// from Tensor Memory, converted in registers (a thread has all 16 elements that share a scale),
// staged in shared memory, two runs a warp in flight.
#pragma once

#include "arch/smem_descriptor.h"
#include "kernels/linear/block_scaled/stages.h"
#include "ptx/bulk_copy.h"
#include "ptx/bulk_tensor_copy.h"
#include "ptx/convert_sm100.h"
#include "ptx/tcgen05_ld_st.h"
#include "tile/element.h"
#include "tile/element_chunk.h"
#include "tile/tensor_memory.h"

#include <cstdint>

namespace tilewright::tile {

/// The named barrier of the warps that store; number 0 is that of the CTA.
inline constexpr int kStoringBarrier = 1;

inline constexpr int kRun = kernels::kBlockScaledStoreColumns;
/// A warp's part of a run: where it lies in the result.
struct RunAt {
  std::int32_t row;       ///< of the warp's first lane
  std::int32_t column;    ///< the first
  std::uint32_t staging;  ///< address of the warp's buffer for the run
};

/// Stages rows as bf16, 128 bytes each, swizzled: 8 lanes at a time hit all 32 banks.
struct Bf16Output {
  static constexpr int kRowBytes = kRun * 2;
  static constexpr bool kHasScales = false;

  static __device__ void write_run(const BlockScaledGemmParams& params, float (&x)[kRun],
                                   const RunAt& at) {
    const std::uint32_t lane = threadIdx.x % 32;
    if (params.has_d_map != 0) {
#pragma unroll
      for (int i = 0; i < kRun / 8; ++i) {
        const std::uint32_t to =
            arch::swizzle_address(arch::SmemSwizzle::k128B, at.staging + lane * kRowBytes + i * 16);
        *static_cast<uint4*>(__cvta_shared_to_generic(to)) = pack_chunk<Bf16>(&x[i * 8], 1.0f);
      }
      return;
    }
    const std::int32_t row = at.row + static_cast<std::int32_t>(lane);
    if (row >= params.m) return;
    auto* to = reinterpret_cast<std::uint16_t*>(params.d + row * params.d_row_bytes) + at.column;
#pragma unroll
    for (int i = 0; i < kRun; ++i) {
      if (at.column + i < params.n) to[i] = static_cast<std::uint16_t>(Bf16::pack(x[i], 0.0f));
    }
  }
};

/// Elements outside of the result count as zeros, as does what stands in rows of padding.
__device__ inline void clear_outside(const BlockScaledGemmParams& params, float (&x)[kRun],
                                     std::int32_t row, std::int32_t column) {
  if (row < params.m && column + kRun <= params.n) return;
#pragma unroll
  for (int i = 0; i < kRun; ++i) {
    if (row >= params.m || column + i >= params.n) x[i] = 0.0f;
  }
}

/// What each of the four warps does with runs. One of the result is made of `Fold` of the product.
template <BlockScaledConfig C, class Output, int Fold>
struct BlockScaledResults {
  using Columns = BlockScaledColumns<C>;
  static constexpr int kFold = Fold;
  /// Runs of the result.
  static constexpr int kRuns = C.tile.n / (kFold * kRun);
  static_assert(kFold == 1 || (kFold == 2 && C.tile.n % (kFold * kRun) == 0));
  /// After so many runs the products of the tile after next, or with shared columns the next, may
  /// begin.
  static constexpr int kRunsToRelease =
      Columns::kShared == 0 ? kRuns : Columns::kShared / (kFold * kRun);
  static constexpr int kWarpBytes = 32 * Output::kRowBytes;  // of a run
  static constexpr int kRunBuffers = 2;
  static_assert(4 * kRunBuffers * kWarpBytes <= BlockScaledConfig::kStagingBytes);

  const BlockScaledGemmParams& params;
  BlockScaledShared<C>& shared;
  std::uint32_t tmem, rank, warp;
  RingPosition<2> accumulator;
  std::uint32_t next_buffer = 0;

  __device__ std::uint32_t lane() const { return threadIdx.x % 32; }
  __device__ std::uint32_t staging() const { return ptx::shared_address(shared.staging); }

  /// alpha times 64 columns of this thread's row; zeros if there was nothing to multiply.
  template <bool HasProduct>
  __device__ void load(float (&x)[kRun], int run) const {
    if constexpr (!HasProduct) {
#pragma unroll
      for (float& value : x) value = 0.0f;
      return;
    }
    ptx::tcgen05_ld_32x32b<kRun>(
        x, own_lanes(tmem) + Columns::accumulator(accumulator.stage) + run * kRun);
    ptx::tcgen05_wait_ld_sync_aligned();
    ptx::tcgen05_fence_operand(x);
#pragma unroll
    for (float& value : x) value *= params.alpha;
  }

  /// The accumulator may be overwritten, as far as this warp is concerned.
  __device__ void release_accumulator() const {
    ptx::tcgen05_fence_before_thread_sync();
    __syncwarp();
    if (lane() != 0) return;
    const std::uint32_t empty =
        ptx::shared_address(shared.accumulators.empty) + accumulator.stage * 8;
    if constexpr (C.tile.ctas == 2) {
      ptx::mbarrier_arrive_cluster(in_leader<C>(empty, rank));
    } else {
      ptx::mbarrier_arrive(empty);
    }
  }

  /// Waits until the buffer that comes next has been read by the copy of two runs ago.
  __device__ std::uint32_t take_buffer() {
    if (lane() == 0) ptx::cp_async_bulk_wait_group_read<kRunBuffers - 1>();
    __syncwarp();
    const std::uint32_t buffer = staging() + (warp * kRunBuffers + next_buffer) * kWarpBytes;
    next_buffer ^= 1;
    return buffer;
  }

  /// Hands the run to a tensor copy, which leaves out what is outside of the result.
  __device__ void store(const RunAt& at) const {
    ptx::fence_proxy_async_shared_cta();
    __syncwarp();
    if (lane() != 0) return;
    if (params.has_d_map != 0 && at.row < params.m && at.column < params.n) {
      const std::int32_t x = Output::kHasScales ? at.column / 2 : at.column;
      ptx::cp_async_bulk_tensor_2d_global_shared(params.d_map, x, at.row, at.staging);
    }
    ptx::cp_async_bulk_commit_group();
  }
};

}  // namespace tilewright::tile
