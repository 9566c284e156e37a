// Calls of the block-scaled linear operator, and what must come out of them.
#pragma once

#include "tilewright/block_scaled_linear.h"
#include "tilewright/tilewright.h"

#include "device/internal.h"
#include "ops/block_scaled_linear/plan.h"
#include "ops/block_scaled_linear/weight.h"
#include "ops/linear/source.h"
#include "ops/operator/ceil_div.h"
#include "tests/kernels/block_scaled_check.h"
#include "tests/ops/blackwell_test.h"
#include "tests/ops/gpu_infos.h"
#include "tests/reference/inputs.h"

#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>

namespace tilewright::ops {

using kernels::accumulate;
using kernels::draw_matrix;
using kernels::ScaledMatrix;
using reference::message_of;

class BlockScaledLinearTest : public BlackwellTest<BlockScaledLinearTest> {
 protected:
  static const device::Device& internal() { return opened(*device_); }

  static ScaledMatrix draw(std::uint64_t seed, NumberFormat format, bool is_weight,
                           std::int64_t rows, std::int64_t k) {
    const bool is_nvfp4 = format == NumberFormat::kNvfp4;
    const bool is_e2m1 = is_nvfp4 || (is_weight && format == NumberFormat::kMxfp4);
    ScaledMatrix drawn = draw_matrix(seed, is_e2m1 ? kE2m1 : kE4m3, is_nvfp4 ? 16 : 32, rows, k);
    if (format != NumberFormat::kFp8 || !is_weight) return drawn;
    for (std::int64_t i = 0; i < rows * drawn.blocks(); ++i) {  // that of the first of 128 x 128
      const std::int64_t row = i / drawn.blocks() / kFp8Block * kFp8Block;
      drawn.scales[i] = drawn.scales[row * drawn.blocks() + i % drawn.blocks() / 4 * 4];
    }
    return drawn;
  }
  /// Shows the matrix as a checkpoint's tensors; the vectors keep them.
  struct Stored {
    std::vector<std::uint8_t> values, scales;
    LinearWeightSource source;

    Stored(const ScaledMatrix& w, NumberFormat format, ScaleOrder order)
        : values(pack_codes(w.codes, w.element.bits())),
          scales(order == ScaleOrder::kPlain ? w.scales : w.swizzled_scales()) {
      source.format = format;
      if (format == NumberFormat::kFp8) {
        show_fp8(w);
        return;
      }
      source.values =
          contiguous_view(static_cast<const void*>(values.data()), DType::kU8, {w.rows, w.k / 2});
      std::vector<std::int64_t> shape = {w.rows, w.blocks()};
      if (order == ScaleOrder::k128x4) shape = {static_cast<std::int64_t>(scales.size())};
      source.scales = contiguous_view(static_cast<const void*>(scales.data()), DType::kU8, shape);
      source.scale_order = order;
      if (format == NumberFormat::kNvfp4) source.global_scale = 0.25f;
    }
    void show_fp8(const ScaledMatrix& w) {
      scales.clear();
      for (std::int64_t row = 0; row < w.rows; row += kFp8Block) {
        for (std::int64_t i = 0; i < w.blocks(); i += 4)
          scales.push_back(w.scales[row * w.blocks() + i]);
      }
      source.values =
          contiguous_view(static_cast<const void*>(values.data()), DType::kF8_E4M3, {w.rows, w.k});
      source.scales = contiguous_view(static_cast<const void*>(scales.data()), DType::kF8_E8M0,
                                      {ceil_div(w.rows, kFp8Block), ceil_div(w.k, kFp8Block)});
    }
  };

