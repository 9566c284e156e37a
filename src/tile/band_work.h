// What a CTA of the bandwidth kernel works on: units, its part of K, and where things stand in
// shared memory.
#pragma once

#include "kernels/linear/sm90_band.h"
#include "ptx/cluster.h"
#include "tile/ring.h"

#include <cstdint>

namespace tilewright::tile {

using kernels::BandParams;
using kernels::BandTile;
using kernels::WeightFormat;

template <WeightFormat FormatValue, kernels::WordOrder OrderValue, int TokensValue>
struct BandConfig {
  static constexpr WeightFormat kFormat = FormatValue;
  static constexpr kernels::WordOrder kOrder = OrderValue;
  static constexpr int kTokens = TokensValue;
  static constexpr int kBlocks = BandTile::stage_blocks(kFormat);
  static constexpr int kTokenBytes = BandTile::token_bytes(kFormat);
  static constexpr int kBrickBytes = kernels::brick_bytes(kFormat);
};

/// A ring whose depth is known at the launch.
struct DeepRing {
  std::uint32_t full_barriers, empty_barriers;  // shared addresses
  std::uint32_t stages;

  struct Position {
    std::uint32_t stage = 0, parity = 0;
  };
  __device__ void advance(Position& at) const {
    const bool wraps = at.stage + 1 == stages;
    at.stage = wraps ? 0 : at.stage + 1;
    at.parity ^= wraps ? 1 : 0;
  }
  __device__ std::uint32_t full(const Position& at) const { return full_barriers + at.stage * 8; }
  __device__ void wait_empty(const Position& at) const {
    ptx::mbarrier_wait_parity(empty_barriers + at.stage * 8, at.parity ^ 1);
  }
  __device__ void wait_full(const Position& at) const {
    ptx::mbarrier_wait_parity(full(at), at.parity);
  }
  /// Every lane of a warp that does not read the stage any more.
  __device__ void release(const Position& at) const {
    __syncwarp();
    if (threadIdx.x % 32 == 0) ptx::mbarrier_arrive(empty_barriers + at.stage * 8);
  }
};

/// Shared memory of a CTA, by the sizes of the launch.
template <class C>
struct BandShared {
  std::uint8_t* base;
  std::uint32_t stage_bytes, tokens_at, scales_at;
  float4* sums;             ///< [source][slot][lane], of the cluster's CTAs
  std::uint64_t* barriers;  ///< full[stages], empty[stages], sums full, sums empty
  std::int32_t* prefix;     ///< [experts + 1] token blocks before an expert
  std::int32_t* offsets;    ///< [experts + 1]
  std::int32_t* totals;     ///< per warp, while the prefix is built

  __device__ BandShared(std::uint8_t* dynamic, const BandParams& params) : base(dynamic) {
    tokens_at = BandTile::weight_stage_bytes(C::kFormat, params.tile_bricks);
    scales_at = tokens_at + C::kTokens * C::kTokenBytes;
    stage_bytes = BandTile::stage_bytes(C::kFormat, params.tile_bricks, C::kTokens);
    std::uint8_t* next = dynamic + params.stages * stage_bytes;
    sums = reinterpret_cast<float4*>(next);
    next += BandTile::sums_bytes(params.tile_bricks, C::kTokens, params.cluster);
    barriers = reinterpret_cast<std::uint64_t*>(next);
    next += BandTile::kBarrierBytes;
    prefix = reinterpret_cast<std::int32_t*>(next);
    offsets = prefix + kernels::kBandMaxExperts + 1;
    totals = offsets + kernels::kBandMaxExperts + 1;
  }
  __device__ std::uint8_t* stage(std::uint32_t index) const { return base + index * stage_bytes; }
  __device__ DeepRing ring(const BandParams& params) const {
    const std::uint32_t first = ptx::shared_address(barriers);
    const auto stages = static_cast<std::uint32_t>(params.stages);
    return {first, first + stages * 8, stages};
  }
  __device__ std::uint32_t sums_full() const {
    return ptx::shared_address(barriers) + 2 * BandTile::kMaxStages * 8;
  }
  __device__ std::uint32_t sums_empty() const { return sums_full() + 8; }
};

/// Some tokens of one matrix by some of its rows.
struct BandUnit {
  std::int32_t matrix;
  std::int32_t first_brick, bricks;
  std::int32_t first_row, tokens;  ///< rows of y
};

/// All units, in the order in which clusters take them: token blocks of a row tile are neighbours,
/// so that a matrix is read from memory once.
template <class C>
struct BandUnits {
  const BandParams& params;
  const std::int32_t* prefix;   // shared memory; grouped only
  const std::int32_t* offsets;  // likewise
  std::int32_t all_bricks, row_tiles;

