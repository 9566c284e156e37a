// quantize() with options, and what quantize() and dequantize() refuse.
#include "formats/block_scale.h"
#include "formats/fast_encode.h"
#include "tests/formats/block_data.h"
#include "tests/formats/expect_invalid.h"

#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright {
namespace {

using testing::ElementsAre;

constexpr float kFltInfinity = std::numeric_limits<float>::infinity();
constexpr float kFltNan = std::numeric_limits<float>::quiet_NaN();

// --- four over six -------------------------------------------------------------------------------

double block_error(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (double{a[i]} - b[i]) * (double{a[i]} - b[i]);
  return sum;
}

TEST(FourOverSix, NeverWorseInAnyBlockAndOftenBetter) {
  constexpr int64_t kRows = 64, kCols = 1024;
  const std::vector<float> values = normal_values(kRows * kCols, 21);
  const auto six = quantize(kNvfp4, values, kRows, kCols);
  const auto chosen = quantize(kNvfp4, values, kRows, kCols, {.choice = ScaleChoice::kFourOverSix});
  EXPECT_EQ(chosen.tensor_scale, six.tensor_scale);
  const std::vector<float> on_six = dequantize(kNvfp4, six);
  const std::vector<float> on_best = dequantize(kNvfp4, chosen);
  int64_t num_stretched = 0;
  for (int64_t block = 0; block < kRows * kCols / 16; ++block) {
    const std::span original(values.data() + 16 * block, 16);
    const double plain = block_error(original, {on_six.data() + 16 * block, 16});
    const double best = block_error(original, {on_best.data() + 16 * block, 16});
    ASSERT_LE(best, plain) << block;
    const bool is_stretched = chosen.scales[block] != six.scales[block];
    ASSERT_EQ(best < plain, is_stretched) << block;
    num_stretched += is_stretched;
  }
  // On normal data a good third of the blocks gain.
  EXPECT_GT(num_stretched, kRows * kCols / 16 / 4);
  EXPECT_LT(num_stretched, kRows * kCols / 16 / 2);
}

TEST(FourOverSix, MapsAmaxToFourWhereThatIsExact) {
  // Under the scale 1.5 the values 6 and 4.5 are 4 and 3; under the scale 1, 4.5 is off by 0.5.
  std::vector<float> values(16, 4.5f);
  values[0] = 6;
  const auto tensor =
      quantize(kNvfp4, values, 1, 16, {.encode_scale = 1.0f, .choice = ScaleChoice::kFourOverSix});
  EXPECT_THAT(tensor.scales, ElementsAre(0x3c));  // 1.5
  EXPECT_EQ(tensor.codes[0], 0x56);               // 4.5 -> 3 (code 5), 6 -> 4 (code 6)
  EXPECT_EQ(dequantize(kNvfp4, tensor), values);
}

TEST(FourOverSix, TiesKeepSix) {
  const std::vector<float> zeros(16, 0.0f);
  EXPECT_THAT(quantize(kNvfp4, zeros, 1, 16, {.choice = ScaleChoice::kFourOverSix}).scales,
              ElementsAre(0));
  std::vector<float> exact = {6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};  // exact under both
  EXPECT_THAT(
      quantize(kNvfp4, exact, 1, 16, {.encode_scale = 1.0f, .choice = ScaleChoice::kFourOverSix})
          .scales,
      ElementsAre(0x38));
}

// --- exact scales --------------------------------------------------------------------------------

// The set by its meaning: scales whose products with all e2m1 numbers have at most 4 significant
// bits, which are those of e4m3.
bool is_exact_in_e4m3(std::uint32_t scale_code) {
  for (std::uint32_t element = 1; element < 8; ++element) {
    int exponent;
    const double product = decode(kUe4m3, scale_code) * decode(kE2m1, element);
    const double mantissa = std::frexp(product, &exponent) * 16;
    if (mantissa != std::floor(mantissa)) return false;
  }
  return true;
}

TEST(ExactScales, AreThoseWhoseProductsE4m3Holds) {
  std::uint32_t exact = 0, count = 0;
  for (std::uint32_t code = 0; code <= max_finite_code(kUe4m3); ++code) {
    if (code <= top_scale_code(ScaleChoice::kExactBest) && is_exact_in_e4m3(code)) {
      if (code > 0) {
        EXPECT_EQ(exact_scale_after(exact), code);
      }
      exact = code;
      ++count;
    }
    EXPECT_EQ(exact_scale_at_most(code), exact) << code;
  }
  EXPECT_EQ(count, 52u);  // with 0
  EXPECT_EQ(exact_scale_after(exact), exact);
}

TEST(ExactScales, SurroundTheIdealScale) {
  const auto codes = [](float ideal) {
    const ExactScales scales = exact_scales(ideal);
    return std::vector<std::uint32_t>{scales.below, scales.above, scales.nearest};
  };
  EXPECT_THAT(codes(1.25f), ElementsAre(0x3a, 0x3a, 0x3a));
  EXPECT_THAT(codes(1.3f), ElementsAre(0x3a, 0x3c, 0x3a));
  EXPECT_THAT(codes(1.375f), ElementsAre(0x3a, 0x3c, 0x3c)) << "the larger on a tie";
  EXPECT_THAT(codes(1.8f), ElementsAre(0x3c, 0x40, 0x40));
  EXPECT_THAT(codes(500.0f), ElementsAre(0x7c, 0x7c, 0x7c));
  EXPECT_THAT(codes(0.0f), ElementsAre(0, 0, 0));
  EXPECT_THAT(codes(0x1p-11f), ElementsAre(0, 1, 0));
  EXPECT_THAT(codes(0x6.8p-9f), ElementsAre(6, 8, 6));
}

TEST(ExactScales, WeightsSurviveTheWayToE4m3) {
  constexpr int64_t kRows = 16, kCols = 256;
  const std::vector<float> values = normal_values(kRows * kCols, 22);
  for (const ScaleChoice choice : {ScaleChoice::kExactNearest, ScaleChoice::kExactBest}) {
    const auto tensor = quantize(kNvfp4, values, kRows, kCols, {.choice = choice});
    for (const std::uint8_t scale : tensor.scales) ASSERT_TRUE(is_exact_in_e4m3(scale)) << scale;
    EXPECT_EQ(*std::ranges::max_element(tensor.scales), 0x7c) << "the top of the range is used";
  }
  // Of the two neighbours the better one, block by block.
  const auto nearest =
      quantize(kNvfp4, values, kRows, kCols, {.choice = ScaleChoice::kExactNearest});
  const auto best = quantize(kNvfp4, values, kRows, kCols, {.choice = ScaleChoice::kExactBest});
  const std::vector<float> near = dequantize(kNvfp4, nearest), good = dequantize(kNvfp4, best);
  for (int64_t block = 0; block < kRows * kCols / 16; ++block) {
    const std::span original(values.data() + 16 * block, 16);
    ASSERT_LE(block_error(original, {good.data() + 16 * block, 16}),
              block_error(original, {near.data() + 16 * block, 16}))
        << block;
  }
}

// --- fast encoding -------------------------------------------------------------------------------

TEST(EncodeNearest, IsEncode) {
  std::mt19937_64 random(5);
  for (const FormatSpec& format : {kE2m1, kE4m3, kE5m2, kE3m2, kE2m3}) {
    const auto check = [&](float x) {
      ASSERT_EQ(encode_nearest(format, x), encode(format, x, {.saturation = Saturation::kSaturate}))
          << format.name << " " << x;
    };
    for (std::uint32_t code = 0; code < max_finite_code(format); ++code) {
      const double middle = (decode(format, code) + decode(format, code + 1)) / 2;
      for (int i = 0; i < 8; ++i) check((i % 2 == 0 ? -1.0f : 1.0f) * nudged(middle, random));
      check(static_cast<float>(decode(format, code)));
    }
    for (int i = 0; i < 20000; ++i) {
      const auto x = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
      if (x == x) check(x);
    }
    for (const float x : {0.0f, -0.0f, kFltInfinity, -kFltInfinity, 1e-45f, -3e38f}) check(x);
  }
}

// --- errors --------------------------------------------------------------------------------------

TEST(QuantizeErrors, Shapes) {
  const std::vector<float> values(6);
  expect_invalid([&] { quantize(kMxfp4, values, 2, 4); },
                 "quantize: values has 6 elements; a 2 x 4 matrix needs 8");
  expect_invalid([&] { quantize(kMxfp4, values, -2, -3); }, "rows = -2, cols = -3");
  // 2^32 * 2^32 is 0 in 64 bits, the size of the empty array.
  expect_invalid([&] { quantize(kMxfp4, {}, int64_t{1} << 32, int64_t{1} << 32); },
                 "each must be between 0 and 2147483647");
  expect_invalid([&] { quantize(kMxfp4, {}, INT64_MAX, 1); }, "rows = 9223372036854775807");
  // Dimensions in range, but 8 bits per element would not fit 64-bit bit offsets.
  expect_invalid([&] { quantize(kMxfp8, {}, INT32_MAX, INT32_MAX); }, "rows * cols at most 2^50");
}

TEST(QuantizeErrors, Options) {
  const std::vector<float> values(32);
  expect_invalid([&] { quantize(kMxfp4, values, 1, 32, {.encode_scale = 2.0f}); },
                 "encode_scale = 2 given for mxfp4, which has no tensor scale");
  expect_invalid([&] { quantize(kMxfp4, values, 1, 32, {.choice = ScaleChoice::kFourOverSix}); },
                 "the format is mxfp4");
  for (const float scale : {0.0f, -1.0f, kFltInfinity, kFltNan, 1e-45f}) {
    expect_invalid([&] { quantize(kNvfp4, values, 1, 32, {.encode_scale = scale}); },
                   "expected a number above 0");
  }
}

TEST(QuantizeErrors, DequantizeChecksEveryArray) {
  const QuantizedTensor good = quantize(kNvfp4, normal_values(3 * 40, 1), 3, 40);
  const auto with = [&](const std::function<void(QuantizedTensor&)>& change) {
    QuantizedTensor tensor = good;
    change(tensor);
    return [tensor] { dequantize(kNvfp4, tensor); };
  };
  expect_invalid(with([](auto& t) { t.codes.pop_back(); }), "codes has 71 elements");
  expect_invalid(with([](auto& t) { t.scales.push_back(0); }), "scales has 10 elements");
  expect_invalid(with([](auto& t) { t.padded_cols = 64; }),
                 "padded to 3 x 64, but nvfp4 pads 3 x 40");
  expect_invalid(with([](auto& t) { t.rows = -3; }), "rows = -3");
  expect_invalid(with([](auto& t) { t.cols = INT64_MAX; }), "cols = 9223372036854775807");
  expect_invalid([&] { dequantize(kFp8Block64Pow2, good); }, "fp8_64_pow2 pads 3 x 40 to 3 x 64");
}

}  // namespace
}  // namespace tilewright
