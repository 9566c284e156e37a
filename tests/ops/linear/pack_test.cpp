// Packing weights: what the bricks hold is what the checkpoint said, and bad ones are refused.
#include "ops/linear/pack.h"

#include "base/error.h"
#include "formats/minifloat.h"
#include "formats/packed_matrix.h"
#include "tests/ops/linear/case.h"

#include <cmath>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright::ops {
namespace {

using kernels::WordOrder;
using ::testing::HasSubstr;

// Weights of unpack_weight(), with alpha and block scales.
std::vector<double> weights_of(const PackedWeight& packed) {
  std::vector<double> values = unpack_weight(packed, WordOrder::kBf16);
  const std::int32_t k = packed.shape.k, blocks = packed.shape.scale_blocks_rows();
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] *= static_cast<double>(packed.alpha(WordOrder::kBf16));
    const auto at = static_cast<std::int32_t>(i);
    if (!packed.block_scales.empty())
      values[i] *= static_cast<double>(
          packed.block_scales[static_cast<std::size_t>(at % k / 128 * blocks + at / k / 128)]);
  }
  return values;
}

TEST(LinearPackTest, BricksHoldWhatTheCheckpointSays) {
  for (const NumberFormat format : kEveryFormat) {
    // Both more than a brick and a block, the second also ragged.
    for (const auto& [n, k] : {std::pair{32, 64}, std::pair{144, 224}}) {
      SCOPED_TRACE(fmt::format("{} [{}, {}]", to_string(format), n, k));
      const RandomWeight weight(format, n, k);
      const HostWeight host = check_weight_source(weight.source);
      const PackedWeight packed = pack_weight(host, LinearActivations::kBf16);
      EXPECT_EQ(weights_of(packed), reference::dequantize(stored(host)));
    }
  }
}

TEST(LinearPackTest, BothWordOrdersHoldTheSameWeights) {
  for (const NumberFormat format : kEveryFormat) {
    SCOPED_TRACE(to_string(format));
    const RandomWeight weight(format, 48, 96);
    const HostWeight host = check_weight_source(weight.source);
    const PackedWeight a = pack_weight(host, LinearActivations::kBf16);
    const PackedWeight b = pack_weight(host, LinearActivations::kFp8);
    EXPECT_EQ(unpack_weight(a, WordOrder::kBf16), unpack_weight(b, WordOrder::kBf16));
  }
}

// Rows for a tensor core: element k of a row where operand_place() says, zeros behind the last one
// and under a block scale of zero, even for a NaN.
TEST(LinearPackTest, RowsOfE4m3StandInOperandOrder) {
  RandomWeight weight(NumberFormat::kFp8, 144, 208);
  const float zero = 0;
  std::memcpy(&weight.scales[4 * 3], &zero, 4);  // rows from 128 on, columns from 128 on
  weight.values[140 * 208 + 150] = 0x7f;
  const HostWeight host = check_weight_source(weight.source);
  const E4m3Rows rows = e4m3_rows(host);
  ASSERT_EQ(rows.values.size(), 144u * 256);
  ASSERT_EQ(rows.scales.size(), 4u);
  for (std::int64_t row = 0; row < 144; ++row) {
    for (std::int64_t k = 0; k < 256; ++k) {
      const bool is_zero = k >= 208 || (row >= 128 && k >= 128);
      const int expected =
          is_zero ? 0 : int{weight.values[static_cast<std::size_t>(row * 208 + k)]};
      const std::int64_t place = k / 64 * 64 + kernels::operand_place(static_cast<int>(k % 64));
      ASSERT_EQ(int{rows.values[static_cast<std::size_t>(row * 256 + place)]}, expected)
          << "row " << row << ", k " << k;
    }
  }
  for (std::size_t block = 0; block < 3; ++block)  // [k / 128][row / 128]
    EXPECT_EQ(rows.scales[block], host.block_scales[block / 2 + block % 2 * 2]);
  EXPECT_EQ(rows.scales[3], 1);
}

