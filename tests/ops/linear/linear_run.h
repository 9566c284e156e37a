// One call of the linear operator on random tensors, compared with float64.
#pragma once

#include "tilewright/quantize.h"

#include "base/error.h"
#include "device/internal.h"
#include "device/memory.h"
#include "formats/block_scale.h"
#include "formats/minifloat.h"
#include "ops/linear/kernel.h"
#include "reference/error_bound.h"
#include "reference/linear/linear.h"
#include "reference/round.h"
#include "tests/kernels/kernel_test.h"
#include "tests/ops/linear/case.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>

namespace tilewright::ops {

using device::Buffer;
using kernels::pointer_to;

struct LinearCase {
  NumberFormat format = NumberFormat::kNvfp4;
  LinearActivations activations = LinearActivations::kBf16;
  std::int64_t n = 80, k = 112;
  LinearProblem problem = {};
  std::int64_t groups = 1;
  bool has_power_scales = false;  ///< of kFp8
};

class LinearRun {
 public:
  LinearRun(const Device& device, const LinearCase& c)
      : device_(device),
        case_problem_(c.problem),
        weight_(c.format, c.n, c.k, 7, c.has_power_scales),
        host_(open(weight_, c.activations)) {
    weight_.source.groups = c.groups;
    prepared_ = LinearWeight::prepare(device, weight_.source, c.activations);
    linear_.emplace(*prepared_, c.problem);
    reference::Random random(3);
    const LinearProblem& p = problem();
    // Rows of different magnitude: a row must not take another's scale.
    for (std::int64_t i = 0; i < p.m * columns(); ++i) {
      const double x = random.uniform(-2, 2) * static_cast<double>(1 + i / columns() % 5);
      x_.push_back(static_cast<float>(round_to(kBf16, x)));
    }
    for (std::int64_t j = 0; j < c.n && p.has_bias; ++j)
      bias_.push_back(static_cast<float>(random.uniform(-20, 20)));
  }

  const LinearProblem& problem() const { return linear_->plan().problem; }
  std::vector<float>& x() { return x_; }

  /// out [m, n]; what lies between its rows must stay as it was.
  std::vector<double> run() const {
    const device::Device& inner = opened(device_);
    const LinearProblem& p = problem();
    const std::int64_t n = linear_->plan().weight.n, k = columns();
    std::vector<std::uint16_t> codes(static_cast<std::size_t>(p.m * p.x_stride), 0xffff);
    for (std::int64_t i = 0; i < p.m * k; ++i)
      codes[static_cast<std::size_t>(i / k * p.x_stride + i % k)] = static_cast<std::uint16_t>(
          encode(kBf16, static_cast<double>(x_[static_cast<std::size_t>(i)])));
    const Buffer x = Buffer::from(inner, codes), bias = Buffer::from(inner, bias_);
    Buffer workspace(inner, linear_->plan().workspace_bytes);
    workspace.poison();
    const auto elems = static_cast<std::size_t>(p.m * p.out_stride);
    const auto bytes = static_cast<std::size_t>(linear_elem_bytes());
    const kernels::Output<std::uint8_t> out(inner, elems * bytes);
    const device::Stream stream(inner);
    linear_->run({.x = pointer_to<const void>(x),
                  .bias = pointer_to<const float>(bias),
                  .out = out.pointer(),
                  .workspace = pointer_to<void>(workspace),
                  .stream = stream.handle()});
    stream.synchronize();
    return read(out.read(), n);
  }

  /// The same from e4m3 codes and scales that the quantise operator makes of x.
  std::vector<double> run_given() const {
    const LinearProblem& rounded = problem();
    const LinearWeightInfo& w = linear_->plan().weight;
    const bool has_blocks = rounded.activation_scales == ScaleSharing::kBlock;
    const std::int64_t columns = has_blocks ? (w.k + 127) / 128 * 128 : (w.k + 63) / 64 * 64;
    const std::int64_t padded_rows = (rounded.m + 3) / 4 * 4;  // of block-major scales
    std::vector<std::uint16_t> codes;
    for (const float v : x_) codes.push_back(static_cast<std::uint16_t>(encode(kBf16, double{v})));
    codes.resize(static_cast<std::size_t>((has_blocks ? padded_rows : rounded.m) * w.k), 0);
    const device::Device& inner = opened(device_);
    const Quantize quantize(device_, {.format = has_blocks ? "fp8_1x128" : "fp8_token",
                                      .rows = std::ssize(codes) / w.k,
                                      .cols = w.k,
                                      .out_cols = columns,
                                      .has_operand_order = true,
                                      .has_block_major_scales = has_blocks});
    const Buffer in = Buffer::from(inner, codes), bias = Buffer::from(inner, bias_);
    Buffer x(inner, quantize.plan().code_bytes), scales(inner, quantize.plan().scale_bytes),
        none(inner, quantize.plan().workspace_bytes);
    quantize.run({.in = pointer_to<const void>(in),
                  .codes = pointer_to<void>(x),
                  .scales = pointer_to<void>(scales),
                  .workspace = pointer_to<void>(none)});
    LinearProblem p = case_problem_;
    p.x_dtype = DType::kF8_E4M3, p.x_stride = columns;
    p.activation_scales = rounded.activation_scales;
    const Linear linear(*prepared_, p);
    const auto elems = static_cast<std::size_t>(rounded.m * rounded.out_stride);
    const kernels::Output<std::uint8_t> out(inner, elems * std::size_t(linear_elem_bytes()));
    Buffer workspace(inner, linear.plan().workspace_bytes);
    workspace.poison();
    linear.run({.x = pointer_to<const void>(x),
                .x_scales = pointer_to<const float>(scales),
                .bias = pointer_to<const float>(bias),
                .out = out.pointer(),
                .workspace = pointer_to<void>(workspace)});
    device_.synchronize();
    return read(out.read(), w.n);
  }

