// Contract of Blackwell's grouped products: rows of experts by weights of 4 or 8 bits with block
// scales, as the tensor cores multiply them.
#pragma once

#include "kernels/linear/block_scaled/sm100_block_scaled.h"

#include <cstdint>

namespace tilewright::kernels {

/// Entries sm100_moe_STEM_gate_up_TILE and sm100_moe_STEM_down_TILE. Tiles are 2cta_n256, and few:
/// one CTA, up to 64 rows of an expert by 128 columns, for which operands change places.
/// For the rows r of expert e, which are offsets[e] to offsets[e + 1], or the first counts[e] (at
/// least 0, at most room; all of it without counts) from e * room on, with
/// p[r,j] = s[r] sum_l a[r,l] sa[r,l/v] b[e,j,l] sb[e,j,l/v]:
///
///   gate_up   h[r,c] = w[r] swiglu(alphas[e,0] p[r, gate row c], alphas[e,1] p[r, up row c]),
///             quantised: NVFP4 under gemm.encode_scale if a is NVFP4, else MXFP8 whose scales do
///             not saturate (formats mxfp8_ceil); gate and up rows in turns of 8 (swiglu_row())
///   down      y[r,j] = gemm.alpha alphas[e] p[r,j] in bf16
///
/// Scales of rows, sa and those of h, are in tiles of 128 rows by 4; each expert begins a tile
/// (formats/grouped_scales.h). What is between experts is not looked at, nor written.
///
/// Members of `gemm`, where they differ from a GEMM's: m is the rows there may be; n the columns of
/// p for an expert; d_map and has_d_map are for down, of rows [m, n]; tiles_n as there. a_map
/// [m, ..] in boxes of 128 bytes x a_box_rows; b_map in boxes of weight_box_rows() and b_scale_map,
/// of all experts, one behind the other, scales in whole tiles for each. Few rows: a and b name
/// the same, though the weight is the instruction's A, and there is no d_map.
struct MoeGroupedParams {
  BlockScaledGemmParams gemm;
  const std::int32_t* offsets;  ///< [experts + 1]; null: by room and counts
  const std::int32_t* counts;   ///< [experts]; null: all room
  const float* alphas;          ///< gate_up [experts, 2], down [experts]; null: all 1
  const float* row_scales;      ///< s [rows]; null: all 1
  const float* row_weights;     ///< w [rows]; null: all 1. Of gate_up
  std::int32_t room;            ///< rows from the first of an expert to the first of the next
  float limit;                  ///< of swiglu
  std::int32_t experts;
  std::int32_t a_box_rows;  ///< 8, 16, 32, 64 or 128: what few rows load at a time
  std::int32_t b_atoms;     ///< tiles of scales down the rows of one expert's weight
};

inline constexpr int kMoeGroupedMaxExperts = 385;  ///< a shared one among them
/// Of shared memory, beside a GEMM's: first rows and tiles of the experts.
inline constexpr int kMoeGroupedTableBytes = 4096;

/// The tiles that grouped products come in.
constexpr BlockScaledConfig grouped_config(BlockScaledKind kind, bool is_few) {
  if (is_few) return {.kind = kind, .tile = {1, 64, 1}, .is_swapped = true};
  return {.kind = kind, .tile = {2, 256, 1}};
}

/// Dynamic shared memory to launch with.
constexpr int grouped_shared_bytes(const BlockScaledConfig& c) {
  return c.shared_bytes() + kMoeGroupedTableBytes;
}

}  // namespace tilewright::kernels
