// Loading and multiplying the rows of experts: the steps of a block-scaled GEMM
// (kernels/linear/block_scaled) in the order of a grouped schedule.
#pragma once

#include "kernels/linear/block_scaled/multiplier.h"
#include "kernels/linear/grouped/schedule.h"
#include "ptx/bulk_tensor_copy_pair.h"

#include <cstdint>

namespace tilewright::tile {

/// Shared memory of a CTA.
template <BlockScaledConfig C>
struct GroupedShared {
  BlockScaledShared<C> gemm;
  GroupedTable table;
};

/// Where fewer rows than 128 are loaded the rest of a stage is never written, but multiplied all
/// the same. A row of A makes one of the product, so what stands there has no effect. It begins as
/// zeros.
template <BlockScaledConfig C>
__device__ void clear_rows(BlockScaledShared<C>& shared) {
  using Stage = BlockScaledStage<C>;
  constexpr int kScaleBytes = Stage::kAtomsK * Stage::kAtomBytes;
  constexpr int kLines = (Stage::kABytes + kScaleBytes) / 16;
  for (int stage = 0; stage < C.stages(); ++stage) {
    for (int i = static_cast<int>(threadIdx.x); i < kLines; i += kernels::kBlockScaledThreads) {
      const int at = i * 16 < Stage::kABytes ? i * 16 : i * 16 + Stage::kBBytes;
      *reinterpret_cast<uint4*>(shared.stages[stage] + at) = make_uint4(0, 0, 0, 0);
    }
  }
  if constexpr (C.tile.ctas == 2) {
    ptx::fence_proxy_async_shared_cluster();
  } else {
    ptx::fence_proxy_async_shared_cta();
  }
}

/// Where operands lie in a stage: rows of experts, and of the weight, whichever of them is A.
template <BlockScaledConfig C>
struct GroupedStage : BlockScaledStage<C> {
  using Stage = BlockScaledStage<C>;

  __device__ std::uint32_t rows() const { return C.is_swapped ? Stage::b() : Stage::a; }
  __device__ std::uint32_t weight() const { return C.is_swapped ? Stage::a : Stage::b(); }
  __device__ std::uint32_t row_scales() const {
    return C.is_swapped ? Stage::b_scales() : Stage::a_scales();
  }
  __device__ std::uint32_t weight_scales() const {
    return C.is_swapped ? Stage::a_scales() : Stage::b_scales();
  }
};

/// Boxes of rows that there are rows for.
__device__ inline std::int32_t boxes_of(const MoeGroupedParams& params, std::int32_t rows) {
  return (rows + params.a_box_rows - 1) / params.a_box_rows;
}

/// One thread of every CTA fills its stages, with as many boxes of rows as there are rows for.
template <BlockScaledConfig C>
struct GroupedLoader {
  static constexpr int kCtas = C.tile.ctas;
  static_assert(C.tile.pairs == 1);
  using Stage = GroupedStage<C>;

  const MoeGroupedParams& params;
  GroupedShared<C>& shared;
  std::uint32_t rank;
  RingPosition<C.stages()> at;

  /// What all CTAs of the pair copy in a step.
  __device__ std::int32_t copied_bytes(std::int32_t rows) const {
    constexpr int kScaleBytes = Stage::kAtomsK * Stage::kAtomBytes;
    constexpr int kWeightBytes = C.weight_box_rows() * kernels::kBlockScaledStepBytes;
    constexpr int kOfWeight =
        (C.unpacks_weight() ? kWeightBytes / 2 : kWeightBytes) + Stage::kAtomsN * kScaleBytes;
    std::int32_t bytes = kCtas * kOfWeight;
#pragma unroll
    for (int cta = 0; cta < kCtas; ++cta) {
      const std::int32_t own = boxes_of(params, rows_of_cta<C>(rows, cta));
      bytes += own * params.a_box_rows * kernels::kBlockScaledStepBytes + min(own, 1) * kScaleBytes;
    }
    return bytes;
  }

