// What a CTA of the bandwidth kernel works on: units, its part of K, and where things stand in
// shared memory.
#pragma once

#include "kernels/linear/band/band.h"
#include "ptx/cluster.h"
#include "ptx/warp_roles.h"
#include "tile/deep_position.h"
#include "tile/ring.h"

#include <cstdint>

namespace tilewright::tile {

using kernels::BandParams;
using kernels::BandTile;
using kernels::WeightFormat;

template <WeightFormat FormatValue, kernels::WordOrder OrderValue, int TokensValue,
          bool HasColumnsValue>
struct BandConfig {
  static constexpr WeightFormat kFormat = FormatValue;
  static constexpr kernels::WordOrder kOrder = OrderValue;
  static constexpr int kTokens = TokensValue;
  /// Whether matrices take columns of x and y of their own.
  static constexpr bool kHasColumns = HasColumnsValue;
  static constexpr int kBlocks = BandTile::stage_blocks(kFormat);
  static constexpr int kTokenBytes = BandTile::token_bytes(kFormat);
  static constexpr int kBrickBytes = kernels::brick_bytes(kFormat);
};

extern __shared__ __align__(128) std::uint8_t band_shared[];

/// The same value, but for the compiler one that it cannot compute again: ptxas would do so in
/// every round of a loop, rather than keep a register.
__device__ inline std::uint32_t keep(std::uint32_t value) {
  return __shfl_sync(0xffffffffu, value, static_cast<int>(threadIdx.x % 32));
}

/// a / power of two. A division would be kept in a register for all units, as it is dear to repeat.
__device__ inline std::int32_t divide_by_power(std::int32_t a, std::int32_t power) {
  return a >> (__ffs(power) - 1);
}

/// A barrier of all threads of the CTA. The roles pass it in branches of their own, where
/// __syncthreads() would be two barriers to the rules of CUDA, each without some threads.
inline constexpr std::uint32_t kBandBarrier = 1;
__device__ inline void band_sync() {
  ptx::bar_sync(kBandBarrier, blockDim.x);
}

/// Shared memory of a CTA, by the sizes of the launch.
struct BandShared {
  const kernels::BandCut& cut;
  std::uint32_t base;  ///< keep(shared_address(band_shared))

  /// Whole warps.
  __device__ explicit BandShared(const kernels::BandCut& c)
      : cut(c), base(keep(ptx::shared_address(band_shared))) {}

  __device__ std::uint32_t stage(std::uint32_t index) const {
    return base + index * cut.stage_bytes;
  }
  /// [source][slot][lane], of all warps that share a unit.
  __device__ float4* sums() const { return reinterpret_cast<float4*>(band_shared + cut.sums_at); }
  /// [experts + 1]: token blocks before an expert; rows before it.
  __device__ std::int32_t* prefix() const { return words(cut.prefix_at); }
  __device__ std::int32_t* offsets() const { return words(cut.offsets_at); }
  /// Per warp, while the prefix is built.
  __device__ std::int32_t* totals() const { return words(cut.totals_at); }

  /// full[stages], empty[stages]; then sums full, sums empty.
  __device__ std::uint32_t barriers() const { return base + cut.barriers_at; }
  __device__ std::uint32_t sums_full() const { return barriers() + 2 * BandTile::kMaxStages * 8; }
  __device__ std::uint32_t sums_empty() const { return sums_full() + 8; }

 private:
  static __device__ std::int32_t* words(std::uint32_t at) {
    return reinterpret_cast<std::int32_t*>(band_shared + at);
  }
};

/// A ring whose depth is known at the launch.
struct DeepRing {
  BandShared shared;

