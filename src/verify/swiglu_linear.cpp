#include "verify/swiglu_linear.h"

#include "tilewright/buffer.h"

#include "formats/block_scale.h"
#include "formats/minifloat.h"
#include "formats/pack.h"
#include "formats/scale_layout.h"
#include "reference/linear/linear.h"
#include "reference/linear/weight.h"
#include "verify/stored_rows.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace tilewright::cli {

namespace {

bool is_nvfp4(NumberFormat format) {
  return format == NumberFormat::kNvfp4;
}

// Half of a matrix of twice the rows.
LinearWeightData half_of(const LinearWeightData& both, bool is_second) {
  LinearWeightData half;
  half.n = both.n / 2;
  half.k = both.k;
  half.source = both.source;
  const auto take = [&](const std::vector<std::uint8_t>& from, std::vector<std::uint8_t>& to,
                        ConstTensorView& view) {
    const std::ptrdiff_t middle = std::ssize(from) / 2;
    to.assign(from.begin() + (is_second ? middle : 0),
              from.begin() + (is_second ? std::ssize(from) : middle));
    view = contiguous_view(static_cast<const void*>(to.data()), view.dtype,
                           {view.shape[0] / 2, view.shape[1]});
  };
  take(both.values, half.values, half.source.values);
  take(both.scales, half.scales, half.source.scales);
  return half;
}

LinearWeightData draw(NumberFormat format, std::int64_t n, std::int64_t k, std::uint64_t seed) {
  return quantise_weight(format, draw_normal_floats(n * k, seed), n, k, true);
}

std::vector<double> rows_of(const LinearWeightData& data) {
  const StoredRows stored(data.source);
  std::vector<double> rows;
  for (std::int64_t j = 0; j < data.n; ++j) {
    const std::vector<double> row = reference::dequantize(stored.row(j));
    rows.insert(rows.end(), row.begin(), row.end());
  }
  return rows;
}

}  // namespace

GateAndUp::GateAndUp(NumberFormat format, std::int64_t inter, std::int64_t k) {
  if (is_nvfp4(format)) {
    const LinearWeightData both = draw(format, 2 * inter, k, 1);
    gate_ = half_of(both, false);
    up_ = half_of(both, true);
  } else {
    gate_ = draw(format, inter, k, 1);
    up_ = draw(format, inter, k, 3);
  }
}

LinearWeightSource GateAndUp::source() const {
  LinearWeightSource source = gate_.source;
  source.up_values = up_.source.values;
  source.up_scales = up_.source.scales;
  return source;
}

BlockScaledWeightInfo GateAndUp::info() const {
  return {gate_.source.format, 2 * gate_.n, gate_.k, true};
}

struct SwigluRun::State {
  const GateAndUp& weights;
  BlockScaledPlan plan;
  const BlockFormat& format;
  QuantizedTensor x;
  float factor;
  Buffer codes, scales, out, out_scales;

  // Of results in NVFP4: gate and up are of the order of 1.
  static constexpr float kEncodeScale = 64;
};

SwigluRun::SwigluRun(const Device& device, const GateAndUp& weights, std::span<const float> x,
                     const BlockScaledPlan& plan) {
  const std::int64_t m = plan.problem.m, k = plan.weight.k;
  const bool has_tensor_scale = is_nvfp4(plan.weight.format);
  const BlockFormat& format = has_tensor_scale ? kNvfp4 : kMxfp8Ceil;
  QuantizedTensor q = quantize(format, x, m, k);
  const float factor =
      (has_tensor_scale ? q.tensor_scale : 1.0f) / std::sqrt(static_cast<float>(k));
  Buffer codes = Buffer::from(device, q.codes);
  Buffer scales = Buffer::from(device, swizzle_scales(q.scales, m, k / format.block_cols));
  state_ = std::make_unique<State>(
      State{weights, plan, format, std::move(q), factor, std::move(codes), std::move(scales),
            Buffer(device, plan.out_bytes), Buffer(device, plan.out_scales_bytes)});
  state_->out.poison();
  state_->out_scales.poison();
}

SwigluRun::~SwigluRun() = default;

void SwigluRun::run(const BlockScaledLinear& linear) {
  const State& s = *state_;
  linear.run({.x = s.codes.data(),
              .x_scales = s.scales.data(),
              .out = s.out.data(),
              .out_scales = s.out_scales.data(),
              .x_tensor_scale = s.factor,
              .out_encode_scale = State::kEncodeScale});
}

