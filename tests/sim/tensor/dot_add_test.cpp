#include "sim/tensor/dot_add.h"

#include "formats/minifloat.h"
#include "sim/tensor/wide_sum.h"

#include <bit>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace tilewright::sim {
namespace {

constexpr TensorArithmetic kF25{};
constexpr TensorArithmetic kFp8{13, OutputFormat::kF32E8M13, false};
constexpr TensorArithmetic kHalf{25, OutputFormat::kF16, false};
constexpr TensorArithmetic kExact{25, OutputFormat::kF32, true};

TensorNumber number(const FormatSpec& format, double value, bool is_negated = false) {
  const std::uint32_t code = encode(format, value);
  return decode_number(format, format == kTf32 ? code << 13 : code, is_negated);
}

std::vector<TensorNumber> numbers(const FormatSpec& format, std::vector<double> values) {
  std::vector<TensorNumber> result;
  for (const double value : values) result.push_back(number(format, value));
  return result;
}

std::uint32_t bits(float value) {
  return std::bit_cast<std::uint32_t>(value);
}

/// sum of products plus c; codes of the result.
std::uint32_t dot(const TensorArithmetic& arithmetic, const FormatSpec& format,
                  std::vector<double> a, std::vector<double> b, double c) {
  return dot_add(arithmetic, numbers(format, a), numbers(format, b),
                 number(code_format(arithmetic.output), c));
}

double power(int exponent) {
  return std::ldexp(1.0, exponent);
}

TEST(DotAdd, UnitsHaveTheirArithmetic) {
  EXPECT_EQ(tensor_arithmetic(TensorUnit::kWgmma, kBf16, false), kF25);
  EXPECT_EQ(tensor_arithmetic(TensorUnit::kWgmma, kTf32, false), kF25);
  EXPECT_EQ(tensor_arithmetic(TensorUnit::kWgmma, kE5m2, false), kFp8);
  EXPECT_EQ(tensor_arithmetic(TensorUnit::kWgmma, kE4m3, true),
            (TensorArithmetic{13, OutputFormat::kF16, false}));
  EXPECT_EQ(tensor_arithmetic(TensorUnit::kMmaSync, kE4m3, false), kF25);
  EXPECT_EQ(tensor_arithmetic(TensorUnit::kTcgen05, kE4m3, false), kF25);
  EXPECT_EQ(tensor_arithmetic(TensorUnit::kMmaSync, kFp16, true), kHalf);
  EXPECT_EQ(tensor_arithmetic(TensorUnit::kTcgen05BlockFp4, kE2m1, false).fraction_bits, 35);
}

TEST(DotAdd, AddsSmallNumbersExactly) {
  EXPECT_EQ(dot(kF25, kBf16, {1, 2, 3}, {4, 5, 6}, 0.5), bits(32.5F));
  EXPECT_EQ(dot(kF25, kFp16, {1, -2}, {4, 5}, 0), bits(-6.0F));
  EXPECT_EQ(dot(kHalf, kFp16, {1, -2}, {4, 5}, 1), encode(kFp16, -5.0));
}

TEST(DotAdd, TermsBelowTheAlignedFractionAreCutOff) {
  // 1 decides the alignment, so a term of 2^-26 is lost, however many there are.
  EXPECT_EQ(dot(kF25, kBf16, {1, power(-13)}, {1, power(-13)}, -1), bits(0.0F));
  EXPECT_EQ(dot(kF25, kBf16, {1, power(-13)}, {1, power(-12)}, -1), bits(0x1p-25F));
  EXPECT_EQ(dot(kFp8, kE4m3, {1, power(-7)}, {1, power(-7)}, -1), bits(0.0F));
  EXPECT_EQ(dot(kFp8, kE4m3, {1, power(-7)}, {1, power(-6)}, -1), bits(0x1p-13F));
  // Truncation is toward zero for either sign.
  EXPECT_EQ(dot(kF25, kBf16, {1, -power(-13)}, {1, power(-13)}, -1), bits(0.0F));
}

TEST(DotAdd, AlignmentUsesExponentsOfFactors) {
  // 1.5 * 1.5 = 2.25 counts as exponent 0: 2^-25 survives beside it, 2^-26 does not; and beside an
  // accumulator of the same value, whose exponent is 1, neither does.
  const double small = power(-12);
  EXPECT_EQ(dot(kF25, kBf16, {1.5, -1.5, small}, {1.5, 1.5, small / 2}, 0), bits(0x1p-25F));
  EXPECT_EQ(dot(kF25, kBf16, {1.5, -1.5, small}, {1.5, 1.5, small / 4}, 0), bits(0.0F));
  EXPECT_EQ(dot(kF25, kBf16, {1.5, small}, {1.5, small / 2}, -2.25), bits(0.0F));
}

TEST(DotAdd, ZerosTakeNoPartInTheAlignment) {
  EXPECT_EQ(dot(kF25, kBf16, {0}, {power(100)}, power(-52)), bits(0x1p-52F));
  EXPECT_EQ(dot(kF25, kBf16, {0, power(-60)}, {power(100), power(-60)}, 0), bits(0x1p-120F));
  EXPECT_EQ(dot(kFp8, kE5m2, {0}, {power(15)}, power(-139)), bits(0x1p-139F));
  // Nor does an accumulator of zero: its 2^-126 would cut off what is below 2^-151.
  EXPECT_EQ(dot(kF25, kBf16, {power(-76), power(-76)}, {power(-76), power(-76)}, 0), bits(0.0F));
  EXPECT_EQ(
      dot(kF25, kBf16, std::vector<double>(8, power(-76)), std::vector<double>(8, power(-76)), 0),
      bits(0x1p-149F));
}

TEST(DotAdd, HalfSumsDropWhatIsBelowTheLeastAlignment) {
  // Half of the last place and a little is a tie if the little is below 2^-46.
  const auto tie = [](int little) {
    return dot(kHalf, kFp16, {power(-12), power(-24)}, {power(-13), power(little)}, 0);
  };
  EXPECT_EQ(tie(-22), 1U);
  EXPECT_EQ(tie(-23), 0U);
}

TEST(DotAdd, ResultsAreTruncated) {
  EXPECT_EQ(dot(kF25, kBf16, {1, power(-12)}, {1, power(-12)}, 0), bits(1.0F));
  EXPECT_EQ(dot(kF25, kBf16, {-1, -power(-12)}, {1, power(-12)}, 0), bits(-1.0F));
  EXPECT_EQ(dot(kExact, kBf16, {1, power(-12), power(-13)}, {1, power(-12), power(-12)}, 0),
            bits(std::nextafterf(1.0F, 2.0F)));
  // 14 significant bits only, although the term is 13 bits below the first.
  EXPECT_EQ(dot(kFp8, kE4m3, {2, power(-7)}, {1, power(-6)}, 0), bits(2.0F));
  EXPECT_EQ(dot(kFp8, kE4m3, {1, power(-7)}, {1, power(-6)}, 0), bits(1.0F + 0x1p-13F));
  EXPECT_EQ(dot(kFp8, kE4m3, {0}, {1}, 0x1.FFFFFEp0), bits(0x1.FFF8p0F));
}

TEST(DotAdd, HalfResultsAreRoundedToNearestEven) {
  EXPECT_EQ(dot(kHalf, kFp16, {1, power(-11)}, {1, 1}, 0), encode(kFp16, 1.0));
  EXPECT_EQ(dot(kHalf, kFp16, {1, power(-11)}, {1, 1.5}, 0), encode(kFp16, 1 + power(-10)));
  EXPECT_EQ(dot(kHalf, kFp16, {1, 3 * power(-11)}, {1, 1}, 0), encode(kFp16, 1 + power(-9)));
  EXPECT_EQ(dot(kHalf, kFp16, {255}, {257}, 0), infinity_code(kFp16));  // 65535
  EXPECT_EQ(dot(kHalf, kFp16, {256}, {255.875}, 0), encode(kFp16, 65504.0));
  EXPECT_EQ(dot(kHalf, kFp16, {power(-14)}, {power(-10)}, 0), 1U);
  EXPECT_EQ(dot(kHalf, kFp16, {power(-14)}, {-power(-11)}, 0), 0U);
  EXPECT_EQ(dot(kHalf, kFp16, {power(-14)}, {-1.5 * power(-11)}, 0), 0x8001U);
}

TEST(DotAdd, ZeroIsPositive) {
  EXPECT_EQ(dot(kF25, kBf16, {-0.0}, {1}, -0.0), 0U);
  EXPECT_EQ(dot(kF25, kBf16, {1}, {1}, -1), 0U);
  EXPECT_EQ(dot(kF25, kBf16, {-power(-80)}, {power(-80)}, 0), 0U);
  EXPECT_EQ(dot(kExact, kBf16, {-power(-80)}, {power(-80)}, 0), 0U);
}

TEST(DotAdd, SubnormalNumbers) {
  EXPECT_EQ(dot(kF25, kBf16, {power(-133)}, {1}, 0), bits(0x1p-133F));
  EXPECT_EQ(dot(kF25, kBf16, {power(-100)}, {3 * power(-49)}, 0), bits(0x3p-149F));
  EXPECT_EQ(dot(kF25, kBf16, {power(-100)}, {3 * power(-50)}, 0), bits(0x1p-149F));
  EXPECT_EQ(dot(kExact, kBf16, {power(-100)}, {3 * power(-50)}, 0), bits(0x2p-149F));
  EXPECT_EQ(dot(kF25, kFp16, {power(-24)}, {power(-24)}, 0), bits(0x1p-48F));
}

TEST(DotAdd, OverflowIsInfinite) {
  EXPECT_EQ(dot(kF25, kBf16, {power(64)}, {power(64)}, 0), infinity_code(kFp32));
  EXPECT_EQ(dot(kF25, kBf16, {-power(64)}, {power(64)}, 0), 0xFF800000U);
  EXPECT_EQ(dot(kF25, kBf16, {power(64), -power(64)}, {power(64), power(63)}, 0), bits(0x1p127F));
}

TEST(DotAdd, InfinitiesAndNans) {
  const double inf = INFINITY;
  EXPECT_EQ(dot(kF25, kBf16, {inf}, {-2}, 1), 0xFF800000U);
  EXPECT_EQ(dot(kF25, kBf16, {inf, 1}, {2, 3}, inf), 0x7F800000U);
  EXPECT_EQ(dot(kF25, kBf16, {inf}, {0}, 1), 0x7FFFFFFFU);
  EXPECT_EQ(dot(kF25, kBf16, {inf}, {1}, -inf), 0x7FFFFFFFU);
  EXPECT_EQ(dot(kF25, kBf16, {inf, -inf}, {1, 1}, 0), 0x7FFFFFFFU);
  EXPECT_EQ(dot(kF25, kBf16, {NAN}, {1}, 0), 0x7FFFFFFFU);
  EXPECT_EQ(dot(kHalf, kFp16, {1}, {1}, NAN), 0x7FFFU);
  EXPECT_EQ(dot(kHalf, kFp16, {-inf}, {1}, 0), 0xFC00U);
  EXPECT_EQ(dot(kFp8, kE4m3, {NAN}, {1}, 0), 0x7FFFFFFFU);
  const std::vector<TensorNumber> infinite = {decode_number(kE5m2, infinity_code(kE5m2))};
  EXPECT_EQ(dot_add(kExact, infinite, numbers(kE5m2, {1}), number(kFp32, 0)), 0x7F800000U);
}

TEST(DotAdd, Tf32DropsLowBitsOfTheWord) {
  const TensorNumber a = decode_number(kTf32, bits(1.0F + 0x1p-10F) | 0x1FFF);
  EXPECT_EQ(a.significand, 1025);
  EXPECT_EQ(decode_number(kTf32, 0x7F800001).kind, TensorNumber::Kind::kInfinity);
  EXPECT_EQ(decode_number(kTf32, 0x7F802000).kind, TensorNumber::Kind::kNan);
}

TEST(DotAdd, NegationFlipsOneOperand) {
  const std::vector<TensorNumber> a = {number(kBf16, 3.0, true)};
  const std::vector<TensorNumber> b = {number(kBf16, 5.0)};
  EXPECT_EQ(dot_add(kF25, a, b, number(kFp32, 1)), bits(-14.0F));
}

TEST(DotAdd, ScaleExponentCountsInTheAlignment) {
  const auto one = numbers(kE4m3, {1});
  EXPECT_EQ(dot_add(kF25, one, one, number(kFp32, 1), 3), bits(9.0F));
  EXPECT_EQ(dot_add(kF25, one, one, number(kFp32, -1), -26), bits(-1.0F));
  EXPECT_EQ(dot_add(kF25, one, one, number(kFp32, -1), -24), bits(-1.0F + 0x1p-24F));
}

TEST(DotAdd, BlockScaledGroupsAreExact) {
  const TensorArithmetic arithmetic = tensor_arithmetic(TensorUnit::kTcgen05BlockFp4, kE2m1, false);
  std::vector<TensorNumber> a(64, number(kE2m1, 1.5));
  std::vector<TensorNumber> b(64, number(kE2m1, -0.5));
  const auto sa = numbers(kUe4m3, {1, 2, 1.125, 0});
  const auto sb = numbers(kUe4m3, {1, 1.5, 1, 448});
  // 16 * 0.75 * (1 + 3 + 1.125)
  EXPECT_EQ(dot_add_block_scaled(arithmetic, a, b, number(kFp32, 100), sa, sb), bits(38.5F));
  const auto nan = numbers(kUe8m0, {NAN, 1});
  const auto ok = numbers(kUe8m0, {2, 4});
  EXPECT_EQ(dot_add_block_scaled(arithmetic, a, b, number(kFp32, 0), ok, nan), 0x7FFFFFFFU);
  EXPECT_EQ(dot_add_block_scaled(arithmetic, a, b, number(kFp32, 0), ok, ok), bits(-24.0F * 20));
}

// ---- The model once more, in double -------------------------------------------------------------

struct Split {
  double significand;
  int exponent;
};

Split split(double value, int least_exponent) {
  int exponent = 0;
  const double significand = std::frexp(value, &exponent) * 2;
  if (--exponent >= least_exponent) return {significand, exponent};
  return {std::ldexp(significand, exponent - least_exponent), least_exponent};
}

double model(int fraction_bits, const FormatSpec& format, const std::vector<double>& a,
             const std::vector<double>& b, float c) {
  std::vector<Split> terms;
  if (c != 0) terms.push_back(split(c, -126));
  for (std::size_t k = 0; k < a.size(); ++k) {
    if (a[k] == 0 || b[k] == 0) continue;
    const Split x = split(a[k], format.min_exponent());
    const Split y = split(b[k], format.min_exponent());
    terms.push_back({x.significand * y.significand, x.exponent + y.exponent});
  }
  int largest = -133;
  for (const Split& term : terms) largest = std::max(largest, term.exponent);
  double sum = 0;
  for (const Split& term : terms) {
    sum += std::trunc(std::ldexp(term.significand, fraction_bits + term.exponent - largest));
  }
  return std::ldexp(sum, largest - fraction_bits);
}

TEST(DotAdd, AgreesWithTheModelInDouble) {
  std::mt19937 rng(7);
  for (const FormatSpec& format : {kFp16, kBf16, kTf32, kE4m3, kE5m2, kE3m2, kE2m3, kE2m1}) {
    for (int round = 0; round < 300; ++round) {
      std::vector<double> a;
      std::vector<double> b;
      std::vector<TensorNumber> x;
      std::vector<TensorNumber> y;
      for (int k = 0; k < 16; ++k) {
        const auto code_a = static_cast<std::uint32_t>(rng() % format.num_codes());
        const auto code_b = static_cast<std::uint32_t>(rng() % format.num_codes());
        if (!std::isfinite(decode(format, code_a)) || !std::isfinite(decode(format, code_b))) {
          continue;
        }
        const int shift = format == kTf32 ? 13 : 0;
        a.push_back(decode(format, code_a));
        b.push_back(decode(format, code_b));
        x.push_back(decode_number(format, code_a << shift));
        y.push_back(decode_number(format, code_b << shift));
      }
      const auto c = static_cast<float>(
          std::ldexp(std::normal_distribution<>()(rng), static_cast<int>(rng() % 40) - 20));
      for (const TensorArithmetic& arithmetic : {kF25, kFp8}) {
        const double exact = model(arithmetic.fraction_bits, format, a, b, c);
        const FormatSpec short_fp32 = {"e8m13", 8, 13, 127, true, Specials::kIeee};
        const bool is_short = arithmetic.output == OutputFormat::kF32E8M13;
        std::uint32_t expected = encode(is_short ? short_fp32 : kFp32, exact,
                                        {Rounding::kTowardZero, Saturation::kNone, 0, 0});
        if (is_short) expected <<= 10;
        if (std::abs(exact) >= power(128)) expected = exact < 0 ? 0xFF800000U : 0x7F800000U;
        if ((expected & 0x7FFFFFFF) == 0) expected = 0;
        ASSERT_EQ(dot_add(arithmetic, x, y, decode_number(kFp32, bits(c))), expected)
            << format.name << " round " << round;
      }
    }
  }
}

// ---- WideSum ------------------------------------------------------------------------------------

TEST(WideSum, KeepsBothEnds) {
  WideSum sum;
  sum.add(1, 500);
  sum.add(3, -600);
  sum.add(-1, 500);
  const auto value = sum.value();
  EXPECT_FALSE(value.is_negative);
  EXPECT_FALSE(value.has_remainder);
  EXPECT_EQ(value.magnitude, std::uint64_t{3} << 62);
  EXPECT_EQ(value.lowest_exponent, -662);
}

TEST(WideSum, ReportsARemainder) {
  WideSum sum;
  sum.add(-1, 0);
  sum.add(-1, -64);
  EXPECT_TRUE(sum.value().is_negative);
  EXPECT_TRUE(sum.value().has_remainder);
  EXPECT_EQ(sum.value().magnitude, std::uint64_t{1} << 63);
  EXPECT_EQ(WideSum().value().magnitude, 0U);
}

TEST(WideSum, AgreesWithWideIntegers) {
  std::mt19937_64 rng(3);
  for (int round = 0; round < 500; ++round) {
    WideSum sum;
    __int128_t expected = 0;
    for (int i = 0; i < 20; ++i) {
      const std::int64_t value = static_cast<std::int64_t>(rng()) >> 34;
      const int exponent = static_cast<int>(rng() % 80);
      sum.add(value, exponent - 40);
      expected += static_cast<__int128_t>(value) * (static_cast<__int128_t>(1) << exponent);
    }
    const auto got = sum.value();
    ASSERT_EQ(got.is_negative, expected < 0);
    auto magnitude = static_cast<__uint128_t>(expected < 0 ? -expected : expected);
    int exponent = -40;
    bool has_remainder = false;
    for (; magnitude >> 64 != 0; ++exponent, magnitude >>= 1) has_remainder |= (magnitude & 1) != 0;
    for (; magnitude != 0 && magnitude >> 63 == 0; --exponent) magnitude <<= 1;
    ASSERT_EQ(got.magnitude, static_cast<std::uint64_t>(magnitude));
    ASSERT_EQ(got.has_remainder, has_remainder);
    ASSERT_TRUE(magnitude == 0 || got.lowest_exponent == exponent);
  }
}

}  // namespace
}  // namespace tilewright::sim