  void check() const {
    const std::string& kernel = linear_->plan().kernel;
    const bool is_hopper_fp8 = kernel.starts_with("wide_e4m3");
    const LinearWeightInfo& info = linear_->plan().weight;
    std::vector<double> x(x_.begin(), x_.end()), w = reference::dequantize(stored(host_));
    if (is_hopper_fp8 || kernel.starts_with("tensor_e4m3")) {
      x = e4m3_x();
      w = reference::dequantize_as_e4m3(stored(host_));
    } else if (info.activations == LinearActivations::kBlockScaled) {
      round_to_blocks(x);
    }
    // Hopper's FP8 tensor core truncates sums at 13 fraction bits of the largest of 32 products.
    compare(run(), x, w, is_hopper_fp8 ? 0x1p-17 : 2 * reference::kRoundoffFp32);
  }

  /// x that comes in e4m3 and becomes bf16.
  void check_given() const {
    std::vector<double> x = e4m3_x();
    for (double& value : x) value = round_to(kBf16, value);
    compare(run_given(), x, reference::dequantize(stored(host_)), 2 * reference::kRoundoffFp32);
  }

  const LinearPlan& plan() const { return linear_->plan(); }

 private:
  static HostWeight open(RandomWeight& weight, LinearActivations activations) {
    if (activations == LinearActivations::kBlockScaled) weight.make_scales_powers_of_two();
    return check_weight_source(weight.source);
  }
  // x as the quantise operator rounds it to e4m3.
  std::vector<double> e4m3_x() const {
    const bool has_blocks = problem().activation_scales == ScaleSharing::kBlock;
    const std::int64_t rows = problem().m * plan().weight.groups;  // a group's part is a row
    return reference::round_to_fp8(x_, rows, plan().weight.k, has_blocks ? 128 : 0);
  }
  // To MXFP8, or to NVFP4 with a G for each row.
  void round_to_blocks(std::vector<double>& x) const {
    const bool is_nvfp4 = plan().weight.format == NumberFormat::kNvfp4;
    reference::round_rows_to_blocks(is_nvfp4 ? kNvfp4 : kMxfp8Ceil, x, plan().weight.k,
                                    std::nullopt);
  }

  // Of a row of x.
  std::int64_t columns() const { return plan().weight.k * plan().weight.groups; }
  // A weight for all columns of x: zeros where a group does not read.
  std::vector<double> spread(const std::vector<double>& w) const {
    const auto [n, k, groups] = std::tuple(plan().weight.n, plan().weight.k, plan().weight.groups);
    std::vector<double> all(static_cast<std::size_t>(n * columns()), 0);
    for (std::int64_t r = 0; r < n; ++r)
      std::copy_n(w.begin() + r * k, k, all.begin() + r * columns() + r * groups / n * k);
    return all;
  }

  void compare(const std::vector<double>& out, const std::vector<double>& x,
               const std::vector<double>& of_groups, double accumulate_roundoff) const {
    const std::int64_t n = plan().weight.n, k = plan().weight.k;
    const std::vector<double> w = spread(of_groups);
    const reference::LinearShape shape = {problem().m, n, columns()};
    const std::vector<double> bias(bias_.begin(), bias_.end());
    const std::vector<double> exact = reference::linear(shape, x, w, bias);
    const std::vector<double> magnitude = reference::linear_magnitude(shape, x, w);
    ASSERT_EQ(out.size(), exact.size());
    for (std::size_t i = 0; i < out.size(); ++i) {
      const double bound = reference::dot_error_bound(
          {.length = k + 2,
           .accumulate_roundoff = accumulate_roundoff,
           .output_roundoff = problem().out_dtype == DType::kBF16 ? reference::kRoundoffBf16
                                                                  : reference::kRoundoffFp32},
          exact[i], magnitude[i] + (bias.empty() ? 0 : std::abs(bias[i % bias.size()])));
      ASSERT_LE(std::abs(out[i] - exact[i]), bound)
          << "row " << i / static_cast<std::size_t>(n) << ", column "
          << i % static_cast<std::size_t>(n) << ": " << out[i] << " for " << exact[i];
    }
  }

  std::int64_t linear_elem_bytes() const { return problem().out_dtype == DType::kBF16 ? 2 : 4; }

  std::vector<double> read(const std::vector<std::uint8_t>& bytes, std::int64_t n) const {
    std::vector<double> out;
    const std::int64_t size = linear_elem_bytes();
    for (std::int64_t i = 0; i < problem().m * problem().out_stride; ++i) {
      std::uint32_t code = 0;
      std::memcpy(&code, &bytes[static_cast<std::size_t>(i * size)],
                  static_cast<std::size_t>(size));
      if (i % problem().out_stride < n) {
        out.push_back(size == 2 ? decode(kBf16, code)
                                : static_cast<double>(std::bit_cast<float>(code)));
      } else {
        EXPECT_EQ(code, size == 2 ? 0xffffu : 0xffffffffu) << "between the rows of out";
      }
    }
    return out;
  }

  const Device& device_;
  LinearProblem case_problem_;
  RandomWeight weight_;
  HostWeight host_;
  std::optional<LinearWeight> prepared_;
  std::optional<Linear> linear_;
  std::vector<float> x_, bias_;
};

}  // namespace tilewright::ops
