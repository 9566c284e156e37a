// The block-scaled linear operator: its choice of tiles, its errors, and its results against the
// tensor core's own sums.
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

#include <gmock/gmock.h>

namespace tilewright::ops {
namespace {

using kernels::accumulate;
using kernels::draw_matrix;
using kernels::ScaledMatrix;
using ::testing::HasSubstr;

BlockScaledPlan plan(std::int64_t m, std::int64_t n, std::int64_t k,
                     NumberFormat format = NumberFormat::kNvfp4,
                     const std::string& kernel = "auto") {
  return make_block_scaled_plan(b200(), {format, n, k}, {.m = m, .kernel = kernel});
}

template <class Work>
std::string message_of(Work&& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was wrong";
}

TEST(BlockScaledPlanTest, TakesTheTileThatCostsLeastByCount) {
  EXPECT_EQ(plan(1, 7168, 7168).kernel, "1cta_n64");     // as many CTAs as can be
  EXPECT_EQ(plan(256, 7168, 7168).kernel, "2cta_n192");  // 38 tiles and not 28
  EXPECT_EQ(plan(8192, 8192, 8192).kernel, "4cta_n256");
  EXPECT_EQ(plan(8192, 8192, 8192, NumberFormat::kMxfp4).kernel, "4cta_n256");
  const BlockScaledPlan large = plan(8192, 8192, 8192);
  EXPECT_EQ(large.launches.at(0).entry, "sm100_nvfp4_gemm_bf16_4cta_n256");
  EXPECT_EQ(large.launches.at(0).grid[0], 148u);  // 512 tiles, 37 clusters of 4
  EXPECT_EQ(large.launches.at(0).cluster, 4u);
  EXPECT_EQ(large.candidates.size(), std::size(kernels::kBlockScaledTiles));
  EXPECT_THAT(large.to_string(),
              HasSubstr("not 2cta_n256: it is expected to take as long, and L2 reads out 1."));
  EXPECT_THAT(large.to_string(), HasSubstr("not 1cta_n64: it is expected to take 2."));
}

// The bounds of docs/notes/2026-11-22-sm100-gemm.md, counted by the simulator: two clusters, two
// tiles each.
TEST(BlockScaledPlanTest, CountsAsTheSimulatorDoes) {
  device::DeviceInfo two_clusters = b200();
  two_clusters.num_sms = 4;
  const auto cost = [&](kernels::BlockScaledKind kind, std::size_t tile, std::int64_t m,
                        std::int64_t n) {
    return block_scaled_cost(two_clusters, block_scaled_variants(kind, false).at(tile),
                             {m, n, 7168});
  };
  const double us = 1e3 / two_clusters.clock_khz;
  const BlockScaledCost nvfp4 = cost(kernels::BlockScaledKind::kNvfp4, 3, 256, 1024);
  EXPECT_NEAR(nvfp4.tensor_clocks * us, 14.6, 0.05);
  EXPECT_NEAR(nvfp4.arriving_clocks * us, 18.4, 0.05);
  EXPECT_NEAR(nvfp4.shared_clocks * us, 18.4, 0.05);
  two_clusters.num_sms = 8;
  const BlockScaledCost mxfp8 = cost(kernels::BlockScaledKind::kMxfp8Mxfp4, 4, 512, 1024);
  EXPECT_NEAR(mxfp8.tensor_clocks * us, 29.2, 0.05);
  EXPECT_NEAR(mxfp8.arriving_clocks * us, 24.3, 0.05);
  EXPECT_NEAR(mxfp8.shared_clocks * us, 31.6, 0.05);
}

TEST(BlockScaledPlanTest, ErrorsSayValueRuleAndRemedy) {
  const auto said = [](std::int64_t m, std::int64_t n, std::int64_t k, NumberFormat format,
                       const BlockScaledProblem& problem) {
    return message_of([&] {
      BlockScaledProblem p = problem;
      p.m = m;
      make_block_scaled_plan(b200(), {format, n, k}, p);
    });
  };
  EXPECT_THAT(said(4, 64, 48, NumberFormat::kNvfp4, {}),
              HasSubstr("k = 48; expected a multiple of 32 from 32 to 2^24. Pad"));
  EXPECT_THAT(said(-1, 64, 64, NumberFormat::kNvfp4, {}), HasSubstr("m = -1; expected 0"));
  EXPECT_THAT(said(4, 64, 64, NumberFormat::kBf16, {}),
              HasSubstr("format = bf16; expected nvfp4 (by NVFP4 activations), mxfp4 or fp8"));
  EXPECT_THAT(said(4, 64, 64, NumberFormat::kFp8, {.out_dtype = DType::kF4}),
              HasSubstr("out_dtype = F4; expected BF16 with fp8 weights. Quantise afterwards."));
  EXPECT_THAT(said(4, 64, 64, NumberFormat::kNvfp4, {.out_dtype = DType::kF32}),
              HasSubstr("out_dtype = F32; expected BF16, or F4"));
  EXPECT_THAT(
      said(4, 64, 64, NumberFormat::kMxfp4, {.x_row_bytes = 72}),
      HasSubstr("x_row_bytes = 72; expected a multiple of 16, at least 64 for k = 64 8-bit"));
  EXPECT_THAT(said(4, 64, 64, NumberFormat::kNvfp4, {.out_row_bytes = 100}),
              HasSubstr("out_row_bytes = 100; expected a multiple of 2, at least 128 for n = 64"));
  EXPECT_THAT(said(4, 64, 64, NumberFormat::kNvfp4, {.kernel = "3cta"}),
              HasSubstr("kernel \"3cta\"; expected one of auto, 1cta_n64, 1cta_n128"));
  EXPECT_THAT(message_of([&] {
                make_block_scaled_plan(h200(), {NumberFormat::kNvfp4, 64, 64}, {});
              }),
              HasSubstr("is for sm_100f; NVIDIA H200 has compute capability 9.0\nTake a B200"));
}

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
    if (from.global_scale) source.global_scale = *from.global_scale;
    tw_block_scaled_problem problem;
    tw_block_scaled_problem_init(&problem);
    problem.m = plan.problem.m;
    problem.out_dtype = plan.problem.out_dtype == DType::kF4 ? TW_F4 : TW_BF16;
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

TEST_F(BlockScaledLinearTest, Nvfp4) {
  check(NumberFormat::kNvfp4, 40, 144, 288);
  check(NumberFormat::kNvfp4, 3, 16, 32, {}, ScaleOrder::k128x4);
}
// k = 160: rows of the weight are padded to 256 elements.
TEST_F(BlockScaledLinearTest, Mxfp8ByMxfp4) {
  check(NumberFormat::kMxfp4, 40, 144, 160);
}
// n and k end inside of blocks of 128 x 128.
TEST_F(BlockScaledLinearTest, Mxfp8ByFp8) {
  check(NumberFormat::kFp8, 40, 144, 160);
  check(NumberFormat::kFp8, 3, 272, 288, {.x_row_bytes = 304, .out_row_bytes = 550});
}
TEST_F(BlockScaledLinearTest, EveryTileOfMxfp8ByFp8) {
  for (const BlockScaledVariant& variant :
       block_scaled_variants(kernels::BlockScaledKind::kMxfp8, false))
    check(NumberFormat::kFp8, 70, 80, 96, {.kernel = variant.name()});
}
// Not a number that ue8m0 has.
TEST_F(BlockScaledLinearTest, Fp8ScalesThatAreNoPowersOfTwo) {
  const ScaledMatrix w = draw(1, NumberFormat::kFp8, true, 144, 160);
  Stored stored(w, NumberFormat::kFp8, ScaleOrder::kPlain);
  std::vector<float> scales = {1, 0.25f, 2, 0.75f};
  stored.source.scales =
      contiguous_view(static_cast<const void*>(scales.data()), DType::kF32, {2, 2});
  const auto prepare = [&] { BlockScaledWeight::prepare(*device_, stored.source); };
  EXPECT_THAT(
      message_of(prepare),
      HasSubstr("the scale of rows from 128 and columns from 128 is 0.75; expected a power"));
  scales[3] = 0x1p-127f;
  EXPECT_EQ(message_of(prepare), "nothing was wrong");
}
TEST_F(BlockScaledLinearTest, TheCInterfaceDoesTheSame) {
  constexpr ScaleOrder kPlain = ScaleOrder::kPlain;
  check(NumberFormat::kFp8, 20, 144, 160, {}, kPlain, true);
  check(NumberFormat::kMxfp4, 20, 48, 64, {}, kPlain, true);
  check(NumberFormat::kNvfp4, 33, 96, 96, {.out_dtype = DType::kF4}, kPlain, true);
}
TEST_F(BlockScaledLinearTest, RequantisedToNvfp4) {
  check(NumberFormat::kNvfp4, 33, 96, 96, {.out_dtype = DType::kF4});
}
TEST_F(BlockScaledLinearTest, RowsApartFromEachOther) {
  check(NumberFormat::kNvfp4, 20, 48, 64, {.x_row_bytes = 80, .out_row_bytes = 112});
  check(NumberFormat::kMxfp4, 20, 48, 64, {.x_row_bytes = 96, .out_row_bytes = 98});
}
// Rows of codes that do not end at a multiple of 16 bytes, contiguous, apart by a multiple of 16
// and by an odd number of bytes.
TEST_F(BlockScaledLinearTest, RequantisedRowsOfAnyLength) {
  for (const NumberFormat format : {NumberFormat::kNvfp4, NumberFormat::kMxfp4}) {
    for (const std::int64_t n : {16, 48, 80, 96}) {
      for (const std::int64_t row_bytes : {std::int64_t{0}, n / 2 + (32 - n / 2 % 16), n / 2 + 13})
        check(format, 5, n, 96, {.out_dtype = DType::kF4, .out_row_bytes = row_bytes});
    }
  }
  check(NumberFormat::kNvfp4, 130, 48, 96, {.out_dtype = DType::kF4, .out_row_bytes = 48});
}
// With weight scales in the order of the hardware.
TEST_F(BlockScaledLinearTest, EveryTileOfEveryResult) {
  for (const auto& [kind, format] :
       {std::pair{kernels::BlockScaledKind::kNvfp4, NumberFormat::kNvfp4},
        {kernels::BlockScaledKind::kMxfp8Mxfp4, NumberFormat::kMxfp4}}) {
    for (const DType dtype : {DType::kBF16, DType::kF4}) {
      for (const BlockScaledVariant& variant : block_scaled_variants(kind, dtype == DType::kF4)) {
        check(format, 70, 80, 96,
              {.out_dtype = dtype,
               .out_row_bytes = dtype == DType::kF4 ? 64 : 0,
               .kernel = variant.name()},
              ScaleOrder::k128x4);
      }
    }
  }
}
TEST_F(BlockScaledLinearTest, NoRows) {
  check(NumberFormat::kNvfp4, 0, 48, 64);
}

// ue4m3 has no sign: 0x80 is a zero in checkpoints, and must not reach the tensor core.
TEST_F(BlockScaledLinearTest, NegativeZerosAmongScales) {
  ScaledMatrix w = draw(1, NumberFormat::kNvfp4, true, 16, 64);
  w.scales[1] = 0x80;
  const Stored stored(w, NumberFormat::kNvfp4, ScaleOrder::kPlain);
  const BlockScaledWeight weight = BlockScaledWeight::prepare(*device_, stored.source);
  w.scales[1] = 0;
  EXPECT_EQ(Internal::of(weight).scales.to_vector<std::uint8_t>(), swizzle_scales(w.scales, 16, 4));
}

TEST_F(BlockScaledLinearTest, ErrorsOfWeights) {
  const ScaledMatrix w = draw(1, NumberFormat::kNvfp4, true, 32, 64);
  const auto said = [&](auto change) {
    Stored stored(w, NumberFormat::kNvfp4, ScaleOrder::kPlain);
    change(stored.source);
    return message_of([&] { BlockScaledWeight::prepare(*device_, stored.source); });
  };
  EXPECT_THAT(said([](auto& s) { s.format = NumberFormat::kBf16; }),
              HasSubstr("format = bf16; expected nvfp4"));
  EXPECT_THAT(said([](auto& s) { s.values.dtype = DType::kF8_E4M3; }),
              HasSubstr("values of an nvfp4 weight have type F8_E4M3; expected F4, or U8"));
  EXPECT_THAT(said([](auto& s) { s.scales.dtype = DType::kF32; }),
              HasSubstr("scales of an nvfp4 weight have type F32; expected F8_E4M3"));
  EXPECT_THAT(said([](auto& s) {
                s.scales = contiguous_view(s.scales.data, DType::kU8, {32, 2});
              }),
              HasSubstr("scales have shape [32, 2]; expected [32, 4]: one for 16 along k"));
  EXPECT_THAT(said([](auto& s) {
                s.values = contiguous_view(s.values.data, DType::kU8, {32, 24});
                s.scales = contiguous_view(s.scales.data, DType::kU8, {32, 3});
              }),
              HasSubstr("the weight is [32, 48], so k = 48; expected a multiple of 32. Pad"));
}
TEST_F(BlockScaledLinearTest, ErrorsOfArguments) {
  const ScaledMatrix w = draw(1, NumberFormat::kNvfp4, true, 32, 64);
  const Stored stored(w, NumberFormat::kNvfp4, ScaleOrder::kPlain);
  const BlockScaledWeight weight = BlockScaledWeight::prepare(*device_, stored.source);
  EXPECT_EQ(weight.bytes(), 32u * 32 + 512);
  const BlockScaledLinear linear(weight, {.m = 5, .out_dtype = DType::kF4});
  device::Buffer memory(internal(), 1 << 16);
  auto* const base = reinterpret_cast<std::uint8_t*>(memory.address());
  const auto said = [&](auto change) {
    BlockScaledArguments arguments = {
        .x = base, .x_scales = base + 4096, .out = base + 8192, .out_scales = base + 16384};
    change(arguments);
    return message_of([&] { linear.run(arguments); });
  };
  EXPECT_THAT(said([](auto& a) { a.x_scales = nullptr; }),
              HasSubstr("the address of x_scales is null"));
  EXPECT_THAT(said([&](auto& a) { a.x = base + 8; }), HasSubstr("expected a multiple of 16"));
  EXPECT_THAT(said([](auto& a) { a.out_scales = nullptr; }), HasSubstr("out_scales is null"));
  EXPECT_THAT(said([](auto& a) { a.out_encode_scale = 0; }),
              HasSubstr("out_encode_scale = 0; expected a finite number above 0"));
}

}  // namespace
}  // namespace tilewright::ops
