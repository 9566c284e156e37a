// Preparing a weight for Blackwell's block-scaled kernels.
#include "ops/block_scaled_linear/weight.h"

#include "base/error.h"
#include "device/internal.h"
#include "formats/scale_layout.h"
#include "ops/block_scaled_linear/plan.h"
#include "ops/linear/source.h"
#include "ops/operator/ceil_div.h"

#include <cmath>
#include <cstring>
#include <utility>

namespace tilewright {

namespace {

// Rows of zeros behind the end of k, where rows have to be longer.
std::vector<std::uint8_t> pad_rows(const ops::HostWeight& weight, std::int64_t row_bytes) {
  const auto from = static_cast<std::size_t>(weight.value_row_bytes());
  const auto to = static_cast<std::size_t>(row_bytes);
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(weight.n) * to);
  for (std::size_t row = 0; row < static_cast<std::size_t>(weight.n); ++row)
    std::memcpy(&bytes[row * to], &weight.values[row * from], from);
  return bytes;
}

// The code of a scale that is a power of two.
std::uint8_t power_of_two(const ops::HostWeight& weight, std::size_t block) {
  const float scale = weight.block_scales[block];
  int exponent = 0;
  const bool is_exact = std::isfinite(scale) && std::frexp(scale, &exponent) == 0.5f;
  const auto blocks = static_cast<std::size_t>(ops::ceil_div(weight.k, ops::kFp8Block));
  require(is_exact && exponent >= -126 && exponent <= 128, ErrorKind::kInvalidArgument,
          "block-scaled linear: the scale of rows from {} and columns from {} is {}; expected a "
          "power of two from 2^-127 to 2^127, as the tensor cores multiply it in. Requantise the "
          "weight with such scales, or take Linear, which takes any.",
          block / blocks * ops::kFp8Block, block % blocks * ops::kFp8Block, scale);
  return static_cast<std::uint8_t>(exponent - 1 + 127);
}

// A scale for 128 x 128 numbers stands for four scales of 32 in each of 128 rows.
std::vector<std::uint8_t> spread_scales(const ops::HostWeight& weight) {
  std::vector<std::uint8_t> codes;
  for (std::size_t block = 0; block < weight.block_scales.size(); ++block)
    codes.push_back(power_of_two(weight, block));
  constexpr std::int64_t kShared = 32;
  const std::int64_t of_row = weight.k / kShared, blocks = ops::ceil_div(weight.k, ops::kFp8Block);
  std::vector<std::uint8_t> scales;
  for (std::int64_t row = 0; row < weight.n; ++row) {
    for (std::int64_t i = 0; i < of_row; ++i) {
      const std::int64_t block = row / ops::kFp8Block * blocks + i * kShared / ops::kFp8Block;
      scales.push_back(codes[static_cast<std::size_t>(block)]);
    }
  }
  return swizzle_scales(scales, weight.n, of_row);
}

// In the order of the tensor cores, for which the highest bit of a ue4m3 scale is no sign: a
// negative zero becomes zero.
std::vector<std::uint8_t> order_scales(const ops::HostWeight& weight) {
  if (weight.format == NumberFormat::kFp8) return spread_scales(weight);
  std::vector<std::uint8_t> scales =
      swizzle_scales(weight.scales, weight.n, weight.scale_row_bytes());
  if (weight.format == NumberFormat::kNvfp4) {
    for (std::uint8_t& code : scales) code &= 0x7f;
  }
  return scales;
}

}  // namespace

BlockScaledWeight BlockScaledWeight::prepare(const Device& device,
                                             const LinearWeightSource& source) {
  const kernels::BlockScaledKind kind = ops::block_scaled_kind(source.format);
  const ops::HostWeight weight = ops::check_weight_source(source, &opened(device));
  require(weight.k % 32 == 0, ErrorKind::kInvalidArgument,
          "block-scaled linear: the weight is [{}, {}], so k = {}; expected a multiple of 32. Pad "
          "it and x with zeros along k.",
          weight.n, weight.k, weight.k);
  const std::int64_t row_bytes =
      ops::block_scaled_variants(kind, false).front().weight_row_bytes(weight.k);
  const device::Device& internal = opened(device);
  return BlockScaledWeight(std::make_shared<const State>(
      State{device,
            {weight.format, weight.n, weight.k},
            row_bytes == weight.value_row_bytes()
                ? device::Buffer::from(internal, weight.values)
                : device::Buffer::from(internal, pad_rows(weight, row_bytes)),
            device::Buffer::from(internal, order_scales(weight)),
            row_bytes,
            weight.global_scale}));
}

BlockScaledWeight::BlockScaledWeight(std::shared_ptr<const State> state) noexcept
    : state_(std::move(state)) {}

const BlockScaledWeightInfo& BlockScaledWeight::info() const noexcept {
  return state_->info;
}

std::size_t BlockScaledWeight::bytes() const noexcept {
  return state_->values.size_bytes() + state_->scales.size_bytes();
}

const Device& BlockScaledWeight::device() const noexcept {
  return state_->handle;
}

}  // namespace tilewright
