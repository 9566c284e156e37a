// Contract of the bandwidth kernel of linear layers, for both chips: few tokens, every weight read
// once.
#pragma once

#include "formats/packed_weight.h"

#include <algorithm>
#include <cstdint>

namespace tilewright::kernels {

inline constexpr int kBandMaxExperts = 512;

/// The launch's tile and what follows from it: computed on the host, because operands out of the
/// parameters cost no registers.
struct BandCut {
  std::int32_t tile_bricks, tile_tokens, stages, cluster, k_groups;  ///< of BandTile
  std::int32_t all_bricks;                                           ///< ceil(n / 16)
  std::int32_t row_tiles;                                            ///< of a matrix
  std::int32_t all_blocks;                                           ///< ceil(k / 64)
  std::int32_t all_steps;                                            ///< of K, a stage each
  // Shared memory: a stage's size, its tokens, its block scales; from the start of it: sums of all
  // warps that share a unit, barriers, the table of units (two times experts + 1 words, 16 words).
  std::uint32_t stage_bytes, tokens_at, scales_at;
  std::uint32_t sums_at, barriers_at, prefix_at, offsets_at, totals_at;
};

/// y[i, r] = alpha * alphas[e] * sum over k of x[token(i), k] w[e][r, k] + bias[e][r], rows i of
/// matrix e; weights packed (packed_weight.h), x bf16, products exact, sums in f32.
///
/// Dense: expert_offsets is null, one matrix, rows 0..m. Grouped: rows expert_offsets[e] to
/// expert_offsets[e + 1] belong to matrix e; token(i) = row_token[i], or i if that is null. Entries
/// of groups: rows 0..m, of which matrix e takes the columns of x from e * k on, and makes those of
/// y from e * n on.
///
/// With is_swiglu the packed rows are those of swiglu_row() (n counts both, 2 * columns), and
///     gate = sum of the gate row, up = that of the up row, with alphas[2 e] and alphas[2 e + 1]
///     gate = min(gate, limit), up = clamp(up, -limit, limit)
///     y[i, c] = gate * sigmoid(gate_slope * gate) * (up + up_offset) * row_weight[i]
///
/// The order of all sums depends on the shape and the tile only: results repeat bit for bit, and
/// those of one token do not depend on others (but for the tile that their number chooses).
struct BandParams {
  const std::uint8_t* weights;
  const float* block_scales;           ///< kFp8: [matrix][k / 128][scale_halves][scale_rows]
  const std::uint16_t* x;              ///< rows of x_stride elements, 16-byte aligned
  void* y;                             ///< bf16, or f32 if is_y_f32; rows of y_stride elements
  const float* bias;                   ///< [matrix][n] in packed order; null: none
  const float* alphas;                 ///< [matrix], SwiGLU [matrix][2]; null: 1
  const std::int32_t* expert_offsets;  ///< [experts + 1]; null: dense
  const std::int32_t* row_token;       ///< null: rows are x's rows
  const float* row_weight;             ///< SwiGLU, per row; null: 1
  std::int64_t x_stride, y_stride;
  std::int64_t matrix_bytes;  ///< from one matrix to the next
  std::int32_t m;             ///< rows; not grouped
  std::int32_t n, k;          ///< k a multiple of 8
  std::int32_t experts;       ///< matrices; grouped at most kBandMaxExperts
  std::int32_t scale_halves;  ///< kFp8: 1; SwiGLU 2, gate and up have scales of their own
  std::int32_t scale_rows;    ///< kFp8: ceil(n / 128); SwiGLU ceil(n / 256)
  std::int32_t is_y_f32, is_swiglu;
  float alpha;                  ///< with 2^bias_exponent of packed_weight.h
  float limit;                  ///< SwiGLU; infinity: none
  float gate_slope, up_offset;  ///< SwiGLU; 1 and 0
  BandCut cut;                  ///< BandTile::cut(), last
};

/// How a launch cuts the problem. Entries linear_band_FORMAT_nTOKENS, FORMAT nvfp4, nvfp4_braided,
/// mxfp4, mxfp4_braided, fp8, bf16, and of groups fp8_groups, bf16_groups; TOKENS 32, or 64 for
/// tiles of more tokens; of braided codes also 8, with registers for three CTAs on an SM. Grid: a
/// multiple of `cluster`; clusters walk the units (matrix, token block, row tile), so any number of
/// them is right.
struct BandTile {
  WeightFormat format;
  int tokens;    ///< 8, 16, 32 or 64: the most of a unit
  int warps;     ///< side by side along the rows, 32 rows each
  int k_groups;  ///< groups of so many warps, each with stages of its own: 1 or 2. (A group that
                 ///< skipped rounds of a stage could mistake one round for the next but one.)
  int cluster;   ///< CTAs that share a unit's K: 1, 2, 4, 8
  int stages;    ///< 2..kMaxStages, a multiple of k_groups
  bool is_grouped;
  bool is_narrow = false;  ///< the entry of 8 tokens

