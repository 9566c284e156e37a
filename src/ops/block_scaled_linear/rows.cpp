#include "ops/block_scaled_linear/rows.h"

#include "base/error.h"
#include "formats/packed_matrix.h"
#include "ops/block_scaled_linear/kernels.h"
#include "ops/block_scaled_linear/plan.h"
#include "ops/operator/ceil_div.h"

#include <algorithm>
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
          "weight with such scales, or prepare it for bf16 or fp8 activations, which take any.",
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

// For the tensor cores the highest bit of a ue4m3 scale is no sign: a negative zero becomes zero.
std::vector<std::uint8_t> row_scales(const HostWeight& weight) {
  if (weight.format == NumberFormat::kFp8) return spread_scales(weight);
  std::vector<std::uint8_t> scales(weight.scales.begin(), weight.scales.end());
  if (weight.format == NumberFormat::kNvfp4) {
    for (std::uint8_t& code : scales) code &= 0x7f;
  }
  return scales;
}

// Row r goes to row place(r) of `to`, where rows are `pitch` bytes apart.
template <class Place>
void place_rows(std::span<const std::uint8_t> from, std::int64_t rows, std::int64_t pitch,
                const Place& place, std::vector<std::uint8_t>& to) {
  const std::int64_t bytes = std::ssize(from) / rows;
  for (std::int64_t r = 0; r < rows; ++r) {
    const auto row =
        from.subspan(static_cast<std::size_t>(r * bytes), static_cast<std::size_t>(bytes));
    std::ranges::copy(row, to.begin() + place(r) * pitch);
  }
}

}  // namespace

std::int64_t block_scale_columns(NumberFormat format) noexcept {
  return format == NumberFormat::kNvfp4 ? 16 : 32;
}

std::int64_t block_scaled_row_bytes(NumberFormat format, std::int64_t k) {
  return block_scaled_variants(block_scaled_kind(format), false).front().weight_row_bytes(k);
}

BlockScaledRows block_scaled_rows(std::span<const HostWeight* const> parts) {
  const HostWeight& first = *parts.front();
  const std::int64_t rows = first.n, all = rows * std::ssize(parts);
  const std::int64_t row_bytes = block_scaled_row_bytes(first.format, first.k);
  const std::int64_t scales = first.k / block_scale_columns(first.format);
  BlockScaledRows out{std::vector<std::uint8_t>(static_cast<std::size_t>(all * row_bytes)),
                      std::vector<std::uint8_t>(static_cast<std::size_t>(all * scales))};
  for (std::size_t part = 0; part < parts.size(); ++part) {
    const auto place = [&](std::int64_t row) -> std::int64_t {
      if (parts.size() == 1) return row;
      return kernels::swiglu_row(static_cast<std::int32_t>(row), part == 1);
    };
    place_rows(parts[part]->values, rows, row_bytes, place, out.values);
    place_rows(row_scales(*parts[part]), rows, scales, place, out.scales);
  }
  return out;
}

}  // namespace tilewright::ops
