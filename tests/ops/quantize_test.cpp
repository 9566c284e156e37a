// The quantise operator: on the device and on the host to the same bytes, and what it refuses.
#include "tilewright/quantize.h"

#include "device/internal.h"
#include "device/kernel_registry.h"
#include "device/memory.h"
#include "formats/block_scale.h"
#include "tests/formats/block_data.h"
#include "tests/reference/inputs.h"

#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <string>

#include <gtest/gtest.h>

namespace tilewright {
namespace {

using device::Buffer;
using reference::expect_invalid;

template <class T>
T* pointer_to(const Buffer& buffer) {
  return reinterpret_cast<T*>(buffer.address());
}

struct Result {
  std::vector<std::uint8_t> codes, scales;
  float tensor_scale = 0;
};

class QuantizeOperator : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { ::setenv("TILEWRIGHT_SIM_CHECK", "all", 0); }
  static void TearDownTestSuite() {
    kept_.reset();
    devices_.clear();
  }

  /// Opened once for all tests, with kernels that stay loaded.
  static const std::optional<Device>& open(const std::string& spec) {
    const auto [at, is_new] = devices_.try_emplace(spec);
    if (!is_new) return at->second;
    try {
      at->second = Device::open(spec);
      if (!kept_) kept_.emplace();
    } catch (const Error&) {
    }
    return at->second;
  }

  static Result on_device(const Device& device, const QuantizeProblem& problem,
                          const std::vector<std::uint8_t>& in,
                          const std::vector<std::int32_t>& index) {
    const Quantize quantize(device, problem);
    const QuantizePlan& plan = quantize.plan();
    const device::Device& internal = opened(device);
    const Buffer numbers = Buffer::from(internal, in), rows = Buffer::from(internal, index);
    Buffer codes(internal, plan.code_bytes), scales(internal, plan.scale_bytes);
    const Buffer tensor_scale(internal, 4), workspace(internal, plan.workspace_bytes);
    codes.poison();
    scales.poison();
    quantize.run({.in = pointer_to<const void>(numbers),
                  .row_index = pointer_to<const std::int32_t>(rows),
                  .codes = pointer_to<void>(codes),
                  .scales = pointer_to<void>(scales),
                  .tensor_scale = pointer_to<float>(tensor_scale),
                  .workspace = pointer_to<void>(workspace)});
    device.synchronize();
    return {codes.to_vector<std::uint8_t>(), scales.to_vector<std::uint8_t>(),
            problem.format == "nvfp4" && plan.code_bytes > 0 ? tensor_scale.to_vector<float>()[0]
                                                             : 0.0f};
  }

  static Result on_host(const QuantizeProblem& problem, const std::vector<std::uint8_t>& in,
                        const std::vector<std::int32_t>& index, int num_threads) {
    const QuantizePlan plan = plan_quantize_on_host(problem);
    Result result = {std::vector<std::uint8_t>(plan.code_bytes, 0xff),
                     std::vector<std::uint8_t>(plan.scale_bytes, 0xff)};
    quantize_on_host(problem,
                     {.in = in.data(),
                      .row_index = index.data(),
                      .codes = result.codes.data(),
                      .scales = result.scales.data(),
                      .tensor_scale = &result.tensor_scale},
                     num_threads);
    return result;
  }

  static void check(const QuantizeProblem& problem) {
    SCOPED_TRACE(problem.format + " " + problem.scales + " " + to_string(problem.dtype));
    const std::int64_t stride = problem.row_stride == 0 ? problem.cols : problem.row_stride;
    const FormatSpec& format = problem.dtype == DType::kBF16  ? kBf16
                               : problem.dtype == DType::kF16 ? kFp16
                                                              : kFp32;
    const std::vector<float> values = rough_values(problem.rows, stride, -12, 12, 3);
    std::vector<std::uint8_t> in;
    for (const float x : values) {
      const std::uint32_t code = encode(format, x);
      for (int byte = 0; byte < format.bits() / 8; ++byte)
        in.push_back(static_cast<std::uint8_t>(code >> 8 * byte));
    }
    std::vector<std::int32_t> index;
    for (std::int64_t row = 0; row < problem.rows; ++row)
      index.push_back(static_cast<std::int32_t>((row * 7 + 3) % problem.rows) -
                      (row % 5 == 4 ? 999 : 0));
    const Result host = on_host(problem, in, index, 2);
    for (const char* spec : {"sim:h200", "sim:b200", "cuda"}) {
      const std::optional<Device>& device = open(spec);
      if (!device) continue;
      const Result found = on_device(*device, problem, in, index);
      EXPECT_EQ(found.codes, host.codes) << spec;
      EXPECT_EQ(found.scales, host.scales) << spec;
      EXPECT_EQ(found.tensor_scale, host.tensor_scale) << spec;
    }
  }

