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

// Row-major scales, a row for each row of the weight. A scale for 128 x 128 numbers stands for four
// scales of 32 in each of 128 rows.
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
  return scales;
}

// Row-major as the tensor cores take them: the highest bit of a ue4m3 scale is no sign, so a
// negative zero becomes zero.
std::vector<std::uint8_t> plain_scales(const ops::HostWeight& weight) {
  if (weight.format == NumberFormat::kFp8) return spread_scales(weight);
  std::vector<std::uint8_t> scales(weight.scales.begin(), weight.scales.end());
  if (weight.format == NumberFormat::kNvfp4) {
    for (std::uint8_t& code : scales) code &= 0x7f;
  }
  return scales;
}

// Rows of two matrices in turns of eight.
std::vector<std::uint8_t> interleave(const std::vector<std::uint8_t>& gate,
                                     const std::vector<std::uint8_t>& up, std::int64_t rows) {
  constexpr std::size_t kTurn = 8;
  const std::size_t turn_bytes = gate.size() / static_cast<std::size_t>(rows) * kTurn;
  std::vector<std::uint8_t> all;
  all.reserve(2 * gate.size());
  for (std::size_t at = 0; at < gate.size(); at += turn_bytes) {
    for (const auto* const from : {&gate, &up})
      all.insert(all.end(), from->begin() + static_cast<std::ptrdiff_t>(at),
                 from->begin() + static_cast<std::ptrdiff_t>(at + turn_bytes));
  }
  return all;
}

// Rows as the kernels read them.
struct Rows {
  std::vector<std::uint8_t> values, scales;
};

Rows make_rows(const ops::HostWeight& weight, std::int64_t row_bytes) {
  return {pad_rows(weight, row_bytes), plain_scales(weight)};
}

void require_alike(const ops::HostWeight& gate, const ops::HostWeight& up) {
  require(gate.n == up.n && gate.k == up.k, ErrorKind::kInvalidArgument,
          "block-scaled linear: the gate is [{}, {}] and up is [{}, {}]; expected equal shapes",
          gate.n, gate.k, up.n, up.k);
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
  Rows rows = make_rows(weight, row_bytes);
  const bool is_gate_up = source.up_values.data != nullptr;
  if (is_gate_up) {
    LinearWeightSource other = source;
    other.values = source.up_values, other.scales = source.up_scales;
    const ops::HostWeight up = ops::check_weight_source(other, &opened(device));
    require_alike(weight, up);
    const Rows of_up = make_rows(up, row_bytes);
    rows = {interleave(rows.values, of_up.values, weight.n),
            interleave(rows.scales, of_up.scales, weight.n)};
  }
  const std::int64_t n = is_gate_up ? 2 * weight.n : weight.n;
  const std::int64_t scale_columns = std::ssize(rows.scales) / n;
  const device::Device& internal = opened(device);
  return BlockScaledWeight(std::make_shared<const State>(
      State{device,
            {weight.format, n, weight.k, is_gate_up},
            device::Buffer::from(internal, rows.values),
            device::Buffer::from(internal, swizzle_scales(rows.scales, n, scale_columns)),
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
