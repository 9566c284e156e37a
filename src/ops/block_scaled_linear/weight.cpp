// Preparing a weight for Blackwell's block-scaled kernels.
#include "ops/block_scaled_linear/weight.h"

#include "base/error.h"
#include "device/internal.h"
#include "formats/scale_layout.h"
#include "ops/block_scaled_linear/plan.h"
#include "ops/block_scaled_linear/rows.h"
#include "ops/linear/source.h"

#include <utility>
#include <vector>

namespace tilewright {

namespace {

void require_alike(const ops::HostWeight& gate, const ops::HostWeight& up) {
  require(gate.n == up.n && gate.k == up.k, ErrorKind::kInvalidArgument,
          "block-scaled linear: the gate is [{}, {}] and up is [{}, {}]; expected equal shapes",
          gate.n, gate.k, up.n, up.k);
}

}  // namespace

BlockScaledWeight BlockScaledWeight::prepare(const Device& device,
                                             const LinearWeightSource& source) {
  ops::block_scaled_kind(source.format);  // refuses what is none
  ops::require_one_group(source);
  const ops::HostWeight weight = ops::check_weight_source(source, &opened(device));
  require(weight.k % 32 == 0, ErrorKind::kInvalidArgument,
          "block-scaled linear: the weight is [{}, {}], so k = {}; expected a multiple of 32. Pad "
          "it and x with zeros along k.",
          weight.n, weight.k, weight.k);
  const bool is_gate_up = source.up_values.data != nullptr;
  std::vector<const ops::HostWeight*> parts = {&weight};
  ops::HostWeight up;
  if (is_gate_up) {
    LinearWeightSource other = source;
    other.values = source.up_values, other.scales = source.up_scales;
    up = ops::check_weight_source(other, &opened(device));
    require_alike(weight, up);
    parts.push_back(&up);
  }
  const ops::BlockScaledRows rows = ops::block_scaled_rows(parts);
  const std::int64_t n = is_gate_up ? 2 * weight.n : weight.n;
  const std::int64_t scale_columns = weight.k / ops::block_scale_columns(weight.format);
  const device::Device& internal = opened(device);
  return BlockScaledWeight(std::make_shared<const State>(
      State{device,
            {weight.format, n, weight.k, is_gate_up},
            device::Buffer::from(internal, rows.values),
            device::Buffer::from(internal, swizzle_scales(rows.scales, n, scale_columns)),
            ops::block_scaled_row_bytes(weight.format, weight.k),
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