  /// x of `rows` by w through the operator, to the bit.
  static void check(NumberFormat format, std::int64_t m, std::int64_t n, std::int64_t k,
                    BlockScaledProblem problem = {}, ScaleOrder order = ScaleOrder::kPlain,
                    bool is_by_c = false) {
    SCOPED_TRACE(fmt::format("{}, m = {}, n = {}, k = {}", to_string(format), m, n, k));
    const ScaledMatrix x = draw(1, format, false, m, k), w = draw(2, format, true, n, k);
    const Stored stored(w, format, order);
    const BlockScaledWeight weight = BlockScaledWeight::prepare(*device_, stored.source);
    problem.m = m;
    const BlockScaledLinear linear(weight, problem);
    const BlockScaledPlan& plan = linear.plan();

    const std::size_t x_row = x.packed(32).size() / std::max<std::size_t>(m, 1);
    std::vector<std::uint8_t> rows(plan.x_bytes, 0xff);
    for (std::int64_t i = 0; i < m; ++i) {
      std::memcpy(&rows[i * plan.problem.x_row_bytes], &x.packed(32)[i * x_row], x_row);
    }
    const device::Buffer x_buffer = device::Buffer::from(internal(), rows);
    const device::Buffer scale_buffer = device::Buffer::from(internal(), x.swizzled_scales());
    ASSERT_EQ(scale_buffer.size_bytes(), plan.x_scales_bytes);
    constexpr std::size_t kBehind = 64;  // bytes that nobody may write
    device::Buffer out(internal(), plan.out_bytes + kBehind),
        out_scales(internal(), plan.out_scales_bytes);
    out.poison();
    const auto pointer = [](const device::Buffer& buffer) {
      return reinterpret_cast<void*>(buffer.address());
    };
    const BlockScaledArguments arguments = {.x = pointer(x_buffer),
                                            .x_scales = pointer(scale_buffer),
                                            .out = pointer(out),
                                            .out_scales = pointer(out_scales),
                                            .x_tensor_scale = 2,
                                            .out_encode_scale = kEncodeScale};
    if (is_by_c) {
      run_c_api(stored.source, weight.info(), plan, arguments);
    } else {
      linear.run(arguments);
    }
    device_->synchronize();

    const float factor = format == NumberFormat::kNvfp4 ? 0.5f : 2.0f;
    std::vector<float> expected = accumulate(planned_variant(plan).config, x, w);
    for (float& value : expected) value *= factor;
    const std::int64_t row_bytes = plan.problem.out_row_bytes;
    if (problem.out_dtype == DType::kBF16) {
      expect_rows(expect_bf16(expected), 2 * n, out.to_vector<std::uint8_t>(), row_bytes);
    } else {
      const QuantizedTensor wanted =
          quantize(kNvfp4, expected, m, n, {.encode_scale = kEncodeScale});
      EXPECT_EQ(out_scales.to_vector<std::uint8_t>(),
                swizzle_scales(wanted.scales, m, (n + 15) / 16));
      expect_rows(wanted.codes, n / 2, out.to_vector<std::uint8_t>(), row_bytes);
    }
  }

