#include "ops/moe/weights.h"

#include "base/error.h"
#include "base/tensor.h"
#include "device/device.h"
#include "device/internal.h"
#include "formats/packed_matrix.h"
#include "ops/linear/pack.h"
#include "ops/linear/source.h"
#include "ops/linear/spread.h"
#include "ops/moe/block_scaled_experts.h"
#include "ops/operator/ceil_div.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <utility>

namespace tilewright {

namespace {

using device::Buffer;
using ops::ceil_div;
using ops::HostWeight;
using ops::PackedExperts;

template <class... Args>
void check(bool condition, fmt::format_string<Args...> format, Args&&... args) {
  if (condition) return;
  fail(ErrorKind::kInvalidArgument, "moe: {}", fmt::format(format, std::forward<Args>(args)...));
}

// One projection of one expert, and what to call it.
struct Named {
  const LinearWeightSource* source;
  std::string name;
};

// The matrices of a projection, the shared expert's last.
std::vector<Named> list(const std::vector<LinearWeightSource>& experts,
                        const std::vector<LinearWeightSource>& shared, const char* projection) {
  std::vector<Named> all;
  for (std::size_t e = 0; e < experts.size(); ++e)
    all.push_back({&experts[e], fmt::format("{} of expert {}", projection, e)});
  for (const LinearWeightSource& source : shared)
    all.push_back({&source, fmt::format("{} of the shared expert", projection)});
  return all;
}

HostWeight open(const Named& named, const device::Device& device) {
  try {
    ops::require_one_group(*named.source);
    return ops::check_weight_source(*named.source, &device);
  } catch (const Error& error) {
    throw Error(error.kind(), fmt::format("moe: {}: {}", named.name, error.what()));
  }
}

void check_counts(const MoeWeightsSource& s) {
  check(!s.gate.empty() && s.gate.size() == s.up.size() && s.gate.size() == s.down.size(),
        "{} gate, {} up and {} down projections; expected one of each for every expert",
        s.gate.size(), s.up.size(), s.down.size());
  check(s.gate.size() <= 384, "{} experts; expected 1 to 384", s.gate.size());
  check(s.shared_gate.size() <= 1 && s.shared_gate.size() == s.shared_up.size() &&
            s.shared_gate.size() == s.shared_down.size(),
        "{} gate, {} up and {} down projections of shared experts; expected none or one of each",
        s.shared_gate.size(), s.shared_up.size(), s.shared_down.size());
}

void check_shape(const Named& named, const HostWeight& weight, NumberFormat format, std::int64_t n,
                 std::int64_t k) {
  check(weight.format == format, "{} is {}; expected {} as that of expert 0. Quantise it alike.",
        named.name, to_string(weight.format), to_string(format));
  check(weight.n == n && weight.k == k, "{} is [{}, {}]; expected [{}, {}]", named.name, weight.n,
        weight.k, n, k);
}

// Rows of a packed matrix: of one weight, or gate and up in turns of 8.
std::vector<ops::PackRow> rows_of(const std::vector<const HostWeight*>& parts) {
  const bool is_pair = parts.size() == 2;
  const HostWeight& first = *parts[0];
  std::vector<ops::PackRow> rows(static_cast<std::size_t>(first.n) * parts.size());
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const HostWeight& w = *parts[p];
    for (std::int64_t r = 0; r < w.n; ++r) {
      const auto column = static_cast<std::int32_t>(r);
      const std::int32_t row = is_pair ? kernels::swiglu_row(column, p == 1) : column;
      rows[static_cast<std::size_t>(row)] = {
          w.values.data() + r * w.value_row_bytes(),
          w.scales.empty() ? nullptr : w.scales.data() + r * w.scale_row_bytes()};
    }
  }
  return rows;
}

// [k / 128][row / 128] of each part, side by side.
void append_block_scales(const std::vector<const HostWeight*>& parts, std::vector<float>& out) {
  const std::int64_t blocks_n = ceil_div(parts[0]->n, ops::kFp8Block);
  const std::int64_t blocks_k = ceil_div(parts[0]->k, ops::kFp8Block);
  for (std::int64_t k = 0; k < blocks_k; ++k) {
    for (const HostWeight* const w : parts) {
      for (std::int64_t n = 0; n < blocks_n; ++n)
        out.push_back(w->block_scales[static_cast<std::size_t>(n * blocks_k + k)]);
    }
  }
}

// Packs the experts one by one into device memory, FP4 codes in the order that kernels of all
// activations read: a plan may take any of them, whatever another plan takes.
class Packer {
 public:
  Packer(const device::Device& device, std::size_t matrices, std::size_t parts, NumberFormat format,
         std::int64_t n, std::int64_t k)
      : device_(device),
        shape_{ops::to_kernel(format),
               static_cast<std::int32_t>(n * static_cast<std::int64_t>(parts)),
               static_cast<std::int32_t>(k)},
        bricks_(device, matrices * static_cast<std::size_t>(shape_.bytes())),
        staging_(static_cast<std::size_t>(shape_.bytes())) {}

