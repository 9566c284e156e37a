// Few rows of an expert: the weight is A, so that an instruction has work for all of its 128 rows,
// and rows of the expert are its columns, as many as there are. What Tensor Memory then holds is
// the result turned: a thread has a column of it. It passes shared memory to threads that have 64
// columns of a row, as the other tile's have them from the beginning.
#pragma once

#include "kernels/linear/grouped/outputs.h"

#include <cstdint>

namespace tilewright::tile {

/// The four warps that write results.
template <BlockScaledConfig C, class Output>
struct FewRowsEpilogue : BlockScaledResults<C, Bf16Output, 1> {
  using Gemm = BlockScaledResults<C, Bf16Output, 1>;
  static constexpr int kColumns = C.columns(), kChunk = 8;
  static_assert(C.tile.n * kColumns * 4 <= BlockScaledConfig::kStagingBytes);
  /// Four warps have 64 rows of two runs.
  static_assert(C.tile.n == 64 && kColumns == 2 * kRun);

  const MoeGroupedParams& grouped;
  const GroupedTable& table;

  /// Four columns of a row. Their order in a row depends on it, so that neither 32 columns of one
  /// row nor 16 bytes of eight rows meet in a bank.
  __device__ float* sums(std::int32_t row, std::int32_t four) const {
    return reinterpret_cast<float*>(Gemm::shared.staging) + row * kColumns + (four ^ row % 8) * 4;
  }

  __device__ void turn(std::int32_t rows) const {
    const auto column = static_cast<std::int32_t>(threadIdx.x);
    const std::uint32_t from =
        own_lanes(Gemm::tmem) + BlockScaledColumns<C>::accumulator(Gemm::accumulator.stage);
#pragma unroll 1
    for (std::int32_t first = 0; first < rows; first += kChunk) {
      float x[kChunk];
      ptx::tcgen05_ld_32x32b<kChunk>(x, from + static_cast<std::uint32_t>(first));
      ptx::tcgen05_wait_ld_sync_aligned();
      ptx::tcgen05_fence_operand(x);
#pragma unroll
      for (int i = 0; i < kChunk; ++i) sums(first + i, column / 4)[column % 4] = x[i];
    }
  }

  __device__ void write_row(const GroupedTileAt& tile, std::int32_t row, std::int32_t run) const {
    if (row >= tile.rows) return;
    const GroupedFactors factors = factors_of<Output>(grouped, tile, row);
    float x[kRun];
#pragma unroll
    for (int i = 0; i < kRun / 4; ++i) {
      const float4 four = *reinterpret_cast<const float4*>(sums(row, run * (kRun / 4) + i));
      x[4 * i] = four.x * Gemm::params.alpha;
      x[4 * i + 1] = four.y * Gemm::params.alpha;
      x[4 * i + 2] = four.z * Gemm::params.alpha;
      x[4 * i + 3] = four.w * Gemm::params.alpha;
    }
    Output::write(grouped, x, factors, {tile, row, tile.n * kColumns + run * kRun});
  }

  __device__ void write_tile(const GroupedTileAt& tile) {
    const Ring<2> accumulators(Gemm::shared.accumulators);
    wait_pair<C>(accumulators.full(Gemm::accumulator), Gemm::accumulator.parity);
    ptx::tcgen05_fence_after_thread_sync();
    ptx::bar_sync<kStoringBarrier, 128>();  // all have read the sums of the tile before
    turn(tile.rows);
    Gemm::release_accumulator();
    Gemm::accumulator.advance();
    ptx::bar_sync<kStoringBarrier, 128>();
    write_row(tile, static_cast<std::int32_t>(Gemm::warp / 2 * 32 + Gemm::lane()),
              static_cast<std::int32_t>(Gemm::warp % 2));
  }

  __device__ void run() {
    for_each_grouped_tile<C>(grouped, table, Gemm::rank,
                             [&](const GroupedTileAt& tile, std::int32_t) { write_tile(tile); });
  }
};

}  // namespace tilewright::tile