  /// A gate and up, against float64 SwiGLU of the tensor core's sums.
  static void check_swiglu(NumberFormat format, std::int64_t m, std::int64_t inter, std::int64_t k,
                           BlockScaledProblem problem, bool is_by_c = false) {
    SCOPED_TRACE(fmt::format("{}, m = {}, inter = {}, k = {}", to_string(format), m, inter, k));
    const ScaledMatrix x = draw(1, format, false, m, k), gate = draw(2, format, true, inter, k),
                       up = draw(3, format, true, inter, k);
    const Stored stored(gate, format, ScaleOrder::kPlain), other(up, format, ScaleOrder::kPlain);
    LinearWeightSource source = stored.source;
    source.up_values = other.source.values, source.up_scales = other.source.scales;
    const BlockScaledWeight weight = BlockScaledWeight::prepare(*device_, source);
    EXPECT_EQ(weight.info().n, 2 * inter);
    problem.m = m;
    const BlockScaledLinear linear(weight, problem);
    const BlockScaledPlan& plan = linear.plan();
    const device::Buffer codes = device::Buffer::from(internal(), x.packed(32)),
                         scales = device::Buffer::from(internal(), x.swizzled_scales());
    device::Buffer out(internal(), plan.out_bytes), out_scales(internal(), plan.out_scales_bytes);
    out.poison();
    out_scales.poison();
    const auto pointer = [](const device::Buffer& buffer) {
      return reinterpret_cast<void*>(buffer.address());
    };
    const float factor = 0.004f / (format == NumberFormat::kNvfp4 ? 0.25f : 1.0f);
    const BlockScaledArguments arguments = {.x = pointer(codes),
                                            .x_scales = pointer(scales),
                                            .out = pointer(out),
                                            .out_scales = pointer(out_scales),
                                            .x_tensor_scale = factor,
                                            .out_encode_scale = kEncodeScale};
    if (is_by_c) {
      run_c_api(source, {format, inter, k}, plan, arguments);
    } else {
      linear.run(arguments);
    }
    device_->synchronize();
    const kernels::BlockScaledConfig config = planned_variant(plan).config;
    const std::vector<float> g = accumulate(config, x, gate), u = accumulate(config, x, up);
    std::vector<float> wanted;
    for (std::size_t i = 0; i < g.size(); ++i) {
      const double limit = problem.swiglu_limit, at = std::min(double{g[i]} * 0.004, limit);
      wanted.push_back(static_cast<float>(at / (1 + std::exp(-at)) *
                                          std::clamp(double{u[i]} * 0.004, -limit, limit)));
    }
    expect_close(plan, wanted, out.to_vector<std::uint8_t>(), out_scales.to_vector<std::uint8_t>());
  }
  /// exp and division are within 2^-17; then bf16 rounds by 2^-8 of a number, e4m3 by 2^-4 and e2m1
  /// by a quarter (or half of its least number), and a neighbouring scale of NVFP4 adds 1 / 16.
  static void expect_close(const BlockScaledPlan& plan, const std::vector<float>& wanted,
                           const std::vector<std::uint8_t>& out,
                           const std::vector<std::uint8_t>& scales) {
    const std::int64_t m = plan.problem.m, columns = plan.weight.n / 2;
    const DType dtype = plan.problem.out_dtype;
    if (dtype == DType::kF8_E4M3) {
      const QuantizedTensor expected = quantize(kMxfp8Ceil, wanted, m, columns);
      ASSERT_EQ(scales, swizzle_scales(expected.scales, m, expected.padded_cols / 32));
    }
    const std::vector<std::uint8_t> fours =
        dtype == DType::kF4 ? unpack_codes(out, 4, m * columns) : std::vector<std::uint8_t>();
    for (std::int64_t i = 0; i < m * columns; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const std::int64_t row = i / columns, column = i % columns;
      const double x = wanted[at];
      double value, bound = std::abs(x) * 0x1.01p-8 + 1e-30;
      if (dtype == DType::kBF16) {
        value = decode(kBf16, out[2 * at] | std::uint32_t{out[2 * at + 1]} << 8);
      } else {
        const bool is_nvfp4 = dtype == DType::kF4;
        const std::int64_t group = is_nvfp4 ? 16 : 32, blocks = ceil_div(columns, group);
        const std::uint8_t code =
            scales[static_cast<std::size_t>(swizzled_scale_offset(row, column / group, blocks))];
        const double scale =
            is_nvfp4 ? decode(kUe4m3, code) / double{kEncodeScale} : decode(kUe8m0, code);
        value = decode(is_nvfp4 ? kE2m1 : kE4m3, is_nvfp4 ? fours[at] : out[at]) * scale;
        bound = is_nvfp4 ? std::abs(x) * 0.2525 + scale * (0.2525 + 6.0 / 16)
                         : std::abs(x) * 0x1.01p-4 + scale * 0x1.01p-10;
      }
      ASSERT_NEAR(value, x, bound) << "row " << row << ", column " << column;
    }
  }