namespace {

// A result, and how far its rounding may be from what was rounded.
struct Stored {
  double value, rounding;
};

// e2m1 lies within a quarter of a number, or half of its least; a neighbouring scale, which sums
// near a tie give, adds 1 / 16 of its largest. e4m3 and bf16 round by 2^-4 and 2^-8 of a number.
class Results {
 public:
  Results(const BlockScaledPlan& plan, std::vector<std::uint8_t> out,
          std::vector<std::uint8_t> scales, float encode_scale)
      : dtype_(plan.problem.out_dtype),
        columns_(plan.weight.n / 2),
        out_(std::move(out)),
        scales_(std::move(scales)),
        encode_scale_(double{encode_scale}) {
    if (dtype_ == DType::kF4) out_ = unpack_codes(out_, 4, plan.problem.m * columns_);
  }

  Stored at(std::int64_t row, std::int64_t column, double exact) const {
    const auto i = static_cast<std::size_t>(row * columns_ + column);
    const double x = std::abs(exact);
    if (dtype_ == DType::kBF16)
      return {decode(kBf16, out_[2 * i] | std::uint32_t{out_[2 * i + 1]} << 8), x * 0x1.01p-8};
    const bool is_fp4 = dtype_ == DType::kF4;
    const std::int64_t group = is_fp4 ? 16 : 32;
    const std::int64_t blocks = (columns_ + group - 1) / group;
    const std::uint8_t code =
        scales_[static_cast<std::size_t>(swizzled_scale_offset(row, column / group, blocks))];
    const double scale = is_fp4 ? decode(kUe4m3, code) / encode_scale_ : decode(kUe8m0, code);
    return {decode(is_fp4 ? kE2m1 : kE4m3, out_[i]) * scale,
            is_fp4 ? x * 0.2525 + scale * (0.2525 + 6.0 / 16) : x * 0x1.01p-4 + scale * 0x1.01p-10};
  }

 private:
  DType dtype_;
  std::int64_t columns_;
  std::vector<std::uint8_t> out_, scales_;
  double encode_scale_;
};

double relative(double error, double norm) {
  return norm > 0 ? std::sqrt(error / norm) : std::sqrt(error);
}

}  // namespace

SwigluErrors SwigluRun::check(std::int64_t max_rows) const {
  const State& s = *state_;
  const std::int64_t rows = std::min(s.plan.problem.m, max_rows), inter = s.plan.weight.n / 2,
                     k = s.plan.weight.k;
  const std::vector<float> codes = dequantize(s.format, s.x);
  const std::vector<double> x(codes.begin(), codes.begin() + rows * k);
  // The tensor's scale is in both.
  const double factor = s.format.has_tensor_scale
                            ? double{s.factor} / static_cast<double>(s.x.tensor_scale)
                            : double{s.factor};
  const reference::LinearShape shape = {rows, inter, k};
  std::vector<double> sums[2], magnitudes[2];
  for (const bool is_up : {false, true}) {
    const std::vector<double> w = rows_of(s.weights.weight(is_up));
    sums[is_up] = reference::linear(shape, x, w, {});
    magnitudes[is_up] = reference::linear_magnitude(shape, x, w);
  }
  const Results results(s.plan, s.out.to_vector<std::uint8_t>(),
                        s.out_scales.to_vector<std::uint8_t>(), State::kEncodeScale);
  // Sums end at 2^-24 of their magnitude for each of k, silu is no steeper than 1.1, and exp and
  // division are within 2^-17.
  const double roundoff = static_cast<double>(k) * 0x1p-24 * factor;
  const double limit = s.plan.problem.swiglu_limit;
  double error = 0, norm = 0, dot = 0, out_norm = 0;
  LinearErrors errors = {.reference = "SwiGLU of the codes in float64"};
  for (std::int64_t i = 0; i < rows * inter; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const double gate = std::min(sums[0][at] * factor, limit);
    const double up = std::clamp(sums[1][at] * factor, -limit, limit);
    const double silu = gate / (1 + std::exp(-gate)), exact = silu * up;
    const Stored got = results.at(i / inter, i % inter, exact);
    const double bound =
        got.rounding + std::abs(exact) * 0x1p-17 +
        roundoff * (1.1 * std::abs(up) * magnitudes[0][at] + std::abs(silu) * magnitudes[1][at]) +
        1e-30;
    const double off = std::abs(got.value - exact);
    error += off * off;
    norm += exact * exact;
    dot += got.value * exact;
    out_norm += got.value * got.value;
    errors.max_abs = std::max(errors.max_abs, std::isnan(off) ? INFINITY : off);
    errors.worst_of_bound =
        std::max(errors.worst_of_bound, std::isnan(off) ? INFINITY : off / bound);
  }
  errors.relative_rms = errors.worst_tile_rms = relative(error, norm);
  if (norm > 0 && out_norm > 0) errors.cosine = dot / std::sqrt(norm * out_norm);
  return {rows, errors};
}

nlohmann::json to_json(const SwigluErrors& e) {
  nlohmann::json out = to_json(e.errors);
  out["rows"] = e.rows;
  out["ok"] = e.is_ok();
  out["dequantised"] = to_json(e.errors);
  return out;
}

}  // namespace tilewright::cli
