// Contract of the slab kernel of linear layers, for both chips: up to eight tokens, FP8 or bf16
// weights, every warp with a ring of its own.
#pragma once

#include "formats/packed_weight.h"

#include <algorithm>
#include <cstdint>

namespace tilewright::kernels {

/// What is done to x on the way in.
enum class SlabInput : std::int32_t {
  kRows,  ///< nothing: x is bf16
  /// x is f32, one matrix: x[i,:] * rsqrt(mean(x[i,:]^2) + eps) * norm, rounded to bf16.
  kNormalised,
  /// The last `rope_dims` of every `head_dim` columns, all matrices' side by side, are rotated by
  /// -positions[i], pairs (2j, 2j+1) in f32, rounded to bf16. A position < 0: they are not; one
  /// beyond the table: NaN.
  kTurnedBack,
};

/// y[i, e n + r] = alpha * sum over k of x[i, e k + c] w[e][r, c] + bias[e n + r], matrices e;
/// weights packed (packed_weight.h), x bf16, products exact, sums in f32. With several matrices x
/// has columns of each.
///
/// The order of all sums depends on the shape and the tile only: results repeat bit for bit, and
/// those of one token do not depend on others.
struct SlabParams {
  const std::uint8_t* weights;
  const float* block_scales;  ///< kFp8: [matrix][k / 128][scale_rows]
  const void* x;              ///< rows of x_stride elements, 16-byte aligned
  void* y;                    ///< bf16, or f32 if is_y_f32; rows of y_stride elements
  const float* bias;          ///< null: none
  std::int64_t x_stride, y_stride;
  std::int64_t matrix_bytes;  ///< from one matrix to the next
  std::int32_t m;             ///< rows, at most SlabTile::kMaxTokens
  std::int32_t n, k;          ///< of a matrix; k a multiple of 8
  std::int32_t matrices;
  std::int32_t scale_rows;  ///< kFp8: ceil(n / 128)
  std::int32_t is_y_f32;
  float alpha;  ///< with 2^bias_exponent of packed_weight.h
  SlabInput input;
  const std::uint16_t* norm;      ///< kNormalised: bf16 [k], never written
  const std::int32_t* positions;  ///< kTurnedBack: [m]
  const float* rope;              ///< kTurnedBack: [num_positions, rope_dims]: cosines, then sines
  std::int32_t num_positions, head_dim, rope_dims;  ///< multiples of 16
  float eps;
  // Of SlabTile: units of `bricks` bricks of rows; those of a team of warps in a CTA one after the
  // other, `slots` of them at most.
  std::int32_t all_bricks, row_tiles, all_blocks, units;
  std::int32_t k_warps, teams, slots, stages;
  std::uint32_t token_bytes, tokens_at, sums_at, scales_at, norm_at, barriers_at;
};

/// Two weights by the same rows, FP8 and bf16, in one launch: the first `fp8_ctas` CTAs have the
/// first.
struct SlabPairParams {
  SlabParams fp8, bf16;
  std::int32_t fp8_ctas;
};

/// How a launch cuts the problem. A unit is `bricks` bricks of rows by all of K of a matrix; a team
/// of `k_warps` warps computes it, each its blocks of K. Entries linear_slab_FORMAT_bBRICKS, FORMAT
/// fp8, bf16, BRICKS 1, 2, 4; linear_slab_pair has SlabPairParams, 2 bricks of FP8, 1 of bf16.
/// Grid: any number of CTAs; teams walk the units.
struct SlabTile {
  WeightFormat format;
  int bricks;   ///< 1, 2, 4
  int k_warps;  ///< of a team, at most blocks of K
  int teams;    ///< of a CTA
  int ctas;     ///< of the launch
  int stages;   ///< of a warp

  static constexpr int kMaxTokens = 8, kMaxWarps = 16, kMaxStages = 16;

  constexpr int warps() const { return k_warps * teams; }
  constexpr int threads() const { return warps() * 32; }
  constexpr int stage_bytes() const { return bricks * brick_bytes(format); }

  /// Everything of SlabParams that follows from sizes and tile; the end of shared memory.
  constexpr std::uint32_t cut(SlabParams& p) const {
    p.all_bricks = (p.n + kBrickRows - 1) / kBrickRows;
    p.row_tiles = (p.all_bricks + bricks - 1) / bricks;
    p.all_blocks = (p.k + kBrickK - 1) / kBrickK;
    p.units = p.matrices * p.row_tiles;
    p.k_warps = k_warps;
    p.teams = teams;
    p.slots = (p.units + ctas * teams - 1) / (ctas * teams);
    p.stages = stages;
    // The 16 bytes more spread tokens over the banks.
    p.token_bytes = static_cast<std::uint32_t>(p.all_blocks) * kBrickK * 2 + 16;
    p.tokens_at = static_cast<std::uint32_t>(warps() * stages * stage_bytes());
    const auto units_here = static_cast<std::uint32_t>(teams * p.slots);
    const auto m = static_cast<std::uint32_t>(p.m);
    p.sums_at = p.tokens_at + (p.matrices == 1 ? 1 : units_here) * m * p.token_bytes;
    p.scales_at =
        p.sums_at + units_here * static_cast<std::uint32_t>(k_warps * bricks) * kBrickRows * m * 4;
    p.norm_at = p.scales_at;
    if (format == WeightFormat::kFp8)
      p.norm_at += (units_here * static_cast<std::uint32_t>(scale_blocks(p)) * 4 + 15) / 16 * 16;
    p.barriers_at = p.norm_at;
    if (p.input == SlabInput::kNormalised) p.barriers_at += static_cast<std::uint32_t>(p.k) * 2;
    return p.barriers_at + static_cast<std::uint32_t>(warps() * stages) * 8;
  }
  /// Of a unit, along K.
  static constexpr std::int32_t scale_blocks(const SlabParams& p) { return (p.all_blocks + 1) / 2; }
};

}  // namespace tilewright::kernels