 private:
  static inline std::map<std::string, std::optional<Device>> devices_;
  static inline std::optional<device::KeptModules> kept_;  // goes before the devices
};

TEST_F(QuantizeOperator, DeviceAndHostAgreeForEveryFormat) {
  for (const char* format :
       {"nvfp4", "mxfp4", "mxfp4_ceil", "mxfp8", "mxfp8_ceil", "fp8_64_pow2", "fp8_1x128",
        "fp8_1x128_ue8m0", "fp8_token", "fp8_token_ue8m0", "fp8_128x128", "fp8_128x128_ue8m0"})
    check({.format = format, .rows = 11, .cols = 176});
}

TEST_F(QuantizeOperator, DeviceAndHostAgreeForEveryOption) {
  for (const char* scales : {"four_over_six", "exact_nearest", "exact_best"})
    check({.scales = scales, .dtype = DType::kF32, .rows = 7, .cols = 64});
  check({.format = "nvfp4", .rows = 5, .cols = 48, .has_128x4_scales = true, .encode_scale = 2.0f});
  check({.format = "mxfp8", .dtype = DType::kF16, .rows = 5, .cols = 48, .has_128x4_scales = true});
  check({.format = "fp8_1x128",
         .rows = 9,
         .cols = 130,
         .row_stride = 140,
         .has_row_index = true,
         .out_rows = 12,
         .has_operand_order = true,
         .has_block_major_scales = true});
  check({.format = "fp8_token",
         .rows = 9,
         .cols = 70,
         .has_row_index = true,
         .has_operand_order = true});
  check({.format = "fp8_128x128", .rows = 0, .cols = 70});
  check({.format = "nvfp4", .rows = 0, .cols = 0});
}

// Every combination of options that a plan accepts, of bf16; of the other types some.
TEST_F(QuantizeOperator, DeviceAndHostAgreeForOptionsCrossed) {
  int num_accepted = 0;
  for (const char* format :
       {"nvfp4", "mxfp4", "mxfp4_ceil", "mxfp8", "mxfp8_ceil", "fp8_64_pow2", "fp8_1x128",
        "fp8_1x128_ue8m0", "fp8_token", "fp8_token_ue8m0", "fp8_128x128", "fp8_128x128_ue8m0"}) {
    for (const DType dtype : {DType::kBF16, DType::kF16, DType::kF32}) {
      for (unsigned options = 0; options < 64; ++options) {
        if (dtype != DType::kBF16 && options % 9 != 0) continue;
        const auto has = [&](unsigned bit) { return (options >> bit & 1) != 0; };
        const QuantizeProblem problem = {.format = format,
                                         .dtype = dtype,
                                         .rows = 5,
                                         .cols = has(0) ? 64 : 80,
                                         .row_stride = has(1) ? 96 : 0,
                                         .has_row_index = has(2),
                                         .out_rows = has(3) ? 9 : 0,
                                         .has_operand_order = has(4)};
        for (const bool is_tiled : {false, true}) {
          QuantizeProblem p = problem;
          p.has_128x4_scales = has(5) && is_tiled, p.has_block_major_scales = has(5) && !is_tiled;
          if (is_tiled && !has(5)) continue;
          try {
            plan_quantize_on_host(p);
          } catch (const Error&) {
            continue;
          }
          ++num_accepted;
          ASSERT_NO_FATAL_FAILURE(check(p)) << "options " << options;
        }
      }
    }
  }
  EXPECT_GT(num_accepted, 200);
}

TEST_F(QuantizeOperator, HostDoesNotDependOnThreads) {
  const QuantizeProblem problem = {.rows = 300, .cols = 4096};
  std::vector<std::uint8_t> in(300 * 4096 * 2);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<std::uint8_t>(i * i / 7 % 61);
  const Result one = on_host(problem, in, {}, 1), three = on_host(problem, in, {}, 3);
  EXPECT_EQ(one.codes, three.codes);
  EXPECT_EQ(one.scales, three.scales);
}

TEST_F(QuantizeOperator, RefusesWhatMakesNoSense) {
  const auto refused = [](const QuantizeProblem& problem, const std::string& text) {
    expect_invalid([&] { plan_quantize_on_host(problem); }, {text});
  };
  refused({.format = "nvfp5"}, "nvfp5");
  refused({.scales = "best"}, "scales = best; expected nearest, four_over_six");
  refused({.format = "mxfp4", .scales = "four_over_six"}, "only nvfp4 has a choice of scales");
  refused({.dtype = DType::kF64}, "dtype = F64; expected BF16, F16 or F32");
  refused({.rows = -1}, "rows = -1");
  refused({.rows = 3, .cols = 40, .row_stride = 39},
          "row_stride = 39; expected at least cols = 40");
  refused({.rows = 3, .cols = 40, .out_rows = 2}, "out_rows = 2");
  refused({.rows = 3, .cols = 40, .out_cols = 48}, "out_cols = 48; expected a multiple of 32");
  refused({.encode_scale = 0.0f}, "encode_scale = 0");
  refused({.format = "mxfp4", .encode_scale = 1.0f}, "only nvfp4 has a scale per matrix");
  refused({.has_operand_order = true}, "it is of e4m3");
  refused({.format = "fp8_1x128", .has_128x4_scales = true}, "rows of one-byte scales");
  refused({.rows = 1 << 20, .cols = 1 << 20}, "Split the rows");
  const QuantizeProblem problem = {.rows = 2, .cols = 32};
  expect_invalid([&] { quantize_on_host(problem, {}); }, {"the address of in is null"});
}

}  // namespace
}  // namespace tilewright