  __device__ void load_step(const GroupedTileAt& tile, std::int32_t bytes, std::int32_t step) {
    const Ring<C.stages()> ring(shared.gemm.ring);
    wait_pair<C>(ring.empty_barriers + at.stage * 8, at.parity ^ 1);
    if (rank == leader_of(rank))
      ptx::mbarrier_arrive_expect_tx(ring.full(at), static_cast<std::uint32_t>(bytes));
    const std::uint32_t full = in_leader<C>(ring.full(at), rank);
    const Stage stage = {{ptx::shared_address(shared.gemm.stages[at.stage])}};
    const BlockScaledGemmParams& gemm = params.gemm;
    const std::int32_t k = step * kernels::kBlockScaledStepBytes, atom_k = step * Stage::kAtomsK;
    const auto column =
        static_cast<std::int32_t>(tile.n * C.columns() + rank * C.weight_box_rows());
    ptx::cp_async_bulk_tensor_2d_cta_group<kCtas>(stage.weight(), gemm.b_map, k,
                                                  tile.expert * gemm.n + column, full);
    ptx::cp_async_bulk_tensor_3d_cta_group<kCtas>(
        stage.weight_scales(), gemm.b_scale_map, 0, atom_k,
        tile.expert * params.b_atoms + tile.n * (C.columns() / 128), full);
    if (tile.rows > 0) {
      ptx::cp_async_bulk_tensor_3d_cta_group<kCtas>(stage.row_scales(), gemm.a_scale_map, 0, atom_k,
                                                    tile.scale_tile, full);
    }
    for (std::int32_t row = 0; row < tile.rows; row += params.a_box_rows) {
      ptx::cp_async_bulk_tensor_2d_cta_group<kCtas>(
          stage.rows() + static_cast<std::uint32_t>(row * kernels::kBlockScaledStepBytes),
          gemm.a_map, k, tile.row + row, full);
    }
    at.advance();
  }

  __device__ void run() {
    const std::int32_t steps = (params.gemm.k + C.step_k() - 1) / C.step_k();
    for_each_grouped_tile<C>(params, shared.table, rank,
                             [&](const GroupedTileAt& tile, std::int32_t rows) {
                               const std::int32_t bytes = copied_bytes(rows);
                               for (std::int32_t step = 0; step < steps; ++step)
                                 load_step(tile, bytes, step);
                             });
    // The commits of the last round come to this CTA's memory: it must not end before.
    for (int i = 0; i < C.stages(); ++i, at.advance())
      wait_pair<C>(ptx::shared_address(shared.gemm.ring.empty) + at.stage * 8, at.parity ^ 1);
  }
};

/// One warp of the leader multiplies, few rows by as many columns as have been loaded. Tiles begin
/// at whole tiles of scales, or few rows in the middle of one.
template <BlockScaledConfig C>
struct GroupedMultiplier : BlockScaledMultiplier<C> {
  static_assert(C.columns() % 128 == 0);
  using Gemm = BlockScaledMultiplier<C>;

  const MoeGroupedParams& grouped;
  const GroupedTable& table;

  __device__ void run() {
    const std::int32_t steps = (Gemm::params.k + C.step_k() - 1) / C.step_k();
    const Ring<2> accumulators(Gemm::shared.accumulators);
    for_each_grouped_tile<C>(
        grouped, table, Gemm::rank, [&](const GroupedTileAt& tile, std::int32_t) {
          Gemm::wait_for_accumulator();
          if constexpr (C.is_swapped) {
            Gemm::columns =
                static_cast<std::uint32_t>(boxes_of(grouped, tile.rows) * grouped.a_box_rows);
          }
          const std::uint32_t scales = C.is_swapped ? tile.scale_row / 32 : 0;
          for (std::int32_t step = 0; step < steps; ++step) Gemm::multiply_step(step, 0, scales);
          if (Gemm::is_issuing)
            Gemm::commit(accumulators.full(Gemm::accumulator), 0b11u << Gemm::rank);
          __syncwarp();
          Gemm::accumulator.advance();
        });
  }
};

}  // namespace tilewright::tile
