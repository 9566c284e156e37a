// What becomes of an accumulator in Tensor Memory: scaled, handed to a step (step.h), rounded to
// bf16 or requantised, and written by tensor copies (results.h).
#pragma once

#include "kernels/linear/block_scaled/results.h"
#include "kernels/linear/block_scaled/step.h"

#include <cstdint>

namespace tilewright::tile {

/// The four warps that write results, each for itself but for the scales, which four warps together
/// make 512-byte atoms of.
template <BlockScaledConfig C, class Output, class Step>
struct BlockScaledEpilogue : BlockScaledResults<C, Output, kRun / Step::kColumns> {
  using Results = BlockScaledResults<C, Output, kRun / Step::kColumns>;
  using Results::accumulator;
  using Results::kFold;
  using Results::kRuns;
  using Results::lane;
  using Results::params;
  using Results::staging;
  using Results::store;
  using Results::take_buffer;
  using Results::warp;
  static constexpr int kScaleBytes = kRuns * 512;
  static constexpr int kScaleStaging = 4 * Results::kRunBuffers * Results::kWarpBytes;
  static_assert(kScaleStaging + (Output::kHasScales ? 2 * kScaleBytes : 0) <=
                BlockScaledConfig::kStagingBytes);

  __device__ std::uint32_t scales() const {
    return staging() + kScaleStaging + accumulator.stage * kScaleBytes;
  }

  /// The scales of four rows 32 apart share 16 bytes; one bulk copy takes all atoms of the tile,
  /// which follow each other in the result.
  __device__ void stage_scales(std::uint32_t word, int run) const {
    const std::uint32_t to = scales() + run * 512 + lane() * 16 + warp * 4;
    *static_cast<std::uint32_t*>(__cvta_shared_to_generic(to)) = word;
  }
  __device__ void store_scales(std::int32_t first_row, std::int32_t first_column) const {
    ptx::fence_proxy_async_shared_cta();
    // After this barrier the other buffer is free for all warps: its copy came before a run's.
    if (threadIdx.x == 0) ptx::cp_async_bulk_wait_group_read<1>();
    ptx::bar_sync<kStoringBarrier, 128>();
    if (threadIdx.x != 0) return;
    const std::int32_t atoms = (params.n + kRun - 1) / kRun, atom = first_column / kRun;
    if (first_row < params.m) {
      ptx::cp_async_bulk_global_shared(
          params.d_scales + (static_cast<std::int64_t>(first_row / 128) * atoms + atom) * 512,
          scales(), static_cast<std::uint32_t>(min(kRuns, atoms - atom)) * 512);
    }
    ptx::cp_async_bulk_commit_group();
  }

  /// Outputs that say kPieces store a run in so many copies, or in fewer.
  __device__ void store_run(float (&y)[kRun], std::int32_t row, std::int32_t first_column,
                            int run) {
    const std::int32_t column = first_column + run * kRun;
    if constexpr (requires { Output::kPieces; }) {
      Output::prepare(params, y, column);
#pragma unroll
      for (int piece = 0; piece < Output::kPieces; ++piece) {
        if (piece == Output::pieces(params)) break;
        const RunAt at = {row, column + piece * (kRun / Output::kPieces), take_buffer()};
        Output::write_piece(params, y, piece, at);
        store(at);
      }
    } else {
      const RunAt at = {row, column, take_buffer()};
      if constexpr (Output::kHasScales) {
        stage_scales(Output::write_run(params, y, at), run);
      } else {
        Output::write_run(params, y, at);
      }
      store(at);
    }
  }

  template <bool HasProduct>
  __device__ void write_tile(const BlockScaledTileAt& tile) {
    const auto first_row =
        static_cast<std::int32_t>(tile.m * C.tile.cluster() + Results::rank) * 128;
    const std::int32_t first_column = tile.n * (C.tile.n / kFold);
    const Ring<2> accumulators(Results::shared.accumulators);
    if constexpr (HasProduct) {
      wait_pair<C>(accumulators.full(accumulator), accumulator.parity);
      ptx::tcgen05_fence_after_thread_sync();
    }
#pragma unroll 1
    for (int i = 0; i < kRuns; ++i) {
      // What accumulators share is the end of the first and the beginning of the second.
      const int run = Results::Columns::kShared != 0 && accumulator.stage == 0 ? kRuns - 1 - i : i;
      float y[kRun];
#pragma unroll
      for (int part = 0; part < kFold; ++part) {
        float x[kRun];
        const int of_product = run * kFold + part;
        Results::template load<HasProduct>(x, of_product);
        if (HasProduct && i == Results::kRunsToRelease - 1 && part == kFold - 1)
          Results::release_accumulator();
        apply_step<Step>(y + part * Step::kColumns, x,
                         StepAt{first_row + static_cast<std::int32_t>(threadIdx.x),
                                tile.n * C.tile.n + of_product * kRun},
                         params);
      }
      store_run(y, first_row + static_cast<std::int32_t>(warp) * 32, first_column, run);
    }
    if constexpr (Output::kHasScales) store_scales(first_row, first_column);
    accumulator.advance();
  }

  __device__ void run() {
    if (params.k != 0) {
      for_each_tile<C>(params, [&](const BlockScaledTileAt& tile) { write_tile<true>(tile); });
    } else {
      for_each_tile<C>(params, [&](const BlockScaledTileAt& tile) { write_tile<false>(tile); });
    }
    if (lane() == 0) ptx::cp_async_bulk_wait_group<0>();
    __syncwarp();
  }
};

}  // namespace tilewright::tile
