#include "ops/block_scaled_linear/row_scales.h"

#include "base/error.h"
#include "ops/operator/ceil_div.h"

#include <cmath>

namespace tilewright::ops {

namespace {

// The code of a scale that is a power of two.
std::uint8_t power_of_two(const HostWeight& weight, std::size_t block) {
  const float scale = weight.block_scales[block];
  int exponent = 0;
  const bool is_exact = std::isfinite(scale) && std::frexp(scale, &exponent) == 0.5f;
  const auto blocks = static_cast<std::size_t>(ceil_div(weight.k, kFp8Block));
  require(is_exact && exponent >= -126 && exponent <= 128, ErrorKind::kInvalidArgument,
          "block-scaled linear: the scale of rows from {} and columns from {} is {}; expected a "
          "power of two from 2^-127 to 2^127, as the tensor cores multiply it in. Requantise the "
          "weight with such scales, or take Linear, which takes any.",
          block / blocks * kFp8Block, block % blocks * kFp8Block, scale);
  return static_cast<std::uint8_t>(exponent - 1 + 127);
}

// A scale for 128 x 128 numbers stands for four scales of 32 in each of 128 rows.
std::vector<std::uint8_t> spread_scales(const HostWeight& weight) {
  std::vector<std::uint8_t> codes;
  for (std::size_t block = 0; block < weight.block_scales.size(); ++block)
    codes.push_back(power_of_two(weight, block));
  constexpr std::int64_t kShared = 32;
  const std::int64_t of_row = weight.k / kShared, blocks = ceil_div(weight.k, kFp8Block);
  std::vector<std::uint8_t> scales;
  for (std::int64_t row = 0; row < weight.n; ++row) {
    for (std::int64_t i = 0; i < of_row; ++i) {
      const std::int64_t block = row / kFp8Block * blocks + i * kShared / kFp8Block;
      scales.push_back(codes[static_cast<std::size_t>(block)]);
    }
  }
  return scales;
}

}  // namespace

std::int64_t block_scale_columns(NumberFormat format) noexcept {
  return format == NumberFormat::kNvfp4 ? 16 : 32;
}

// For the tensor cores the highest bit of a ue4m3 scale is no sign: a negative zero becomes zero.
std::vector<std::uint8_t> block_scaled_row_scales(const HostWeight& weight) {
  if (weight.format == NumberFormat::kFp8) return spread_scales(weight);
  std::vector<std::uint8_t> scales(weight.scales.begin(), weight.scales.end());
  if (weight.format == NumberFormat::kNvfp4) {
    for (std::uint8_t& code : scales) code &= 0x7f;
  }
  return scales;
}

}  // namespace tilewright::ops
