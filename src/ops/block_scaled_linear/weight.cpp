// Preparing a weight for Blackwell's block-scaled kernels.
#include "ops/block_scaled_linear/weight.h"

#include "base/error.h"
#include "device/internal.h"
#include "formats/scale_layout.h"
#include "ops/block_scaled_linear/plan.h"
#include "ops/block_scaled_linear/row_scales.h"
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
  return {pad_rows(weight, row_bytes), ops::block_scaled_row_scales(weight)};
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
