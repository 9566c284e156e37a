// A GEMM of 8-bit operands whose scales are fp32: the tensor core's sum of a step goes to fp32 sums
// in registers, times the scales of that step. sm100_e4m3_gemm.h has the contract.
#pragma once

#include "kernels/linear/block_scaled/cta.h"
#include "kernels/linear/block_scaled/dense_output.h"
#include "kernels/linear/block_scaled/few_tokens.h"
#include "kernels/linear/block_scaled/loader.h"
#include "kernels/linear/block_scaled/multiplier.h"
#include "kernels/linear/block_scaled/sm100_e4m3_gemm.h"

#include <cstdint>

namespace tilewright::tile {

using kernels::E4m3GemmParams;

/// One accumulator a step, in turns.
template <BlockScaledConfig C>
struct PromotedMultiplier : BlockScaledMultiplier<C> {
  using Gemm = BlockScaledMultiplier<C>;

  __device__ void run() {
    const auto [begin, end] = steps_of<C>(Gemm::params);
    const Ring<2> accumulators(Gemm::shared.accumulators);
    for_each_tile<C>(Gemm::params, [&, begin = begin, end = end](const BlockScaledTileAt&) {
      for (std::int32_t step = begin; step < end; ++step) {
        Gemm::wait_for_accumulator();
        Gemm::multiply_step(step, step, 0);
        if (Gemm::is_issuing)
          Gemm::commit(accumulators.full(Gemm::accumulator), 0b11u << Gemm::rank);
        __syncwarp();
        Gemm::accumulator.advance();
      }
    });
  }
};

/// The side of the warps that read accumulators.
template <BlockScaledConfig C>
struct PromotedSums {
  using Columns = BlockScaledColumns<C>;

  const E4m3GemmParams& params;
  BlockScaledShared<C>& shared;
  std::uint32_t tmem, rank;
  RingPosition<2> accumulator;

  /// The address of this thread's row in the sums of the next step, when they are there.
  __device__ std::uint32_t wait_for_step() const {
    wait_pair<C>(Ring<2>(shared.accumulators).full(accumulator), accumulator.parity);
    ptx::tcgen05_fence_after_thread_sync();
    return own_lanes(tmem) + Columns::accumulator(accumulator.stage);
  }
  /// This warp has read them.
  __device__ void release_step() {
    ptx::tcgen05_fence_before_thread_sync();
    __syncwarp();
    if (threadIdx.x % 32 == 0) {
      const std::uint32_t empty = Ring<2>(shared.accumulators).empty(accumulator);
      if constexpr (C.tile.ctas == 2) {
        ptx::mbarrier_arrive_cluster(in_leader<C>(empty, rank));
      } else {
        ptx::mbarrier_arrive(empty);
      }
    }
    accumulator.advance();
  }

  template <int Count>
  static __device__ void load(float (&x)[Count], std::uint32_t address) {
    ptx::tcgen05_ld_32x32b<Count>(x, address);
    ptx::tcgen05_wait_ld_sync_aligned();
    ptx::tcgen05_fence_operand(x);
  }
};

/// A thread has 128 columns of a row: two runs, which leave by tensor copies.
template <BlockScaledConfig C>
struct PromotedEpilogue : PromotedSums<C> {
  using Sums = PromotedSums<C>;
  using Sums::params;
  static constexpr int kRuns = 2, kColumns = kRuns * kRun, kChunk = 32;
  static constexpr int kWarpBytes = 32 * DenseOutput::kRowBytes;  // one buffer a warp
  static_assert(C.tile.n == C.epilogue_warps() / 4 * kColumns);
  static_assert(C.epilogue_warps() * kWarpBytes <= BlockScaledConfig::kStagingBytes);

  std::uint32_t warp;

  /// Warps behind the loading one have the second half of the columns.
  __device__ std::int32_t first_column() const { return warp < kMultiplyingWarp ? 0 : kColumns; }
  __device__ std::int32_t first_row() const { return static_cast<std::int32_t>(warp % 4 * 32); }
  __device__ std::uint32_t buffer() const {
    const std::uint32_t index = warp < kMultiplyingWarp ? warp : warp - 2;
    return ptx::shared_address(Sums::shared.staging) + index * kWarpBytes;
  }

