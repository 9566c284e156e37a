// The rows of a weight as Blackwell's tensor cores multiply them: codes, and a scale for each block
// of a row.
#pragma once

#include "ops/linear/source.h"

#include <cstdint>
#include <span>
#include <vector>

namespace tilewright::ops {

/// In features that share a scale there: 16 or 32.
std::int64_t block_scale_columns(NumberFormat format) noexcept;

/// Of a row's codes: whole 128 elements where a tensor copy unpacks them.
std::int64_t block_scaled_row_bytes(NumberFormat format, std::int64_t k);

struct BlockScaledRows {
  /// Rows of block_scaled_row_bytes(), zeros behind the end of k.
  std::vector<std::uint8_t> values;
  /// Row-major [rows, k / block_scale_columns()]: ue4m3 of kNvfp4, else ue8m0.
  std::vector<std::uint8_t> scales;
};

/// Of one weight; of two, the gate and what it multiplies, rows in turns of eight (swiglu_row()).
/// Parts have one format and shape, k a multiple of 32.
/// Errors   InvalidArgument if a scale of kFp8 is no power of two
BlockScaledRows block_scaled_rows(std::span<const HostWeight* const> parts);

}  // namespace tilewright::ops
