// Few tokens: weights are the rows of the product and tokens its columns, so that an instruction
// has work for all of its 128 rows, and K is divided among the CTAs of a cluster, so that enough of
// them read weights. The CTAs exchange their sums through shared memory: each adds up the columns
// c with c % splits == its rank, always in the order of the splits.
#pragma once

#include "kernels/linear/block_scaled/cta.h"
#include "kernels/linear/block_scaled/loader.h"
#include "kernels/linear/block_scaled/multiplier.h"
#include "tile/element.h"
#include "tile/tensor_memory.h"

#include <cstdint>

namespace tilewright::tile {

/// Sums on their way: a slot for each CTA of the cluster, [own columns][128 rows] f32.
template <BlockScaledConfig C>
struct FewTokensEpilogue {
  static constexpr int kRows = 128, kChunk = 16;
  static_assert(C.tile.n * kRows * 4 <= BlockScaledConfig::kStagingBytes);

  const BlockScaledGemmParams& params;
  BlockScaledShared<C>& shared;
  std::uint32_t tmem;
  std::uint32_t splits = ptx::cluster_nctarank(), split = ptx::cluster_ctarank();

  __device__ float* slot(std::uint32_t of) const {
    return reinterpret_cast<float*>(shared.staging) + of * (params.tile_columns / splits) * kRows;
  }

  /// Hands this thread's sum of a column to the CTA that adds it up.
  __device__ void send(std::uint32_t column, float sum) const {
    const std::uint32_t shift = 31 - __clz(splits);
    float* const to = slot(split) + (column >> shift) * kRows + threadIdx.x;
    *ptx::mapa(to, column & (splits - 1)) = sum;
  }

  /// The same of all columns in the accumulator.
  __device__ void send() const {
    ptx::mbarrier_wait_parity(ptx::shared_address(shared.accumulators.full), 0);
    ptx::tcgen05_fence_after_thread_sync();
#pragma unroll 1
    for (int first = 0; first < params.tile_columns; first += kChunk) {
      float x[kChunk];
      ptx::tcgen05_ld_32x32b<kChunk>(x, own_lanes(tmem) + first);
      ptx::tcgen05_wait_ld_sync_aligned();
      ptx::tcgen05_fence_operand(x);
#pragma unroll
      for (int i = 0; i < kChunk; ++i) send(first + i, x[i]);
    }
    ptx::tcgen05_fence_before_thread_sync();
  }

  /// Adds up and stores: d[token][row], two rows a thread.
  __device__ void finish(const BlockScaledTileAt& tile) const {
    const std::uint32_t columns = params.tile_columns / splits;
    for (std::uint32_t i = threadIdx.x; i < columns * (kRows / 2); i += kRows) {
      const std::uint32_t own = i / (kRows / 2), pair = i % (kRows / 2);
      const auto row = static_cast<std::int32_t>(tile.m * kRows + 2 * pair);
      const auto token = static_cast<std::int32_t>(tile.n * C.tile.n + own * splits + split);
      if (row >= params.m || token >= params.n) continue;
      float2 sum = make_float2(0, 0);
      for (std::uint32_t from = 0; from < splits; ++from) {
        const float2 part = *reinterpret_cast<const float2*>(slot(from) + own * kRows + 2 * pair);
        sum.x += part.x;
        sum.y += part.y;
      }
      store(sum, row, token);
    }
  }

  __device__ void store(float2 sum, std::int32_t row, std::int32_t token) const {
    sum.x *= params.alpha;
    sum.y *= params.alpha;
    if (params.bias != nullptr) {
      sum.x += params.bias[row];
      sum.y += params.bias[row + 1];
    }
    std::uint8_t* const to = params.d + token * params.d_row_bytes;
    if (params.is_d_f32 != 0) {
      *reinterpret_cast<float2*>(to + 4 * row) = sum;
    } else {
      *reinterpret_cast<std::uint32_t*>(to + 2 * row) = Bf16::pack(sum.x, sum.y);
    }
  }
};

template <BlockScaledConfig C>
__device__ void few_tokens_gemm(const BlockScaledGemmParams& params) {
  static_assert(C.is_split && C.tile.cluster() == 1 && !C.has_scales());
  extern __shared__ __align__(1024) std::uint8_t dynamic[];
  auto& shared = *reinterpret_cast<BlockScaledShared<C>*>(dynamic);
  static_assert(sizeof(shared) <= C.shared_bytes());
  const std::uint32_t warp = ptx::uniform(threadIdx.x / 32);
  prepare<C>(params, shared, warp);
  const std::uint32_t tmem = shared.tmem;
  const FewTokensEpilogue<C> epilogue = {params, shared, tmem};
  if (warp == kLoadingWarp) {
    if (ptx::elect_sync()) BlockScaledLoader<C>{params, shared, 0}.run();
    __syncwarp();
  } else if (warp == kMultiplyingWarp) {
    BlockScaledMultiplier<C>{params, shared, ptx::elect_sync(), tmem, 0}.run();
  } else {
    epilogue.send();
  }
  ptx::tcgen05_fence_before_thread_sync();
  ptx::cluster_sync();
  ptx::tcgen05_fence_after_thread_sync();
  if (warp == kMultiplyingWarp) ptx::tcgen05_dealloc<1>(tmem, BlockScaledColumns<C>::kColumns);
  if (warp < kMultiplyingWarp)
    epilogue.finish(BlockScaledTileAt(params, static_cast<std::int32_t>(ptx::clusterid_x())));
}

}  // namespace tilewright::tile
