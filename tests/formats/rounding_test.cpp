// Rounding and overflow, against the search in oracle.h, around every code of every format.
#include "formats/minifloat.h"
#include "tests/formats/format_param.h"
#include "tests/formats/oracle.h"

#include <limits>

#include <gtest/gtest.h>

namespace tilewright {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Inputs between two neighbouring values: the middle, one step of double and of float beside it,
// and one step inside each end.
std::vector<double> inputs_between(double low, double high) {
  const double middle = low + (high - low) / 2;
  std::vector<double> inputs = {middle, std::nextafter(middle, low), std::nextafter(middle, high),
                                std::nextafter(low, high), std::nextafter(high, low)};
  const auto as_float = static_cast<float>(middle);
  if (double{as_float} == middle) {
    inputs.push_back(std::nextafter(as_float, 0.0f));
    inputs.push_back(std::nextafter(as_float, std::numeric_limits<float>::infinity()));
  }
  return inputs;
}

void expect_like_oracle(const FormatSpec& format, const oracle::Rounder& rounder, double x,
                        const EncodeOptions& options) {
  ASSERT_EQ(encode(format, x, options), rounder.encode(x, options))
      << format.name << ": x = " << std::hexfloat << x << ", rounding "
      << static_cast<int>(options.rounding) << ", saturation "
      << static_cast<int>(options.saturation) << ", random " << options.random_bits << " of "
      << options.num_random_bits << " bits";
}

class EveryFormat : public testing::TestWithParam<FormatSpec> {
 protected:
  EveryFormat() : format(GetParam()), rounder(format), values(rounder.values()) {}