  /// The same call through the C interface.
  static void run_c_api(const LinearWeightSource& from, const BlockScaledWeightInfo& info,
                        const BlockScaledPlan& plan, const BlockScaledArguments& a) {
    tw_linear_weight_source source;
    tw_linear_weight_source_init(&source);
    source.format = info.format == NumberFormat::kFp8     ? TW_NUMBER_FORMAT_FP8
                    : info.format == NumberFormat::kMxfp4 ? TW_NUMBER_FORMAT_MXFP4
                                                          : TW_NUMBER_FORMAT_NVFP4;
    source.n = info.n, source.k = info.k;
    source.values = from.values.data, source.scales = from.scales.data;
    source.scale_dtype = TW_E8M0;
    source.up_values = from.up_values.data, source.up_scales = from.up_scales.data;
    if (from.global_scale) source.global_scale = *from.global_scale;
    tw_block_scaled_problem problem;
    tw_block_scaled_problem_init(&problem);
    problem.m = plan.problem.m;
    problem.out_dtype = plan.problem.out_dtype == DType::kF4        ? TW_F4
                        : plan.problem.out_dtype == DType::kF8_E4M3 ? TW_E4M3
                                                                    : TW_BF16;
    if (std::isfinite(plan.problem.swiglu_limit)) problem.swiglu_limit = plan.problem.swiglu_limit;
    problem.x_row_bytes = plan.problem.x_row_bytes;
    problem.out_row_bytes = plan.problem.out_row_bytes;
    problem.kernel = plan.kernel.c_str();
    tw_block_scaled_arguments call;
    tw_block_scaled_arguments_init(&call);
    call.x = a.x, call.x_scales = a.x_scales, call.out = a.out, call.out_scales = a.out_scales;
    call.x_tensor_scale = a.x_tensor_scale, call.out_encode_scale = a.out_encode_scale;
    tw_device* device = nullptr;
    tw_block_scaled_weight* weight = nullptr;
    tw_block_scaled_linear* linear = nullptr;
    ASSERT_EQ(tw_device_open("sim:b200", &device), TW_OK) << tw_last_error();
    ASSERT_EQ(tw_block_scaled_weight_prepare(device, &source, &weight), TW_OK) << tw_last_error();
    ASSERT_EQ(tw_block_scaled_linear_create(weight, &problem, &linear), TW_OK) << tw_last_error();
    EXPECT_GT(tw_block_scaled_weight_bytes(weight), 0u);
    EXPECT_EQ(tw_block_scaled_linear_x_bytes(linear), plan.x_bytes);
    EXPECT_EQ(tw_block_scaled_linear_out_scales_bytes(linear), plan.out_scales_bytes);
    EXPECT_EQ(tw_block_scaled_linear_kernel(linear), plan.kernel);
    EXPECT_EQ(tw_block_scaled_linear_run(linear, &call), TW_OK) << tw_last_error();
    tw_block_scaled_linear_destroy(linear);
    tw_block_scaled_weight_destroy(weight);
    tw_device_close(device);
  }

 private:
  static constexpr float kEncodeScale = 3.1f;

  static std::vector<std::uint8_t> expect_bf16(const std::vector<float>& expected) {
    std::vector<std::uint8_t> bytes;
    for (const float x : expected) {
      const std::uint32_t code = encode(kBf16, x);
      bytes.push_back(static_cast<std::uint8_t>(code));
      bytes.push_back(static_cast<std::uint8_t>(code >> 8));
    }
    return bytes;
  }
  /// Rows of so many bytes, `row_bytes` apart; all else is as it was.
  static void expect_rows(const std::vector<std::uint8_t>& wanted, std::int64_t bytes,
                          const std::vector<std::uint8_t>& got, std::int64_t row_bytes) {
    std::vector<std::uint8_t> all(got.size(), 0xff);
    for (std::int64_t i = 0; i < std::ssize(wanted); ++i)
      all[static_cast<std::size_t>(i / bytes * row_bytes + i % bytes)] = wanted[std::size_t(i)];
    for (std::int64_t i = 0; i < std::ssize(got); ++i) {
      ASSERT_EQ(got[std::size_t(i)], all[std::size_t(i)])
          << "row " << i / row_bytes << ", byte " << i % row_bytes << " of " << bytes;
    }
  }
};

}  // namespace tilewright::ops