  // The next matrix: one weight, or gate and up.
  void add(const std::vector<const HostWeight*>& parts) {
    std::uint8_t largest = 0, smallest = 255;
    for (const HostWeight* const w : parts) {
      largest = std::max(largest, w->largest_scale);
      smallest = std::min(smallest, w->smallest_scale);
    }
    HostWeight span = {};
    span.format = parts[0]->format;
    span.largest_scale = largest;
    span.smallest_scale = smallest;
    ops::require_scale_span(span);
    const int origin = ops::scale_origin(parts[0]->format, largest);
    const auto rows = rows_of(parts);
    ops::pack_bricks({shape_, kernels::WordOrder::kE4m3, rows, origin}, staging_);
    bricks_.copy_from_host(std::as_bytes(std::span(staging_)), count_ * staging_.size());
    const int exponent = bias_exponent(origin);
    for (const HostWeight* const w : parts)
      alphas_.push_back(std::ldexp(w->global_scale, exponent));
    if (parts[0]->format == NumberFormat::kFp8) append_block_scales(parts, block_scales_);
    ++count_;
  }

  // Number `from` once more.
  void repeat(std::size_t from) {
    const std::size_t bytes = staging_.size();
    const device::CurrentContext current = device_.make_current();
    device_.check(device_.cu().memcpy_dtod(bricks_.address() + count_ * bytes,
                                           bricks_.address() + from * bytes, bytes),
                  "cuMemcpyDtoD");
    repeat_elems(alphas_, from);
    repeat_elems(block_scales_, from);
    ++count_;
  }

  PackedExperts finish() && {
    const std::int64_t elems =
        count_ == 0 ? 0 : std::ssize(block_scales_) / static_cast<std::int64_t>(count_);
    return {.shape = shape_,
            .bricks = std::move(bricks_),
            .block_scales = Buffer::from(device_, block_scales_),
            .alphas = Buffer::from(device_, alphas_),
            .block_scale_elems = elems,
            .scales = Buffer(device_, 0),
            .has_power_scales = shape_.format == kernels::WeightFormat::kFp8 &&
                                ops::are_power_scales(block_scales_)};
  }

 private:
  // Of weights decoded to bf16.
  int bias_exponent(int origin) const {
    constexpr auto kOrder = kernels::WordOrder::kBf16;
    if (shape_.format == kernels::WeightFormat::kNvfp4)
      return kernels::nvfp4_bias_exponent(kOrder, kernels::nvfp4_shift(origin));
    return shape_.format == kernels::WeightFormat::kMxfp4
               ? kernels::mxfp4_bias_exponent(kOrder, origin)
               : 0;
  }

  void repeat_elems(std::vector<float>& elems, std::size_t from) const {
    const std::size_t each = elems.size() / count_;
    for (std::size_t i = 0; i < each; ++i) elems.push_back(elems[from * each + i]);
  }

  const device::Device& device_;
  kernels::PackedShape shape_;
  Buffer bricks_;
  std::vector<std::uint8_t> staging_;
  std::vector<float> alphas_, block_scales_;
  std::size_t count_ = 0;
};

// What makes two matrices the same without looking at their values.
using Identity = std::vector<std::pair<const void*, float>>;

template <class AnyPacker>
PackedExperts pack_with(AnyPacker packer, const device::Device& device,
                        const std::vector<std::vector<Named>>& parts, NumberFormat format,
                        std::int64_t n, std::int64_t k) {
  const std::size_t matrices = parts[0].size();
  std::map<Identity, std::size_t> known;
  for (std::size_t e = 0; e < matrices; ++e) {
    Identity identity;
    for (const auto& part : parts) {
      const LinearWeightSource& source = *part[e].source;
      identity.emplace_back(source.values.data, source.global_scale.value_or(0));
      identity.emplace_back(source.scales.data, 0);
    }
    const auto [at, is_new] = known.emplace(std::move(identity), e);
    if (!is_new) {
      packer.repeat(at->second);
      continue;
    }
    std::vector<HostWeight> weights;
    std::vector<const HostWeight*> pointers;
    for (const auto& part : parts) {
      weights.push_back(open(part[e], device));
      check_shape(part[e], weights.back(), format, n, k);
    }
    for (const HostWeight& w : weights) pointers.push_back(&w);
    try {
      packer.add(pointers);
    } catch (const Error& error) {
      throw Error(error.kind(), fmt::format("moe: {}: {}", parts[0][e].name, error.what()));
    }
  }
  return std::move(packer).finish();
}

PackedExperts pack_projection(const device::Device& device, LinearActivations activations,
                              const std::vector<std::vector<Named>>& parts, NumberFormat format,
                              std::int64_t n, std::int64_t k) {
  const std::size_t matrices = parts[0].size();
  if (activations == LinearActivations::kBlockScaled)
    return pack_with(ops::BlockScaledPacker(device, matrices, parts.size(), format, n, k), device,
                     parts, format, n, k);
  return pack_with(Packer(device, matrices, parts.size(), format, n, k), device, parts, format, n,
                   k);
}

}  // namespace