  FormatSpec format;
  oracle::Rounder rounder;
  const std::vector<double>& values;  // the finite magnitudes and the first one beyond
};

TEST_P(EveryFormat, BetweenAllNeighboursInEveryDirection) {
  for (size_t code = 0; code + 1 < values.size(); ++code) {
    const bool is_near_overflow = code + 4 >= values.size();
    for (const double x : inputs_between(values[code], values[code + 1])) {
      for (const Rounding rounding : oracle::kRoundings) {
        for (const Saturation saturation : oracle::kSaturations) {
          if (saturation != Saturation::kNone && !is_near_overflow) continue;
          expect_like_oracle(format, rounder, x, {rounding, saturation});
          expect_like_oracle(format, rounder, -x, {rounding, saturation});
        }
      }
    }
  }
}

TEST_P(EveryFormat, BelowTheSmallestAndBeyondTheLargest) {
  const double smallest = values[0] > 0 ? values[0] : values[1];
  std::vector<double> inputs = {0.0, smallest / 3, 0x1p-1074};
  for (int log2 = 1; log2 <= 130; ++log2) inputs.push_back(std::ldexp(smallest, -log2));
  for (double x = values.back() / 2; x < 0x1p1000; x *= 1.75) inputs.push_back(x);
  inputs.insert(inputs.end(), {std::numeric_limits<double>::max(), kInfinity,
                               std::numeric_limits<double>::quiet_NaN()});
  for (const double x : inputs) {
    for (const Rounding rounding : oracle::kRoundings) {
      for (const Saturation saturation : oracle::kSaturations) {
        expect_like_oracle(format, rounder, x, {rounding, saturation});
        expect_like_oracle(format, rounder, -x, {rounding, saturation});
      }
    }
  }
}

TEST_P(EveryFormat, EncodeIsMonotonic) {
  // Magnitude codes order like magnitudes, so this holds through subnormals and overflow.
  const double first = values[1] / 64;
  for (const Rounding rounding : {Rounding::kNearestEven, Rounding::kTowardZero, Rounding::kUp}) {
    uint32_t last_code = 0;
    for (double x = first; x < 4 * values.back(); x *= 1.01) {
      const uint32_t code = encode(format, x, {rounding, Saturation::kNone});
      ASSERT_GE(code, last_code) << format.name << " " << x;
      last_code = code;
    }
  }
}

// With n random bits, exactly floor(fraction * 2^n) of the 2^n draws round away from zero.
TEST_P(EveryFormat, StochasticRoundsUpInProportionToTheFraction) {
  const size_t stride = std::max<size_t>(1, values.size() / 256);
  for (const int num_bits : {1, 3, 8}) {
    const uint32_t draws = 1u << num_bits;
    for (size_t code = 0; code + 2 < values.size(); code += stride) {
      const double step = values[code + 1] - values[code];
      for (const double fraction : {0.0, 0x1p-9, 0.125, 1.0 / 3, 0.5, 0.7, 1 - 0x1p-9}) {
        const double x = values[code] + fraction * step;
        const double exact_fraction = (x - values[code]) / step;  // x is rounded to a double
        uint32_t rounded_up = 0;
        for (uint32_t bits = 0; bits < draws; ++bits) {
          const EncodeOptions options{Rounding::kStochastic, Saturation::kNone, bits, num_bits};
          rounded_up += encode(format, x, options) != code;
        }
        ASSERT_EQ(rounded_up, std::floor(exact_fraction * draws))
            << format.name << ": x = " << std::hexfloat << x << ", " << num_bits << " bits";
      }
    }
  }
}

TEST_P(EveryFormat, StochasticLikeOracle) {
  const size_t stride = std::max<size_t>(1, values.size() / 256);
  for (size_t code = 0; code + 1 < values.size(); code += stride) {
    for (const double x : inputs_between(values[code], values[code + 1])) {
      for (const uint32_t bits : {0u, 1u, 0x7fffffffu, 0x80000000u, 0xdeadbeefu, ~0u}) {
        for (const int num_bits : {1, 8, 13, 16, 31, 32}) {
          for (const Saturation saturation : oracle::kSaturations) {
            const EncodeOptions options{Rounding::kStochastic, saturation, bits, num_bits};
            expect_like_oracle(format, rounder, x, options);
            expect_like_oracle(format, rounder, -x, options);
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, EveryFormat, testing::ValuesIn(oracle::searchable_formats()),
                         format_test_name);

// All 2^13 draws that cvt.rs.f16x2.f32 can make, and all 2^16 of cvt.rs.bf16x2.f32: their widths
// are the number of mantissa bits that fp32 has more, so every draw distinguishes one fp32.
TEST(Stochastic, EveryDrawOfTheWideFormats) {
  const std::pair<FormatSpec, int> wide[] = {{kFp16, 13}, {kBf16, 16}};
  for (const auto& [format, num_bits] : wide) {
    const uint32_t draws = 1u << num_bits;
    for (const uint32_t cut_off : {1u, draws / 3, draws / 2, draws - 1}) {
      const double x = 1.5 + std::ldexp(cut_off, -23);
      uint32_t rounded_up = 0;
      for (uint32_t bits = 0; bits < draws; ++bits) {
        const double y = round_to(format, x, {Rounding::kStochastic, {}, bits, num_bits});
        ASSERT_TRUE(y == 1.5 || y == 1.5 + spacing(format, 1.5));
        rounded_up += y != 1.5;
      }
      EXPECT_EQ(rounded_up, cut_off) << format.name;
    }
  }
}

TEST(Stochastic, NoRandomBitsTruncateAndHighBitsAreIgnored) {
  for (const double x : {1.9, 0.3, 5.999}) {
    EXPECT_EQ(encode(kE2m1, x, {Rounding::kStochastic, {}, ~0u, 0}),
              encode(kE2m1, x, {Rounding::kTowardZero}));
    for (uint32_t bits = 0; bits < 16; ++bits) {
      EXPECT_EQ(encode(kE2m1, x, {Rounding::kStochastic, {}, bits | 0xabcdef0u, 4}),
                encode(kE2m1, x, {Rounding::kStochastic, {}, bits, 4}));
    }
  }
}

TEST(Stochastic, TinyValuesKeepTheirSmallChance) {
  // 3 * 2^-20 of the way to the smallest e2m1: with 20 bits, 3 draws of 2^20 round up.
  const double x = 0.5 * 3 * 0x1p-20;
  for (uint32_t bits = (1u << 20) - 8; bits < 1u << 20; ++bits) {
    const bool is_up = bits >= (1u << 20) - 3;
    EXPECT_EQ(encode(kE2m1, x, {Rounding::kStochastic, {}, bits, 20}), is_up ? 1u : 0u);
  }
  // Far below, none does, even with all 32 bits set.
  EXPECT_EQ(encode(kE2m1, 0x1p-40, {Rounding::kStochastic, {}, ~0u, 32}), 0u);
  EXPECT_EQ(encode(kE2m1, 0x1p-33, {Rounding::kStochastic, {}, ~0u, 32}), 1u);
}

// Overflow at the documented thresholds.
TEST(Overflow, Thresholds) {
  constexpr EncodeOptions kNone{Rounding::kNearestEven, Saturation::kNone};
  EXPECT_EQ(encode(kE4m3, 464.0, kNone), 0x7eu);  // a tie; 448 has the even mantissa
  EXPECT_EQ(encode(kE4m3, 0x1.d000000000001p8, kNone), 0x7fu);
  EXPECT_EQ(encode(kE4m3, -465.0, kNone), 0xffu);  // the NaN of an overflow keeps the sign
  EXPECT_EQ(encode(kE5m2, std::nextafter(61440.0, 0.0), kNone), 0x7bu);
  EXPECT_EQ(encode(kE5m2, 61440.0, kNone), 0x7cu);  // a tie; infinity has the even mantissa
  EXPECT_EQ(encode(kFp16, std::nextafter(65520.0, 0.0), kNone), 0x7bffu);
  EXPECT_EQ(encode(kFp16, 65520.0, kNone), 0x7c00u);
  EXPECT_EQ(encode(kE4m3, 1e9, {Rounding::kTowardZero, Saturation::kNone}), 0x7eu);
  EXPECT_EQ(encode(kE4m3, 449.0, {Rounding::kUp, Saturation::kNone}), 0x7fu);
  EXPECT_EQ(encode(kE4m3, -449.0, {Rounding::kUp, Saturation::kNone}), 0xfeu);
  EXPECT_EQ(encode(kE5m2, 1e9, {Rounding::kDown, Saturation::kNone}), 0x7bu);
  EXPECT_EQ(encode(kE5m2, -1e9, {Rounding::kDown, Saturation::kNone}), 0xfcu);
}

// The ties of cvt.rn.satfinite.e2m1x2, which some Python helpers round down instead.
TEST(Ties, E2m1GoesToTheEvenCode) {
  const std::pair<double, double> ties[] = {{0.25, 0}, {0.75, 1}, {1.25, 1}, {1.75, 2},
                                            {2.5, 2},  {3.5, 4},  {5, 4}};
  for (const auto& [tie, expected] : ties) {
    EXPECT_EQ(round_to(kE2m1, tie), expected);
    EXPECT_EQ(round_to(kE2m1, -tie), -expected);
  }
}

}  // namespace
}  // namespace tilewright
