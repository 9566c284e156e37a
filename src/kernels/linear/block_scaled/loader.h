// The warp that copies the operands of a block-scaled GEMM.
#pragma once

#include "kernels/linear/block_scaled/stages.h"
#include "ptx/bulk_tensor_copy_pair.h"

#include <cstdint>

namespace tilewright::tile {

/// One thread of every CTA fills its stages; in a pair, all bytes are announced to the leader. Two
/// pairs load half of B and of its scales each, for both: a CTA for itself and for its like.
template <BlockScaledConfig C>
struct BlockScaledLoader {
  static constexpr int kCtas = C.tile.ctas;
  static constexpr bool kIsShared = C.tile.pairs == 2;
  using Stage = BlockScaledStage<C>;

  const BlockScaledGemmParams& params;
  BlockScaledShared<C>& shared;
  std::uint32_t rank;
  RingPosition<C.stages()> at;

  __device__ void load_a(const Stage& stage, const BlockScaledTileAt& tile, std::int32_t step,
                         std::uint32_t full) const {
    const auto row = static_cast<std::int32_t>(tile.m * C.tile.cluster() + rank) * 128;
    ptx::cp_async_bulk_tensor_2d_cta_group<kCtas>(stage.a, params.a_map,
                                                  step * kernels::kBlockScaledStepBytes, row, full);
    if constexpr (C.has_scales()) {
      ptx::cp_async_bulk_tensor_3d_cta_group<kCtas>(stage.a_scales(), params.a_scale_map, 0,
                                                    step * Stage::kAtomsK, row / 128, full);
    }
  }
  __device__ void load_b(const Stage& stage, const BlockScaledTileAt& tile, std::int32_t step,
                         std::uint32_t full) const {
    const std::uint32_t pair = rank / 2, in_pair = rank % 2;
    const std::int32_t k = step * kernels::kBlockScaledStepBytes, atom_k = step * Stage::kAtomsK;
    const auto row =
        static_cast<std::int32_t>(tile.n * C.tile.n + in_pair * C.b_rows() + pair * C.b_box_rows());
    const std::uint32_t b = stage.b() + pair * (Stage::kBBytes / C.tile.pairs);
    const auto atom =
        static_cast<std::int32_t>(tile.n * C.tile.n / 128 + pair * C.scale_box_atoms_n());
    const std::uint32_t scales =
        stage.b_scales() + pair * C.scale_box_atoms_n() * Stage::kAtomsK * Stage::kAtomBytes;
    if constexpr (kIsShared) {
      const auto mask = static_cast<std::uint16_t>(0b101 << in_pair);
      ptx::cp_async_bulk_tensor_2d_cta_group_2_multicast(b, params.b_map, k, row, full, mask);
      if constexpr (C.has_scales()) {
        ptx::cp_async_bulk_tensor_3d_cta_group_2_multicast(scales, params.b_scale_map, 0, atom_k,
                                                           atom, full, mask);
      }
    } else {
      ptx::cp_async_bulk_tensor_2d_cta_group<kCtas>(b, params.b_map, k, row, full);
      if constexpr (C.has_scales()) {
        ptx::cp_async_bulk_tensor_3d_cta_group<kCtas>(scales, params.b_scale_map, 0, atom_k, atom,
                                                      full);
      }
    }
  }

  __device__ void load_step(const BlockScaledTileAt& tile, std::int32_t step) {
    const Ring<C.stages()> ring(shared.ring);
    wait_pair<C>(ring.empty_barriers + at.stage * 8, at.parity ^ 1);
    if (rank == leader_of(rank))
      ptx::mbarrier_arrive_expect_tx(ring.full(at), kCtas * Stage::copied_bytes(params));
    const std::uint32_t full = in_leader<C>(ring.full(at), rank);
    const Stage stage = {ptx::shared_address(shared.stages[at.stage])};
    load_a(stage, tile, step, full);
    load_b(stage, tile, step, full);
    at.advance();
  }

  __device__ void run() {
    const auto [begin, end] = steps_of<C>(params);
    for_each_tile<C>(params, [&, begin = begin, end = end](const BlockScaledTileAt& tile) {
      for (std::int32_t step = begin; step < end; ++step) load_step(tile, step);
    });
    // The commits of the last round come to this CTA's memory: it must not end before.
    for (int i = 0; i < C.stages(); ++i, at.advance())
      wait_pair<C>(ptx::shared_address(shared.ring.empty) + at.stage * 8, at.parity ^ 1);
  }
};

}  // namespace tilewright::tile