float ops::PackedExperts::e4m3_alpha() const noexcept {
  using kernels::WordOrder;
  if (shape.format == kernels::WeightFormat::kNvfp4)
    return std::ldexp(1.0f, kernels::nvfp4_bias_exponent(WordOrder::kE4m3, 0) -
                                kernels::nvfp4_bias_exponent(WordOrder::kBf16, 0));
  if (shape.format == kernels::WeightFormat::kMxfp4)
    return std::ldexp(1.0f, kernels::mxfp4_bias_exponent(WordOrder::kE4m3, 0) -
                                kernels::mxfp4_bias_exponent(WordOrder::kBf16, 0));
  return 1;
}

MoeWeights::MoeWeights(std::shared_ptr<const State> state) noexcept : state_(std::move(state)) {}

MoeWeights MoeWeights::prepare(const Device& device, const MoeWeightsSource& source,
                               LinearActivations activations) {
  check_counts(source);
  const device::Device& inner = opened(device);
  const auto gate = list(source.gate, source.shared_gate, "gate");
  const auto up = list(source.up, source.shared_up, "up");
  const auto down = list(source.down, source.shared_down, "down");
  const HostWeight first = open(gate[0], inner);
  const MoeWeightsInfo info = {.format = first.format,
                               .activations = activations,
                               .experts = std::ssize(source.gate),
                               .hidden = first.k,
                               .inter = first.n,
                               .has_shared = !source.shared_gate.empty()};
  if (activations == LinearActivations::kBlockScaled) ops::check_block_scaled_experts(info);
  return MoeWeights(std::make_shared<const State>(
      State{device, info,
            pack_projection(inner, activations, {gate, up}, info.format, info.inter, info.hidden),
            pack_projection(inner, activations, {down}, info.format, info.hidden, info.inter)}));
}

const MoeWeightsInfo& MoeWeights::info() const noexcept {
  return state_->info;
}

std::size_t MoeWeights::bytes() const noexcept {
  std::size_t sum = 0;
  for (const PackedExperts* const p : {&state_->gate_up, &state_->down})
    sum += p->bricks.size_bytes() + p->block_scales.size_bytes() + p->alphas.size_bytes() +
           p->scales.size_bytes();
  return sum;
}

const Device& MoeWeights::device() const noexcept {
  return state_->device;
}

namespace {

// Part [first_row, first_row + rows) of matrix e of a contiguous [experts, n, ...] tensor.
ConstTensorView slice(const ConstTensorView& stack, std::int64_t e, std::int64_t first_row,
                      std::int64_t rows) {
  const std::int64_t cols = stack.shape[2];
  const std::int64_t at = (e * stack.shape[1] + first_row) * cols;
  const auto* const bytes = static_cast<const std::uint8_t*>(stack.data);
  return contiguous_view(bytes + at * bits_per_elem(stack.dtype) / 8, stack.dtype, {rows, cols});
}

}  // namespace

std::vector<LinearWeightSource> stacked_experts(NumberFormat format, const ConstTensorView& values,
                                                const ConstTensorView& scales,
                                                const std::vector<float>& global_scales,
                                                std::int64_t first_row, std::int64_t rows) {
  check(values.shape.size() == 3 && is_contiguous(values),
        "stacked values have shape {}; expected contiguous [experts, n, k]",
        shape_text(values.shape));
  const std::int64_t experts = values.shape[0], n = values.shape[1];
  if (rows == 0) rows = n - first_row;
  check(first_row >= 0 && rows >= 0 && first_row + rows <= n,
        "rows {} to {} of stacked values with n = {}", first_row, first_row + rows, n);
  const bool has_scales = format != NumberFormat::kBf16;
  const std::int64_t step = format == NumberFormat::kFp8 ? ops::kFp8Block : 1;
  check(first_row % step == 0, "first_row = {}; expected a multiple of 128, the rows of a scale",
        first_row);
  check(!has_scales || (scales.shape.size() == 3 && is_contiguous(scales) &&
                        scales.shape[0] == experts && scales.shape[1] == ceil_div(n, step)),
        "stacked scales have shape {}; expected contiguous [{}, {}, ...]", shape_text(scales.shape),
        experts, ceil_div(n, step));
  check(format != NumberFormat::kNvfp4 || std::ssize(global_scales) == experts,
        "{} global scales of {} experts; expected one each", global_scales.size(), experts);
  std::vector<LinearWeightSource> sources;
  for (std::int64_t e = 0; e < experts; ++e) {
    LinearWeightSource source = {.format = format, .values = slice(values, e, first_row, rows)};
    if (has_scales) source.scales = slice(scales, e, first_row / step, ceil_div(rows, step));
    if (format == NumberFormat::kNvfp4)
      source.global_scale = global_scales[static_cast<std::size_t>(e)];
    sources.push_back(std::move(source));
  }
  return sources;
}

}  // namespace tilewright
