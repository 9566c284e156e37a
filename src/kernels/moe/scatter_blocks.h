// Contract of the scatter for products with block scales: the row of a token, quantised, goes to
// all rows of its experts.
#pragma once

#include "kernels/moe/permute.h"
#include "kernels/moe/scatter.h"

#include <cstdint>

namespace tilewright::kernels {

/// moe_scatter_mxfp8: format mxfp8_ceil. moe_scatter_nvfp4: format nvfp4 under a G for each row,
/// that which maps its largest magnitude to the top (1 for a row of zeros, or that is not finite);
/// 1 / G goes to row_scales. Codes [rows, hidden]; scales in tiles of 128 rows by 4, where each
/// expert begins a tile (formats/grouped_scales.h). What shares a scale with a NaN or an infinity
/// gets a NaN scale. Padding of scales along the rows is not written.
///
/// A CTA per token, of moe_scatter_threads(hidden rounded up to 128) threads; hidden a multiple of
/// 32, at most kMoeScatterMaxColumns.
struct MoeScatterBlocksParams {
  const std::uint16_t* x;            ///< bf16 [tokens, hidden], rows 16-byte aligned
  const std::int32_t* ids;           ///< [tokens, topk]
  const std::int32_t* slot_row;      ///< [tokens, topk], -1: nowhere
  const std::int32_t* offsets;       ///< [experts + 1]
  const std::int32_t* shared_first;  ///< [1] or null
  std::uint8_t* codes;               ///< rows 16-byte aligned
  std::uint8_t* scales;
  float* row_scales;  ///< [rows]; nvfp4
  std::int64_t x_stride;
  std::int32_t hidden, topk, experts;
};

/// moe_grouped_mxfp8, moe_grouped_nvfp4: likewise of rows that are grouped by experts already:
/// offsets[e] to offsets[e + 1]. Or, if that is null, each expert has room for `room` of them, of
/// which the first counts[e] (at least 0, at most room; null: all) are read and written. Codes,
/// scales and row_scales of a row have its number, as x. With counts, status gets how many are out
/// of range and the first such expert, where others have slots.
///
/// Grid (any, experts): the CTAs of an expert share its rows.
struct MoeGroupedRowsParams {
  const std::uint16_t* x;       ///< bf16 [experts, room, hidden], rows 16-byte aligned
  const std::int32_t* offsets;  ///< [experts + 1], or null
  const std::int32_t* counts;   ///< [experts], or null
  std::uint8_t* codes;          ///< rows 16-byte aligned
  std::uint8_t* scales;
  float* row_scales;      ///< of every row; nvfp4
  MoeStatus* status;      ///< written anew if there are counts
  std::int64_t x_stride;  ///< elements
  std::int32_t hidden, room, experts;
};

}  // namespace tilewright::kernels