  using Position = DeepPosition;
  __device__ void advance(Position& at) const {
    at.advance(static_cast<std::uint32_t>(shared.cut.stages));
  }
  __device__ std::uint32_t memory(const Position& at) const { return shared.stage(at.stage); }
  __device__ std::uint32_t full(const Position& at) const {
    return shared.barriers() + at.stage * 8;
  }
  __device__ std::uint32_t empty(const Position& at) const {
    return full(at) + BandTile::kMaxStages * 8;
  }
  __device__ void wait_empty(const Position& at) const {
    ptx::mbarrier_wait_parity(empty(at), at.parity ^ 1);
  }
  __device__ void wait_full(const Position& at) const {
    ptx::mbarrier_wait_parity(full(at), at.parity);
  }
  /// Every lane of a warp that does not read the stage any more.
  __device__ void release(const Position& at) const {
    __syncwarp();
    if (threadIdx.x % 32 == 0) ptx::mbarrier_arrive(empty(at));
  }
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
  BandShared shared;

  __device__ std::int32_t blocks(std::int32_t tokens) const {
    return divide_by_power(tokens + params.cut.tile_tokens - 1, params.cut.tile_tokens);
  }
  __device__ bool is_grouped() const { return !C::kHasColumns && params.expert_offsets != nullptr; }
  __device__ std::int32_t count() const {
    return params.cut.row_tiles *
           (is_grouped() ? shared.prefix()[params.experts] : blocks(params.m)) *
           (C::kHasColumns ? params.experts : 1);
  }
  /// The expert to which token block `block` belongs.
  __device__ std::int32_t find_expert(std::int32_t block) const {
    std::int32_t low = 0, high = params.experts;  // prefix[low] <= block < prefix[high]
    while (high - low > 1) {
      const std::int32_t middle = (low + high) / 2;
      if (shared.prefix()[middle] <= block) {
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
    if constexpr (C::kHasColumns) {
      const std::int32_t of_matrix = params.cut.row_tiles * token_blocks;
      unit.matrix = index / of_matrix;
      index -= unit.matrix * of_matrix;
    }
    if (is_grouped()) {
      unit.matrix = find_expert(index / params.cut.row_tiles);
      const std::int32_t* prefix = shared.prefix() + unit.matrix;
      unit.first_row = shared.offsets()[unit.matrix];
      rows = shared.offsets()[unit.matrix + 1];
      token_blocks = prefix[1] - prefix[0];
      index -= prefix[0] * params.cut.row_tiles;
    }
    unit.first_row += index % token_blocks * params.cut.tile_tokens;
    unit.tokens = min(rows - unit.first_row, params.cut.tile_tokens);
    unit.first_brick = index / token_blocks * params.cut.tile_bricks;
    unit.bricks = min(params.cut.tile_bricks, params.cut.all_bricks - unit.first_brick);
    return unit;
  }

  /// Reads the experts' offsets and adds up their token blocks. All threads of the CTA.
  __device__ void build() const {
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
      shared.offsets()[first + i] = begin;
      if (first + i + 1 == params.experts) shared.offsets()[params.experts] = end;
      counts[i] = blocks(end - begin);
      sum += counts[i];
    }
    std::int32_t before = sum;  // inclusive, of the warp
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
      const std::int32_t other = __shfl_up_sync(0xffffffffu, before, step);
      if (thread % 32 >= step) before += other;
    }
    if (thread % 32 == 31) shared.totals()[thread / 32] = before;
    band_sync();
    before -= sum;
    for (int warp = 0; warp < thread / 32; ++warp) before += shared.totals()[warp];
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      if (first + i <= params.experts) shared.prefix()[first + i] = before;
      before += counts[i];
    }
    band_sync();
  }
};

/// The steps of K, a stage each, of this CTA of the cluster.
struct BandSteps {
  std::int32_t begin, end;

  __device__ explicit BandSteps(const kernels::BandCut& cut) {
    const auto rank = static_cast<std::int32_t>(ptx::cluster_ctarank());
    begin = divide_by_power(cut.all_steps * rank, cut.cluster);
    end = divide_by_power(cut.all_steps * (rank + 1), cut.cluster);
  }
};

}  // namespace tilewright::tile
