// All 2^16 values of fp16 and of bf16 into every format, and every code of every format into those.
#include "formats/minifloat.h"
#include "tests/formats/format_param.h"
#include "tests/formats/oracle.h"

#include <gtest/gtest.h>

namespace tilewright {
namespace {

class Sweep : public testing::TestWithParam<FormatSpec> {};

TEST_P(Sweep, From16BitsInEveryDirection) {
  const FormatSpec target = GetParam();
  const oracle::Rounder rounder(target);
  for (const FormatSpec& source : {kFp16, kBf16}) {
    for (uint32_t code = 0; code < source.num_codes(); ++code) {
      const double x = decode(source, code);
      for (const Rounding rounding : oracle::kRoundings) {
        for (const Saturation saturation : {Saturation::kSaturate, Saturation::kNone}) {
          ASSERT_EQ(encode(target, x, {rounding, saturation}),
                    rounder.encode(x, {rounding, saturation}))
              << source.name << " code " << code << " to " << target.name << ", rounding "
              << static_cast<int>(rounding);
        }
      }
    }
  }
}

TEST_P(Sweep, To16Bits) {
  const FormatSpec source = GetParam();
  for (const FormatSpec& target : {kFp16, kBf16}) {
    const oracle::Rounder rounder(target);
    // A value survives if the target has its binade and as many mantissa bits; the narrow formats
    // all fit into bf16, and all but ue8m0 into fp16.
    const bool is_exact = max_exponent(source) <= max_exponent(target) &&
                          min_subnormal(source) >= min_subnormal(target) &&
                          source.mantissa_bits <= target.mantissa_bits;
    for (uint32_t code = 0; code < source.num_codes(); ++code) {
      const double x = decode(source, code);
      ASSERT_EQ(encode(target, x), rounder.encode(x, {})) << source.name << " code " << code;
      if (is_exact && !is_nan(source, code)) {
        ASSERT_EQ(round_to(target, x), x) << source.name << " code " << code;
      }
    }
    EXPECT_TRUE(is_exact || source.bits() > 8 || source == kUe8m0) << source.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, Sweep, testing::ValuesIn(oracle::searchable_formats()),
                         format_test_name);

// Every product of an NVFP4 element and its block scale is exact in bf16 and in fp16, which is what
// lets a kernel dequantise weights before the multiplication; in e4m3 most scale mantissas are not.
TEST(Products, ElementTimesScale) {
  int exact_bf16 = 0, exact_fp16 = 0, exact_e4m3 = 0, above_e4m3 = 0, total = 0;
  for (uint32_t scale = 0; scale <= max_finite_code(kUe4m3); ++scale) {
    for (uint32_t element = 0; element <= max_finite_code(kE2m1); ++element) {
      const double product = decode(kUe4m3, scale) * decode(kE2m1, element);
      exact_bf16 += round_to(kBf16, product) == product;
      exact_fp16 += round_to(kFp16, product) == product;
      exact_e4m3 += round_to(kE4m3, product) == product;
      above_e4m3 += product > max_finite(kE4m3);
      ++total;
    }
  }
  EXPECT_EQ(total, 127 * 8);
  EXPECT_EQ(exact_bf16, total);
  EXPECT_EQ(exact_fp16, total);
  EXPECT_EQ(exact_e4m3, 741);
  EXPECT_EQ(above_e4m3, 63);
}

}  // namespace
}  // namespace tilewright