  __device__ BandUnits(const BandParams& p, const BandShared<C>& shared)
      : params(p),
        prefix(shared.prefix),
        offsets(shared.offsets),
        all_bricks((p.n + kernels::kBrickRows - 1) / kernels::kBrickRows),
        row_tiles((all_bricks + p.tile_bricks - 1) / p.tile_bricks) {}

  static __device__ std::int32_t blocks(std::int32_t tokens) {
    return (tokens + C::kTokens - 1) / C::kTokens;
  }
  __device__ bool is_grouped() const { return params.expert_offsets != nullptr; }
  __device__ std::int32_t count() const {
    return row_tiles * (is_grouped() ? prefix[params.experts] : blocks(params.m));
  }
  /// The expert to which token block `block` belongs.
  __device__ std::int32_t find_expert(std::int32_t block) const {
    std::int32_t low = 0, high = params.experts;  // prefix[low] <= block < prefix[high]
    while (high - low > 1) {
      const std::int32_t middle = (low + high) / 2;
      if (prefix[middle] <= block) {
        low = middle;
      } else {
        high = middle;
      }
    }
    return low;
  }
  __device__ BandUnit find(std::int32_t index) const {
    BandUnit unit;
    std::int32_t rows = params.m, token_blocks = blocks(params.m);
    unit.matrix = 0;
    unit.first_row = 0;
    if (is_grouped()) {
      unit.matrix = find_expert(index / row_tiles);
      unit.first_row = offsets[unit.matrix];
      rows = offsets[unit.matrix + 1];
      token_blocks = prefix[unit.matrix + 1] - prefix[unit.matrix];
      index -= prefix[unit.matrix] * row_tiles;
    }
    unit.first_row += index % token_blocks * C::kTokens;
    unit.tokens = min(rows - unit.first_row, C::kTokens);
    unit.first_brick = index / token_blocks * params.tile_bricks;
    unit.bricks = min(params.tile_bricks, all_bricks - unit.first_brick);
    return unit;
  }

  /// Reads the experts' offsets and adds up their token blocks. All threads of the CTA.
  __device__ void build(const BandShared<C>& shared) const {
    constexpr int kEach = 8;  // experts of a thread
    static_assert(kEach * (BandTile::kMinWarps + 1) * 32 > kernels::kBandMaxExperts);
    const std::int32_t thread = static_cast<std::int32_t>(threadIdx.x), first = thread * kEach;
    std::int32_t counts[kEach], sum = 0;
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      counts[i] = 0;
      if (first + i >= params.experts) continue;
      const std::int32_t begin = params.expert_offsets[first + i];
      const std::int32_t end = params.expert_offsets[first + i + 1];
      shared.offsets[first + i] = begin;
      if (first + i + 1 == params.experts) shared.offsets[params.experts] = end;
      counts[i] = blocks(end - begin);
      sum += counts[i];
    }
    std::int32_t before = sum;  // inclusive, of the warp
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
      const std::int32_t other = __shfl_up_sync(0xffffffffu, before, step);
      if (thread % 32 >= step) before += other;
    }
    if (thread % 32 == 31) shared.totals[thread / 32] = before;
    __syncthreads();
    before -= sum;
    for (int warp = 0; warp < thread / 32; ++warp) before += shared.totals[warp];
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      if (first + i <= params.experts) shared.prefix[first + i] = before;
      before += counts[i];
    }
    __syncthreads();
  }
};

/// The steps of K, a stage each, of this CTA of the cluster.
struct BandSteps {
  std::int32_t begin, end;
  std::int32_t all_blocks;  ///< K blocks of the matrix: the last step may have fewer than a stage

  template <class C>
  static __device__ BandSteps of(const BandParams& params) {
    const std::int32_t blocks = (params.k + kernels::kBrickK - 1) / kernels::kBrickK;
    const std::int32_t steps = (blocks + C::kBlocks - 1) / C::kBlocks;
    const auto rank = static_cast<std::int32_t>(ptx::cluster_ctarank());
    return {steps * rank / params.cluster, steps * (rank + 1) / params.cluster, blocks};
  }
};

}  // namespace tilewright::tile