// As e4m3, a weight is off by at most half a place of e4m3: exactly what formats/ says of the
// product.
TEST(LinearPackTest, E4m3WeightsAreRoundedOnce) {
  for (const NumberFormat format : {NumberFormat::kMxfp4, NumberFormat::kNvfp4}) {
    SCOPED_TRACE(to_string(format));
    const RandomWeight weight(format, 64, 128);
    const HostWeight host = check_weight_source(weight.source);
    const PackedWeight packed = pack_weight(host, LinearActivations::kFp8);
    const std::vector<double> exact = reference::dequantize(stored(host));
    const std::vector<double> rounded = unpack_weight(packed, WordOrder::kE4m3);
    int inexact = 0;
    for (std::size_t i = 0; i < exact.size(); ++i) {
      const double ideal = exact[i] / static_cast<double>(packed.alpha(WordOrder::kE4m3));
      ASSERT_EQ(rounded[i], round_to(tilewright::kE4m3, ideal)) << "element " << i << ", " << ideal;
      ASSERT_LE(std::abs(ideal), 384);
      inexact += rounded[i] != ideal;
    }
    EXPECT_EQ(inexact > 0, format == NumberFormat::kNvfp4);
  }
}

// The spec's count: every pair of scale and magnitude is exact in bf16.
TEST(LinearPackTest, EveryScaleTimesEveryMagnitudeIsExactInBf16) {
  for (std::uint32_t code = 1; code < 127; ++code) {
    const int shift = kernels::nvfp4_shift(8);
    const std::uint8_t byte = kernels::nvfp4_scale_byte(kernels::split_ue4m3(code), shift);
    const double factor = decode(kBf16, kernels::bf16_factor(kernels::WeightFormat::kNvfp4, byte));
    for (std::uint32_t magnitude = 0; magnitude < 8; ++magnitude) {
      const double product = std::ldexp(decode(kE2m1, magnitude) * factor, -126);
      EXPECT_EQ(round_to(kBf16, product), product);
      EXPECT_EQ(std::ldexp(product, kernels::nvfp4_bias_exponent(WordOrder::kBf16, shift)),
                decode(kE2m1, magnitude) * decode(kUe4m3, code));
    }
  }
}

TEST(LinearPackTest, ScalesIn128x4OrderGiveTheSame) {
  for (const NumberFormat format : {NumberFormat::kMxfp4, NumberFormat::kNvfp4}) {
    RandomWeight weight(format, 144, 160);
    const PackedWeight plain =
        pack_weight(check_weight_source(weight.source), LinearActivations::kBf16);
    weight.swizzle();
    const PackedWeight swizzled =
        pack_weight(check_weight_source(weight.source), LinearActivations::kBf16);
    EXPECT_TRUE(std::ranges::equal(plain.bytes(), swizzled.bytes()));
  }
}

TEST(LinearPackTest, AReciprocalGlobalScaleGivesTheSame) {
  RandomWeight weight(NumberFormat::kNvfp4, 16, 64);
  weight.source.global_scale = 0x1p-10f;
  const float alpha = pack_weight(check_weight_source(weight.source), LinearActivations::kBf16)
                          .alpha(WordOrder::kBf16);
  weight.source.global_scale = 0x1p10f;
  weight.source.is_global_scale_reciprocal = true;
  EXPECT_EQ(pack_weight(check_weight_source(weight.source), LinearActivations::kBf16)
                .alpha(WordOrder::kBf16),
            alpha);
}

TEST(LinearPackTest, AMatrixOfZerosIsFine) {
  RandomWeight weight(NumberFormat::kNvfp4, 16, 64);
  std::ranges::fill(weight.scales, std::uint8_t{0});
  weight.scales[0] = 0x80;  // -0
  const PackedWeight packed =
      pack_weight(check_weight_source(weight.source), LinearActivations::kBf16);
  for (const double x : unpack_weight(packed, WordOrder::kBf16)) ASSERT_EQ(x, 0);
}

struct Refusal {
  NumberFormat format;
  std::function<void(RandomWeight&)> spoil;
  const char* message;
};