  static constexpr int kMinWarps = 2, kMaxWarps = 8, kMaxStages = 16;
  static constexpr int kWarpRows = 32, kWarpBricks = 2;

  constexpr int entry_tokens() const { return is_narrow ? 8 : tokens <= 32 ? 32 : 64; }
  static constexpr int max_threads(int entry_tokens) {
    return entry_tokens == 32 ? 512 : entry_tokens == 8 ? 288 : 256;
  }
  /// For which an entry leaves registers; two of 32 tokens fit with up to 256 threads.
  static constexpr int min_ctas(int entry_tokens) { return entry_tokens == 8 ? 3 : 1; }
  constexpr int rows() const { return warps * kWarpRows; }
  constexpr int bricks() const { return warps * kWarpBricks; }
  constexpr int threads() const { return (warps * k_groups + 1) * 32; }
  constexpr bool is_possible() const {
    return tokens <= entry_tokens() && warps >= kMinWarps &&
           warps <= (is_narrow ? kMaxWarps : kMaxWarps - 1) &&
           threads() <= max_threads(entry_tokens()) && stages >= 2 && stages <= kMaxStages &&
           stages % k_groups == 0;
  }
  /// K blocks of 64 in a stage.
  static constexpr int stage_blocks(WeightFormat format) {
    return format == WeightFormat::kBf16 ? 1 : 2;
  }
  /// A token's part of a stage; the 16 bytes more spread tokens over the banks.
  static constexpr int token_bytes(WeightFormat format) { return stage_blocks(format) * 128 + 16; }

  constexpr int stage_bytes() const {
    return weight_stage_bytes() + tokens * token_bytes(format) +
           (format == WeightFormat::kFp8 ? 64 : 0);
  }
  constexpr int shared_bytes() const {
    const int words = is_grouped ? 2 * (kBandMaxExperts + 1) + 16 : 0;
    return stages * stage_bytes() + sums_bytes() + kBarrierBytes + words * 4;
  }

  constexpr BandCut cut(std::int32_t n, std::int32_t k) const {
    BandCut c = {};
    c.tile_bricks = bricks();
    c.tile_tokens = tokens;
    c.stages = stages;
    c.cluster = cluster;
    c.k_groups = k_groups;
    c.all_bricks = (n + kBrickRows - 1) / kBrickRows;
    c.row_tiles = (c.all_bricks + bricks() - 1) / bricks();
    c.all_blocks = (k + kBrickK - 1) / kBrickK;
    c.all_steps = (c.all_blocks + stage_blocks(format) - 1) / stage_blocks(format);
    c.stage_bytes = static_cast<std::uint32_t>(stage_bytes());
    c.tokens_at = static_cast<std::uint32_t>(weight_stage_bytes());
    c.scales_at = c.tokens_at + static_cast<std::uint32_t>(tokens * token_bytes(format));
    c.sums_at = static_cast<std::uint32_t>(stages * stage_bytes());
    c.barriers_at = c.sums_at + static_cast<std::uint32_t>(sums_bytes());
    c.prefix_at = c.barriers_at + kBarrierBytes;
    c.offsets_at = c.prefix_at + (kBandMaxExperts + 1) * 4;
    c.totals_at = c.offsets_at + (kBandMaxExperts + 1) * 4;
    return c;
  }
  /// Units of a matrix that is not grouped: each is work for one cluster.
  constexpr std::int64_t units(std::int64_t m, std::int64_t n) const {
    return (n + rows() - 1) / rows() * ((m + tokens - 1) / tokens);
  }

 private:
  static constexpr int kBarrierBytes = (2 * kMaxStages + 2) * 8;

  constexpr int weight_stage_bytes() const {
    return stage_blocks(format) * bricks() * brick_bytes(format);
  }
  constexpr int sums_bytes() const {
    if (cluster * k_groups == 1) return 0;
    const int fragments = bricks() * tokens / 8;
    return (fragments + cluster - 1) / cluster * cluster * k_groups * 512;
  }
};

}  // namespace tilewright::kernels
