// The scales of a weight as Blackwell's tensor cores multiply them in: a byte for each block of a
// row.
#pragma once

#include "ops/linear/source.h"

#include <cstdint>
#include <vector>

namespace tilewright::ops {

/// In features that share a scale there: 16 or 32.
std::int64_t block_scale_columns(NumberFormat format) noexcept;

/// Row-major [n, k / block_scale_columns()]: ue4m3 of kNvfp4, else ue8m0. k is a multiple of 32.
/// Errors   InvalidArgument if a scale of kFp8 is no power of two
std::vector<std::uint8_t> block_scaled_row_scales(const HostWeight& weight);

}  // namespace tilewright::ops
