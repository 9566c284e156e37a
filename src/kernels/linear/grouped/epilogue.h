// The warps that write the results of a grouped product: many rows, rows of a tile in Tensor
// Memory's lanes.
#pragma once

#include "kernels/linear/grouped/outputs.h"

#include <cstdint>

namespace tilewright::tile {

/// y of 32 rows of a warp leaves by a tensor copy if all of them are the expert's.
template <BlockScaledConfig C, class Output>
struct GroupedEpilogue : BlockScaledResults<C, Bf16Output, 1> {
  using Gemm = BlockScaledResults<C, Bf16Output, 1>;

  const MoeGroupedParams& grouped;
  const GroupedTable& table;

  __device__ void write_run(float (&x)[kRun], const GroupedFactors& factors,
                            const GroupedRunAt& at) {
    if constexpr (Output::kIsHidden) {
      Output::write(grouped, x, factors, at);
    } else {
      Output::scale(x, factors);
      const auto first = static_cast<std::int32_t>(Gemm::warp) * 32;
      if (first + 32 > at.tile.rows) return Output::write_scaled(grouped, x, at);
      const RunAt run = {at.tile.row + first, at.column, Gemm::take_buffer()};
      Bf16Output::write_run(Gemm::params, x, run);
      Gemm::store(run);
    }
  }

  __device__ void write_tile(const GroupedTileAt& tile) {
    const auto lane_row = static_cast<std::int32_t>(threadIdx.x);
    const GroupedFactors factors = factors_of<Output>(grouped, tile, lane_row);
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

}  // namespace tilewright::tile