const Refusal kRefusals[] = {
    {NumberFormat::kNvfp4, [](auto& w) { w.source.values.dtype = DType::kF16; },
     "have type F16; expected F4"},
    {NumberFormat::kBf16, [](auto& w) { w.source.values.dtype = DType::kF16; }, "expected BF16"},
    {NumberFormat::kFp8, [](auto& w) { w.source.values.dtype = DType::kF8_E5M2; },
     "expected F8_E4M3"},
    {NumberFormat::kNvfp4,
     [](auto& w) {
       w.source.values.shape = {2, 16, 32};
     },
     "have shape [2, 16, 32]"},
    {NumberFormat::kNvfp4,
     [](auto& w) {
       w.source.values = contiguous_view(w.values.data(), DType::kF4, {24, 64});
     },
     "n = 24"},
    {NumberFormat::kNvfp4,
     [](auto& w) {
       w.source.values = contiguous_view(w.values.data(), DType::kU8, {32, 20});
     },
     "k = 40"},
    {NumberFormat::kMxfp4,
     [](auto& w) {
       w.source.values = contiguous_view(w.values.data(), DType::kF4, {32, 48});
     },
     "a multiple of 32"},
    {NumberFormat::kNvfp4,
     [](auto& w) {
       w.source.values.strides = {128, 1};
     },
     "Make it contiguous"},
    {NumberFormat::kNvfp4, [](auto& w) { w.source.values.data = nullptr; }, "is null"},
    {NumberFormat::kNvfp4, [](auto& w) { w.source.scales = {}; }, "needs scales"},
    {NumberFormat::kNvfp4, [](auto& w) { w.source.scales.dtype = DType::kF8_E8M0; },
     "expected F8_E4M3"},
    {NumberFormat::kMxfp4, [](auto& w) { w.source.scales.dtype = DType::kF8_E4M3; },
     "expected F8_E8M0"},
    {NumberFormat::kNvfp4,
     [](auto& w) {
       w.source.scales.shape = {32, 2};
     },
     "expected [32, 4]: one for 16"},
    {NumberFormat::kNvfp4,
     [](auto& w) {
       w.source.scales.shape = {4, 32};
     },
     "transposed"},
    {NumberFormat::kNvfp4,
     [](auto& w) {
       w.source.scales.shape = {128, 4};
     },
     "set scale_order"},
    {NumberFormat::kNvfp4, [](auto& w) { w.source.scale_order = ScaleOrder::k128x4; },
     "expected [128, 4]"},
    {NumberFormat::kNvfp4, [](auto& w) { w.scales[9] = 0x7f; }, "scale (2, 1) is nan (code 0x7f"},
    {NumberFormat::kNvfp4, [](auto& w) { w.scales[7] = 0xb8; }, "scale (1, 3) is -1"},
    {NumberFormat::kMxfp4, [](auto& w) { w.scales[5] = 0xff; }, "scale (2, 1) is nan"},
    {NumberFormat::kFp8, [](auto& w) { w.scales[3] = 0xff; }, "scale (0, 0) is -"},
    {NumberFormat::kFp8,
     [](auto& w) {
       w.source.scales.shape = {1, 2};
     },
     "expected [1, 1]"},
    {NumberFormat::kBf16, [](auto& w) { w.source.scales.shape = {1}; }, "without scales"},
    {NumberFormat::kNvfp4, [](auto& w) { w.source.global_scale.reset(); }, "it is missing"},
    {NumberFormat::kNvfp4, [](auto& w) { w.source.global_scale = -1.0f; }, "global_scale = -1"},
    {NumberFormat::kNvfp4, [](auto& w) { w.source.global_scale = NAN; }, "global_scale = nan"},
    {NumberFormat::kNvfp4, [](auto& w) { w.source.global_scale = 12345.0f; },
     "looks like a reciprocal"},
    {NumberFormat::kNvfp4,
     [](auto& w) {
       w.source.is_global_scale_reciprocal = true;
       w.source.global_scale = 1e-4f;
     },
     "looks like no reciprocal"},
    {NumberFormat::kMxfp4, [](auto& w) { w.source.global_scale = 1.0f; }, "only nvfp4 has one"},
};

TEST(LinearPackTest, BadWeightsAreRefusedWithTheValues) {
  for (const Refusal& refusal : kRefusals) {
    SCOPED_TRACE(refusal.message);
    RandomWeight weight(refusal.format, 32, 64);
    refusal.spoil(weight);
    try {
      check_weight_source(weight.source);
      ADD_FAILURE() << "was taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
      EXPECT_THAT(error.what(), HasSubstr(refusal.message));
    }
  }
}

TEST(LinearPackTest, MxfpScalesThatSpanTooMuchAreRefused) {
  RandomWeight weight(NumberFormat::kMxfp4, 32, 64);
  std::ranges::fill(weight.values, std::uint8_t{0x11});
  weight.scales[0] = 200;
  weight.scales[1] = 70;
  const HostWeight host = check_weight_source(weight.source);
  try {
    pack_weight(host, LinearActivations::kBf16);
    ADD_FAILURE() << "was taken";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("from 2^-57 to 2^73"));
  }
  // A block of zeros may have any scale.
  std::fill_n(weight.values.begin() + 16, 16, std::uint8_t{0x80});
  const PackedWeight packed =
      pack_weight(check_weight_source(weight.source), LinearActivations::kBf16);
  EXPECT_EQ(unpack_weight(packed, WordOrder::kBf16)[40], 0);
}

}  // namespace
}  // namespace tilewright::ops