  __device__ void add_step(float (&sums)[kRuns][kRun], float factor) {
    const std::uint32_t from = Sums::wait_for_step() + static_cast<std::uint32_t>(first_column());
#pragma unroll
    for (int first = 0; first < kColumns; first += kChunk) {
      float x[kChunk];
      Sums::load(x, from + first);
#pragma unroll
      for (int i = 0; i < kChunk; ++i) {
        float& sum = sums[(first + i) / kRun][(first + i) % kRun];
        sum = fmaf(x[i], factor, sum);
      }
    }
    Sums::release_step();
  }

  __device__ void store(float (&y)[kRun], std::int32_t row, std::int32_t column) const {
    const BlockScaledGemmParams& gemm = params.gemm;
    const bool is_lane_0 = threadIdx.x % 32 == 0;
    DenseOutput::prepare(gemm, y, column);
#pragma unroll
    for (int piece = 0; piece < DenseOutput::kPieces; ++piece) {
      if (piece == DenseOutput::pieces(gemm)) break;
      if (is_lane_0) ptx::cp_async_bulk_wait_group_read<0>();  // the buffer is free
      __syncwarp();
      const RunAt at = {row, column + piece * (kRun / DenseOutput::kPieces), buffer()};
      DenseOutput::write_piece(gemm, y, piece, at);
      ptx::fence_proxy_async_shared_cta();
      __syncwarp();
      if (!is_lane_0) continue;
      if (at.row < gemm.m && at.column < gemm.n)
        ptx::cp_async_bulk_tensor_2d_global_shared(gemm.d_map, at.column, at.row, at.staging);
      ptx::cp_async_bulk_commit_group();
    }
  }

  __device__ void write_tile(const BlockScaledTileAt& tile) {
    const BlockScaledGemmParams& gemm = params.gemm;
    const std::int32_t row =
        static_cast<std::int32_t>(tile.m * C.tile.cluster() + Sums::rank) * 128 + first_row();
    const std::int32_t column = tile.n * C.tile.n + first_column();
    // What is outside of the result is multiplied by the last scale, and not stored.
    const float* x_scale =
        params.x_scales + min(row + static_cast<std::int32_t>(threadIdx.x % 32), gemm.m - 1);
    const float* weight_scale =
        params.weight_scales + min(column / kernels::kE4m3ScaleBlock, params.weight_blocks - 1);
    float sums[kRuns][kRun] = {};
    for (std::int32_t step = steps_of<C>(gemm).end; step > 0; --step) {
      add_step(sums, *x_scale * *weight_scale);
      x_scale += params.x_scale_pitch;
      weight_scale += params.weight_blocks;
    }
#pragma unroll
    for (int run = 0; run < kRuns; ++run) store(sums[run], row, column + run * kRun);
  }

  __device__ void run() {
    for_each_tile<C>(params.gemm, [&](const BlockScaledTileAt& tile) { write_tile(tile); });
    if (threadIdx.x % 32 == 0) ptx::cp_async_bulk_wait_group<0>();
    __syncwarp();
  }
};

/// Few tokens: a thread has a row of the weight, and a sum for each token.
template <BlockScaledConfig C>
struct PromotedFewTokens : PromotedSums<C> {
  using Sums = PromotedSums<C>;
  using Sums::params;
  static constexpr int kColumns = C.tile.n, kChunk = 16;
  static_assert(kColumns == 64);

  /// Factors of a step: a lane has those of tokens `lane` and `lane + 32`.
  struct Factors {
    float own[2];

    __device__ float of(int token) const {
      return __shfl_sync(0xffffffff, own[token / 32], token % 32);
    }
  };
  __device__ Factors factors(const BlockScaledTileAt& tile, std::int32_t step) const {
    const float weight = params.weight_scales[step * params.weight_blocks + tile.m];
    Factors out;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const auto lane = static_cast<std::int32_t>(threadIdx.x % 32);
      const std::int32_t token = min(tile.n * kColumns + i * 32 + lane, params.gemm.n - 1);
      out.own[i] = weight * params.x_scales[step * params.x_scale_pitch + token];
    }
    return out;
  }

