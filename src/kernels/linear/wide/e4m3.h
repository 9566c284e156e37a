// What the roles of the linear layer for many FP8 tokens share, and its producer.
#pragma once

#include "kernels/linear/wide/schedule.h"
#include "kernels/linear/wide/sm90_wide_e4m3.h"
#include "ptx/bulk_copy.h"
#include "ptx/bulk_tensor_copy.h"
#include "ptx/cluster.h"
#include "tile/ring.h"

#include <cstdint>

namespace tilewright::tile {

using kernels::WeightFormat;

/// Tiles begin at a multiple of 4 tokens, so that scales of tokens can be copied 16 bytes at a
/// time.
using WideE4m3Schedule = WideSchedule<4>;

template <int Index>
struct WideE4m3Config {
  static constexpr kernels::WideE4m3Variant kVariant = kernels::kWideE4m3Variants[Index];
  static constexpr int kTokens = kVariant.tokens, kStages = kVariant.stages;
  static constexpr bool kIsFp4 = kVariant.is_fp4, kHasKScales = kVariant.has_k_scales;
  static constexpr int kWeightsAt = kVariant.x_bytes();
  static constexpr int kFactors = (kTokens + 127) / 128;  ///< tokens of a thread
  static constexpr int kProducerRegisters = 40, kConsumerRegisters = 232;
  static constexpr int kConsumerWarps = 8;
};

template <class C>
struct WideE4m3Shared {
  RingBarriers<C::kStages> ring;
  std::int32_t first_units[kernels::WideE4m3Variant::kMaxMatrices + 1 + 12];  ///< of the schedule
  std::uint64_t ring_idle, sums_sent;            ///< two parts of k: see combine()
  alignas(16) float factors[2][2 * C::kTokens];  ///< of a warpgroup's tokens: SharedFactors
};

// What follows from the parameters, for all roles.
template <class C>
struct WideE4m3Problem {
  const kernels::WideE4m3Params& params;
  std::int32_t brick_rows, k_blocks, brick;
  std::int32_t steps, first_step, end_step;  ///< of k; those of this CTA
  std::int32_t splits;
  std::uint32_t rank;

  __device__ explicit WideE4m3Problem(const kernels::WideE4m3Params& p) : params(p) {
    brick_rows = p.n / kernels::kBrickRows;
    k_blocks = (p.k + kernels::kBrickK - 1) / kernels::kBrickK;
    steps = (k_blocks + 1) / 2;
    brick = kernels::brick_bytes(p.format);
    splits = max(p.splits, 1);
    rank = splits > 1 ? ptx::cluster_ctarank() : 0;
    first_step = static_cast<std::int32_t>(rank) * steps / splits;
    end_step = (static_cast<std::int32_t>(rank) + 1) * steps / splits;
  }
  /// Tiles of this CTA: the first, and how many it passes to the next one.
  __device__ std::int32_t first_unit() const {
    return static_cast<std::int32_t>(blockIdx.x) / splits;
  }
  __device__ std::int32_t stride() const { return static_cast<std::int32_t>(gridDim.x) / splits; }
  __device__ std::int32_t bricks_of(std::int32_t row_tile) const {
    return min(C::kVariant.kRows / kernels::kBrickRows, brick_rows - row_tile * 8);
  }
};

// One thread.
template <class C>
__device__ void produce_wide_e4m3(const WideE4m3Problem<C>& problem, WideE4m3Shared<C>& shared,
                                  const WideE4m3Schedule& schedule, std::uint32_t stages) {
  constexpr kernels::WideE4m3Variant kVariant = C::kVariant;
  constexpr int kBox = kVariant.box_tokens(), kBoxBytes = kBox * kVariant.kStepK;
  const kernels::WideE4m3Params& params = problem.params;
  const Ring<C::kStages> ring(shared.ring);
  RingPosition<C::kStages> at;
  const std::int64_t k_pitch = std::int64_t{problem.brick_rows} * problem.brick;
  const std::int32_t units = schedule.units();
  for (std::int32_t unit = problem.first_unit(); unit < units; unit += problem.stride()) {
    const WideTile tile = schedule.find(unit, 0);
    const std::uint32_t bytes = problem.bricks_of(tile.row_tile) * problem.brick;
    const std::uint8_t* weights = params.weights + tile.matrix * params.matrix_bytes +
                                  std::int64_t{tile.row_tile} * 8 * problem.brick +
                                  problem.first_step * 2 * k_pitch;
    const float* scales = params.x_scales + tile.first_token +
                          std::int64_t{problem.first_step} * params.x_scale_pitch;
    const std::uint32_t scale_bytes = C::kHasKScales ? (tile.tokens + 3) / 4 * 16 : 0;
    const std::int32_t boxes = ceil_div(tile.tokens, kBox);
    for (std::int32_t step = problem.first_step; step < problem.end_step; ++step) {
      const bool has_two = 2 * step + 1 < problem.k_blocks;
      const std::uint32_t stage = stages + at.stage * kVariant.stage_bytes();
      const std::uint32_t full = ring.full(at);
      ring.start_filling(at, boxes * kBoxBytes + (has_two ? 2 * bytes : bytes) + scale_bytes);
      ptx::cp_async_bulk_shared_global(stage + C::kWeightsAt, weights, bytes, full);
      if (has_two) {
        ptx::cp_async_bulk_shared_global(stage + C::kWeightsAt + kVariant.block_bytes(),
                                         weights + k_pitch, bytes, full);
      }
      for (std::int32_t box = 0; box < boxes; ++box) {
        ptx::cp_async_bulk_tensor_2d_shared_global(stage + box * kBoxBytes, params.x_map,
                                                   step * kVariant.kStepK,
                                                   tile.first_token + box * kBox, full);
      }
      if constexpr (C::kHasKScales) {
        ptx::cp_async_bulk_shared_global(stage + C::kVariant.scales_at(), scales, scale_bytes,
                                         full);
        scales += params.x_scale_pitch;
      }
      weights += 2 * k_pitch;
      at.advance();
    }
  }
}

}  // namespace tilewright::tile
