// Preparing a weight for Blackwell's block-scaled kernels.
#include "ops/block_scaled_linear/weight.h"

#include "base/error.h"
#include "device/internal.h"
#include "formats/scale_layout.h"
#include "ops/block_scaled_linear/plan.h"
#include "ops/linear/source.h"

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

// In the order of the tensor cores, for which the highest bit of a ue4m3 scale is no sign: a
// negative zero becomes zero.
std::vector<std::uint8_t> order_scales(const ops::HostWeight& weight) {
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