  __device__ void add_step(float (&sums)[kColumns], const Factors& by) {
    const std::uint32_t from = Sums::wait_for_step();
#pragma unroll
    for (int first = 0; first < kColumns; first += kChunk) {
      if (first >= params.gemm.tile_columns) break;
      float x[kChunk];
      Sums::load(x, from + first);
#pragma unroll
      for (int i = 0; i < kChunk; ++i)
        sums[first + i] = fmaf(x[i], by.of(first + i), sums[first + i]);
    }
    Sums::release_step();
  }

  /// Hands this CTA's sums to those who add them up.
  __device__ void run(const FewTokensEpilogue<C>& exchange, const BlockScaledTileAt& tile) {
    const auto [begin, end] = steps_of<C>(params.gemm);
    float sums[kColumns] = {};
    for (std::int32_t step = begin; step < end; ++step) add_step(sums, factors(tile, step));
#pragma unroll
    for (int i = 0; i < kColumns; ++i) {
      if (i < params.gemm.tile_columns) exchange.send(i, sums[i]);
    }
  }
};

template <BlockScaledConfig C>
__device__ void promoted_gemm(const E4m3GemmParams& params) {
  extern __shared__ __align__(1024) std::uint8_t dynamic[];
  auto& shared = *reinterpret_cast<BlockScaledShared<C>*>(dynamic);
  static_assert(sizeof(shared) <= C.shared_bytes());
  const std::uint32_t warp = ptx::uniform(threadIdx.x / 32);
  prepare<C>(params.gemm, shared, warp);
  const std::uint32_t tmem = shared.tmem, rank = rank_in_cluster<C>();
  if (warp == kLoadingWarp) {
    if (ptx::elect_sync()) BlockScaledLoader<C>{params.gemm, shared, rank}.run();
    __syncwarp();
  } else if (warp == kMultiplyingWarp) {
    if (rank == leader_of(rank))
      PromotedMultiplier<C>{{params.gemm, shared, ptx::elect_sync(), tmem, rank}}.run();
  } else {
    PromotedEpilogue<C>{{params, shared, tmem, rank}, warp}.run();
  }
  // A cluster ends together: each CTA's memory is used by the others.
  ptx::tcgen05_fence_before_thread_sync();
  sync_all<C>();
  ptx::tcgen05_fence_after_thread_sync();
  if (warp == kMultiplyingWarp)
    ptx::tcgen05_dealloc<C.tile.ctas>(tmem, BlockScaledColumns<C>::kColumns);
}

template <BlockScaledConfig C>
__device__ void promoted_few_tokens_gemm(const E4m3GemmParams& params) {
  static_assert(C.is_split && C.tile.cluster() == 1 && !C.has_scales());
  extern __shared__ __align__(1024) std::uint8_t dynamic[];
  auto& shared = *reinterpret_cast<BlockScaledShared<C>*>(dynamic);
  static_assert(sizeof(shared) <= C.shared_bytes());
  const std::uint32_t warp = ptx::uniform(threadIdx.x / 32);
  prepare<C>(params.gemm, shared, warp);
  const std::uint32_t tmem = shared.tmem;
  const FewTokensEpilogue<C> exchange = {params.gemm, shared, tmem};
  const BlockScaledTileAt tile(params.gemm, static_cast<std::int32_t>(ptx::clusterid_x()));
  if (warp == kLoadingWarp) {
    if (ptx::elect_sync()) BlockScaledLoader<C>{params.gemm, shared, 0}.run();
    __syncwarp();
  } else if (warp == kMultiplyingWarp) {
    PromotedMultiplier<C>{{params.gemm, shared, ptx::elect_sync(), tmem, 0}}.run();
  } else {
    PromotedFewTokens<C>{{params, shared, tmem, 0}}.run(exchange, tile);
  }
  ptx::tcgen05_fence_before_thread_sync();
  ptx::cluster_sync();
  ptx::tcgen05_fence_after_thread_sync();
  if (warp == kMultiplyingWarp) ptx::tcgen05_dealloc<1>(tmem, BlockScaledColumns<C>::kColumns);
  if (warp < kMultiplyingWarp) exchange.finish(tile);
}

}  // namespace tilewright::tile
