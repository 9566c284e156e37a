// The block-scaled linear operator: its choice of tiles, its errors, and its results against the
// tensor core's own sums.
#include "tests/ops/linear/block_scaled_case.h"

namespace tilewright::ops {
namespace {

using ::testing::HasSubstr;

BlockScaledPlan plan(std::int64_t m, std::int64_t n, std::int64_t k,
                     NumberFormat format = NumberFormat::kNvfp4,
                     const std::string& kernel = "auto") {
  return make_block_scaled_plan(b200(), {format, n, k}, {.m = m, .kernel = kernel});
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
// Every format, result and tile of a gate and up; columns that end inside of tiles of scales.
TEST_F(BlockScaledLinearTest, SwigluOfGateAndUp) {
  for (const auto& [format, dtype] : {std::pair{NumberFormat::kNvfp4, DType::kF4},
                                      {NumberFormat::kMxfp4, DType::kF8_E4M3},
                                      {NumberFormat::kFp8, DType::kF8_E4M3}}) {
    for (const char* const tile : {"1cta_n128", "2cta_n256"}) {
      check_swiglu(format, 70, 144, 160, {.out_dtype = dtype, .kernel = tile});
      check_swiglu(format, 5, 80, 96, {.kernel = tile, .swiglu_limit = 2});
    }
  }
}
TEST_F(BlockScaledLinearTest, SwigluThroughTheCInterface) {
  check_swiglu(NumberFormat::kMxfp4, 20, 48, 64, {.out_dtype = DType::kF8_E4M3, .swiglu_limit = 3},
               true);
}
TEST_F(BlockScaledLinearTest, ErrorsOfGateAndUp) {
  const ScaledMatrix gate = draw(1, NumberFormat::kNvfp4, true, 32, 64),
                     up = draw(1, NumberFormat::kNvfp4, true, 16, 64);
  const Stored stored(gate, NumberFormat::kNvfp4, ScaleOrder::kPlain),
      other(up, NumberFormat::kNvfp4, ScaleOrder::kPlain);
  LinearWeightSource source = stored.source;
  source.up_values = other.source.values, source.up_scales = other.source.scales;
  EXPECT_THAT(message_of([&] { BlockScaledWeight::prepare(*device_, source); }),
              HasSubstr("the gate is [32, 64] and up is [16, 64]; expected equal shapes"));
  EXPECT_THAT(message_of([&] { LinearWeight::prepare(*device_, source); }),
              HasSubstr("linear: up_values are given; expected one weight"));
  const auto said = [](const BlockScaledWeightInfo& w, const BlockScaledProblem& p) {
    return message_of([&] { make_block_scaled_plan(b200(), w, p); });
  };
  EXPECT_THAT(said({NumberFormat::kNvfp4, 64, 64, true}, {.m = 1, .out_dtype = DType::kF8_E4M3}),
              HasSubstr("out_dtype = F8_E4M3; expected BF16, or F4 with scales"));
  EXPECT_THAT(said({NumberFormat::kNvfp4, 64, 64, true}, {.m = 1, .swiglu_limit = 0}),
              HasSubstr("swiglu_limit = 0; expected a number above 0"));
  EXPECT_THAT(said({NumberFormat::kNvfp4, 64, 64}, {.m = 1, .swiglu_limit = 2}),
              HasSubstr("swiglu_limit = 2; expected none"));
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
