// The body of a grouped product on Blackwell: which warp does what.
#pragma once

#include "kernels/linear/block_scaled/cta.h"
#include "kernels/linear/grouped/outputs.h"
#include "tile/entry.h"

namespace tilewright::tile {

/// The four warps that write results.
template <BlockScaledConfig C, class Output>
struct GroupedEpilogue : BlockScaledResults<C, Bf16Output, 1> {
  using Gemm = BlockScaledResults<C, Bf16Output, 1>;
  static constexpr bool kIsHidden = Output::kAlphas == 2;

  const MoeGroupedParams& grouped;
  const GroupedTable& table;

  __device__ GroupedFactors factors_of(const GroupedTileAt& tile, std::int32_t lane_row) const {
    GroupedFactors factors = {1, 1, 1};
    if (grouped.alphas != nullptr) {
      const float* const alphas = grouped.alphas + tile.expert * Output::kAlphas;
      factors.gate = alphas[0];
      factors.up = alphas[Output::kAlphas - 1];
    }
    if (lane_row >= tile.rows) return factors;
    if (grouped.row_scales != nullptr) {
      const float scale = grouped.row_scales[tile.row + lane_row];
      factors.gate *= scale;
      factors.up *= scale;
    }
    if (kIsHidden && grouped.row_weights != nullptr)
      factors.weight = grouped.row_weights[tile.row + lane_row];
    return factors;
  }

  __device__ void write_run(float (&x)[kRun], const GroupedFactors& factors,
                            const GroupedRunAt& at) {
    if constexpr (kIsHidden) {
      Output::write(grouped, x, factors, at);
    } else {
#pragma unroll
      for (float& value : x) value *= factors.gate;
      const auto first = static_cast<std::int32_t>(Gemm::warp) * 32;
      if (first + 32 > at.tile.rows) return Output::write_own(grouped, x, at);
      const RunAt run = {at.tile.row + first, at.column, Gemm::take_buffer()};
      Bf16Output::write_run(Gemm::params, x, run);
      Gemm::store(run);
    }
  }

  __device__ void write_tile(const GroupedTileAt& tile) {
    const auto lane_row = static_cast<std::int32_t>(threadIdx.x);
    const GroupedFactors factors = factors_of(tile, lane_row);
    const Ring<2> accumulators(Gemm::shared.accumulators);
    wait_pair<C>(accumulators.full(Gemm::accumulator), Gemm::accumulator.parity);
    ptx::tcgen05_fence_after_thread_sync();
    if (static_cast<std::int32_t>(Gemm::warp) * 32 >= tile.rows) {  // this warp has no rows
      Gemm::release_accumulator();
    } else {
#pragma unroll 1
      for (int i = 0; i < Gemm::kRuns; ++i) {
        // What accumulators share is the end of the first and the beginning of the second.
        const bool is_reversed = Gemm::Columns::kShared != 0 && Gemm::accumulator.stage == 0;
        const int run = is_reversed ? Gemm::kRuns - 1 - i : i;
        float x[kRun];
        Gemm::template load<true>(x, run);
        if (i == Gemm::kRunsToRelease - 1) Gemm::release_accumulator();
        write_run(x, factors, {tile, lane_row, tile.n * C.tile.n + run * kRun});
      }
    }
    Gemm::accumulator.advance();
  }

  __device__ void run() {
    for_each_grouped_tile<C>(grouped, table, Gemm::rank,
                             [&](const GroupedTileAt& tile, std::int32_t) { write_tile(tile); });
    if (Gemm::lane() == 0) ptx::cp_async_bulk_wait_group<0>();
    __syncwarp();
  }
};

template <BlockScaledConfig C, class Output>
__device__ void grouped_gemm(const MoeGroupedParams& params) {
  extern __shared__ __align__(1024) std::uint8_t dynamic[];
  auto& shared = *reinterpret_cast<GroupedShared<C>*>(dynamic);
  static_assert(sizeof(shared) <= kernels::grouped_shared_bytes(C));
  static_assert(kernels::grouped_shared_bytes(C) <= BlockScaledConfig::kLargestCtaBytes);
  const std::uint32_t warp = ptx::uniform(threadIdx.x / 32);
  clear_rows<C>(shared.gemm);
  prepare<C>(params.gemm, shared.gemm, warp);
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  if (warp == 0) shared.table.fill(params, C.tile_m());
  __syncthreads();
  const std::uint32_t tmem = shared.gemm.tmem, rank = rank_in_cluster<C>();
  if (warp == kLoadingWarp) {
    if (ptx::elect_sync()) GroupedLoader<C>{params, shared, rank}.run();
    __syncwarp();
  } else if (warp == kMultiplyingWarp) {
    if (rank == leader_of(rank)) {
      GroupedMultiplier<C>{
          {params.gemm, shared.gemm, ptx::elect_sync(), tmem, rank}, params, shared.table}
          .run();
    }
  } else {
    GroupedEpilogue<C, Output>{{params.gemm, shared.gemm, tmem, rank, warp}, params, shared.table}
        .run();
  }
  // A cluster ends together: each CTA's memory is used by the other.
  ptx::tcgen05_fence_before_thread_sync();
  sync_all<C>();
  ptx::tcgen05_fence_after_thread_sync();
  if (warp == kMultiplyingWarp)
    ptx::tcgen05_dealloc<C.tile.ctas>(tmem, BlockScaledColumns<C>::kColumns);
}

}  // namespace tilewright::tile

/// The entries of a kind of operands: both products, both tiles.
#define TILEWRIGHT_MOE_GROUPED(NAME, KIND, OUTPUT, INDEX, CTAS)                              \
  static_assert(kBlockScaledTiles[INDEX].cluster() == CTAS);                                 \
  TILEWRIGHT_KERNEL(                                                                         \
      NAME, MoeGroupedParams,                                                                \
      __cluster_dims__(CTAS, 1, 1) __launch_bounds__(kBlockScaledThreads, 1),                \
      tile::grouped_gemm<BlockScaledConfig{BlockScaledKind::KIND, kBlockScaledTiles[INDEX]}, \
                         OUTPUT>)
#define TILEWRIGHT_MOE_GROUPED_ENTRIES(STEM, KIND, FORMAT)                                       \
  TILEWRIGHT_MOE_GROUPED(STEM##_gate_up_1cta_n128, KIND, tile::HiddenOutput<tile::FORMAT>, 1, 1) \
  TILEWRIGHT_MOE_GROUPED(STEM##_gate_up_2cta_n256, KIND, tile::HiddenOutput<tile::FORMAT>, 3, 2) \
  TILEWRIGHT_MOE_GROUPED(STEM##_down_1cta_n128, KIND, tile::RowsOutput, 1, 1)                    \
  TILEWRIGHT_MOE_GROUPED(STEM##_down_2cta_n256, KIND, tile::RowsOutput, 3, 2)
