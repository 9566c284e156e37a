// What every format is: its numbers, its special codes, and that encode() inverts decode().
#include "formats/minifloat.h"

#include "tests/formats/expect_invalid.h"
#include "tests/formats/oracle.h"

#include <cfenv>
#include <random>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace tilewright {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// One line per format, from the format's own specification.
struct Limits {
  const char* name;
  int bits;
  double max_finite;
  double min_normal;
  double min_subnormal;
  uint32_t max_finite_code;
};
constexpr Limits kLimits[] = {
    {"fp32", 32, 0x1.fffffep127, 0x1p-126, 0x1p-149, 0x7f7fffff},
    {"fp16", 16, 65504, 0x1p-14, 0x1p-24, 0x7bff},
    {"bf16", 16, 0x1.fep127, 0x1p-126, 0x1p-133, 0x7f7f},
    {"tf32", 19, 0x1.ffcp127, 0x1p-126, 0x1p-136, 0x3fbff},
    {"e4m3", 8, 448, 0x1p-6, 0x1p-9, 0x7e},
    {"e5m2", 8, 57344, 0x1p-14, 0x1p-16, 0x7b},
    {"e3m2", 6, 28, 0.25, 0.0625, 0x1f},
    {"e2m3", 6, 7.5, 1, 0.125, 0x1f},
    {"e2m1", 4, 6, 1, 0.5, 0x7},
    {"ue8m0", 8, 0x1p127, 0x1p-127, 0x1p-127, 0xfe},
    {"ue4m3", 7, 448, 0x1p-6, 0x1p-9, 0x7e},
};

TEST(FormatTable, LimitsOfEveryFormat) {
  ASSERT_EQ(std::size(kLimits), std::size(kFormats));
  for (const Limits& limits : kLimits) {
    SCOPED_TRACE(limits.name);
    const FormatSpec& format = format_by_name(limits.name);
    EXPECT_EQ(format.bits(), limits.bits);
    EXPECT_EQ(format.num_codes(), uint64_t{1} << limits.bits);
    EXPECT_EQ(max_finite(format), limits.max_finite);
    EXPECT_EQ(min_normal(format), limits.min_normal);
    EXPECT_EQ(min_subnormal(format), limits.min_subnormal);
    EXPECT_EQ(max_finite_code(format), limits.max_finite_code);
    EXPECT_EQ(max_exponent(format), std::ilogb(limits.max_finite));
  }
}

TEST(FormatTable, NamesAreUniqueAndConstantsAreTheirRows) {
  std::set<std::string> names;
  for (const FormatSpec& format : kFormats) EXPECT_TRUE(names.insert(format.name).second);
  for (const FormatSpec& format :
       {kFp32, kFp16, kBf16, kTf32, kE4m3, kE5m2, kE3m2, kE2m3, kE2m1, kUe8m0, kUe4m3}) {
    EXPECT_EQ(format, format_by_name(format.name));
    names.erase(format.name);
  }
  EXPECT_TRUE(names.empty()) << "a row without a named constant: " << *names.begin();
}

TEST(FormatTable, UnknownNameListsTheKnownOnes) {
  EXPECT_EQ(find_format("e4m4"), nullptr);
  EXPECT_EQ(find_format(""), nullptr);
  expect_invalid([] { format_by_name("E4M3"); }, "there is no 'E4M3'; expected one of fp32, ");
  for (const FormatSpec& format : kFormats) {
    expect_invalid([] { format_by_name("fp5"); }, format.name);
  }
}

TEST(Decode, EveryCodeFollowsTheFormula) {
  for (const FormatSpec& format : oracle::searchable_formats()) {
    SCOPED_TRACE(format.name);
    for (uint32_t code = 0; code < format.num_codes(); ++code) {
      const uint32_t magnitude = code & format.magnitude_mask();
      const double value = decode(format, code);
      EXPECT_EQ(std::isnan(value), is_nan(format, code)) << code;
      EXPECT_EQ(std::isinf(value), is_infinity(format, code)) << code;
      if (is_nan(format, code)) continue;
      EXPECT_EQ(std::signbit(value), format.is_signed && code >> (format.bits() - 1) != 0) << code;
      if (is_infinity(format, code)) continue;
      EXPECT_EQ(std::fabs(value), oracle::magnitude_value(format, magnitude)) << code;
    }
  }
}

TEST(Decode, NumberOfSpecialCodes) {
  // IEEE: two infinities and 2 * (2^m - 1) NaNs; NaN only: one per sign.
  const std::pair<FormatSpec, std::pair<int, int>> expected[] = {
      {kFp16, {2, 2046}}, {kBf16, {2, 254}}, {kTf32, {2, 2046}}, {kE4m3, {0, 2}},
      {kE5m2, {2, 6}},    {kE3m2, {0, 0}},   {kE2m3, {0, 0}},    {kE2m1, {0, 0}},
      {kUe8m0, {0, 1}},   {kUe4m3, {0, 1}}};
  for (const auto& [format, counts] : expected) {
    std::pair<int, int> found{0, 0};
    for (uint32_t code = 0; code < format.num_codes(); ++code) {
      found.first += is_infinity(format, code);
      found.second += is_nan(format, code);
    }
    EXPECT_EQ(found, counts) << format.name;
  }
}

TEST(Decode, IgnoresBitsAboveTheCode) {
  for (const FormatSpec& format : oracle::searchable_formats()) {
    for (uint32_t code = 0; code < format.num_codes(); ++code) {
      const uint32_t dirty = code | ~uint32_t{0} << format.bits();
      const double value = decode(format, code);
      if (!std::isnan(value)) {
        EXPECT_EQ(decode(format, dirty), value) << format.name << " " << code;
      }
      EXPECT_EQ(is_nan(format, dirty), is_nan(format, code));
      EXPECT_EQ(is_infinity(format, dirty), is_infinity(format, code));
    }
  }
  // Hence an e4m3 byte with its sign bit set reads as the positive scale, as in the tensor core.
  EXPECT_EQ(decode(kUe4m3, 0x80 | 0x38), 1.0);
}

TEST(Encode, InvertsDecodeUnderEveryRounding) {
  for (const FormatSpec& format : oracle::searchable_formats()) {
    SCOPED_TRACE(format.name);
    for (uint32_t code = 0; code < format.num_codes(); ++code) {
      if (is_nan(format, code)) continue;
      const double value = decode(format, code);
      for (const Rounding rounding : oracle::kRoundings) {
        ASSERT_EQ(encode(format, value, {rounding, Saturation::kNone}), code);
      }
      // No random bits can move a value that needs no rounding.
      ASSERT_EQ(encode(format, value, {Rounding::kStochastic, Saturation::kNone, ~0u, 32}), code);
    }
  }
}

TEST(Encode, NanBecomesTheCanonicalCode) {
  const std::pair<FormatSpec, uint32_t> expected[] = {
      {kFp32, 0x7fffffff}, {kFp16, 0x7fff}, {kBf16, 0x7fff}, {kTf32, 0x3ffff},
      {kE4m3, 0x7f},       {kE5m2, 0x7f},   {kE3m2, 0x1f},   {kE2m3, 0x1f},
      {kE2m1, 0x7},        {kUe8m0, 0xff},  {kUe4m3, 0x7f}};
  for (const auto& [format, code] : expected) {
    for (const double nan : {kNan, -kNan, std::numeric_limits<double>::signaling_NaN()}) {
      for (const Saturation saturation : oracle::kSaturations) {
        EXPECT_EQ(encode(format, nan, {Rounding::kNearestEven, saturation}), code) << format.name;
      }
    }
  }
}

TEST(Encode, Infinities) {
  struct Case {
    FormatSpec format;
    uint32_t plus, minus;                // Saturation::kNone
    uint32_t plus_finite, minus_finite;  // Saturation::kSaturate
  };
  const Case cases[] = {
      {kFp32, 0x7f800000, 0xff800000, 0x7f7fffff, 0xff7fffff},
      {kFp16, 0x7c00, 0xfc00, 0x7bff, 0xfbff},
      {kBf16, 0x7f80, 0xff80, 0x7f7f, 0xff7f},
      {kTf32, 0x3fc00, 0x7fc00, 0x3fbff, 0x7fbff},
      {kE4m3, 0x7f, 0xff, 0x7e, 0xfe},
      {kE5m2, 0x7c, 0xfc, 0x7b, 0xfb},
      {kE3m2, 0x1f, 0x3f, 0x1f, 0x3f},
      {kE2m3, 0x1f, 0x3f, 0x1f, 0x3f},
      {kE2m1, 0x7, 0xf, 0x7, 0xf},
      {kUe8m0, 0xff, 0xff, 0xfe, 0xfe},
      {kUe4m3, 0x7f, 0x7f, 0x7e, 0x7e},
  };
  ASSERT_EQ(std::size(cases), std::size(kFormats));
  for (const Case& c : cases) {
    for (const Rounding rounding : oracle::kRoundings) {
      EXPECT_EQ(encode(c.format, kInfinity, {rounding, Saturation::kNone}), c.plus);
      EXPECT_EQ(encode(c.format, -kInfinity, {rounding, Saturation::kNone}), c.minus);
      EXPECT_EQ(encode(c.format, kInfinity, {rounding, Saturation::kSaturate}), c.plus_finite);
      EXPECT_EQ(encode(c.format, -kInfinity, {rounding, Saturation::kSaturate}), c.minus_finite);
    }
    const bool saturates = c.format.bits() <= 8;
    EXPECT_EQ(encode(c.format, kInfinity), saturates ? c.plus_finite : c.plus) << c.format.name;
  }
}

TEST(Encode, ZerosKeepTheirSignAndUe8m0HasNone) {
  for (const FormatSpec& format : kFormats) {
    for (const Rounding rounding : oracle::kRoundings) {
      EXPECT_EQ(encode(format, 0.0, {rounding}), 0u) << format.name;
      EXPECT_EQ(encode(format, -0.0, {rounding}), format.sign_mask()) << format.name;
    }
  }
  EXPECT_EQ(decode(kUe8m0, 0), 0x1p-127);
}

TEST(Encode, UnsignedFormatsTakeTheMagnitude) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 10000; ++i) {
    const double x = std::ldexp(1 + 0x1p-52 * static_cast<double>(random() >> 12),
                                static_cast<int>(random() % 300) - 150);
    for (const Rounding rounding : oracle::kRoundings) {
      EXPECT_EQ(encode(kUe8m0, -x, {rounding}), encode(kUe8m0, x, {rounding})) << x;
      EXPECT_EQ(encode(kUe4m3, -x, {rounding}), encode(kUe4m3, x, {rounding})) << x;
    }
    EXPECT_EQ(encode(kUe4m3, x), encode(kE4m3, x)) << x;
  }
}

TEST(Encode, SmallestDoublesRoundLikeAnyTinyValue) {
  const double tiny[] = {0x1p-1074, 0x1p-1022, 0x1.8p-500};
  for (const FormatSpec& format : kFormats) {
    const uint32_t sign = format.sign_mask();
    const uint32_t next = format.has_subnormals() ? 1 : 0;
    for (const double x : tiny) {
      EXPECT_EQ(encode(format, x), 0u) << format.name;
      EXPECT_EQ(encode(format, -x), sign) << format.name;
      EXPECT_EQ(encode(format, x, {Rounding::kUp}), next) << format.name;
      EXPECT_EQ(encode(format, x, {Rounding::kDown}), 0u) << format.name;
      EXPECT_EQ(encode(format, -x, {Rounding::kTowardZero}), sign) << format.name;
      if (format.is_signed) {
        EXPECT_EQ(encode(format, -x, {Rounding::kDown}), sign | 1) << format.name;
        EXPECT_EQ(encode(format, -x, {Rounding::kUp}), sign) << format.name;
      }
    }
  }
}

// The processor's own conversion is the witness for fp32, in every direction it knows.
TEST(Encode, Fp32AgreesWithTheProcessor) {
  const std::pair<Rounding, int> modes[] = {{Rounding::kNearestEven, FE_TONEAREST},
                                            {Rounding::kTowardZero, FE_TOWARDZERO},
                                            {Rounding::kUp, FE_UPWARD},
                                            {Rounding::kDown, FE_DOWNWARD}};
  std::mt19937_64 random(2);
  for (int i = 0; i < 200000; ++i) {
    uint64_t word = random();
    if (i % 4 == 0) word &= ~0x1fffffffull;                       // already an fp32
    if (i % 4 == 1) word = (word & ~0x1fffffffull) | 0x10000000;  // a tie
    // All exponents around the range of fp32, subnormals included.
    word = (word & ~(0x7ffull << 52)) | (1023 - 180 + random() % 320) << 52;
    volatile const double x = std::bit_cast<double>(word);
    for (const auto& [rounding, mode] : modes) {
      std::fesetround(mode);
      volatile const float expected = static_cast<float>(x);
      std::fesetround(FE_TONEAREST);
      ASSERT_EQ(encode(kFp32, x, {rounding}), std::bit_cast<uint32_t>(float{expected}))
          << std::hexfloat << x;
      ASSERT_EQ(decode(kFp32, encode(kFp32, x, {rounding})), double{expected});
    }
  }
}

TEST(Spacing, IsTheDistanceToTheNextCode) {
  for (const FormatSpec& format : oracle::searchable_formats()) {
    SCOPED_TRACE(format.name);
    const uint32_t last = max_finite_code(format);
    for (uint32_t code = 0; code < last; ++code) {
      const double low = decode(format, code);
      const double high = decode(format, code + 1);
      ASSERT_EQ(spacing(format, low), high - low) << code;
      ASSERT_EQ(spacing(format, low + (high - low) / 2), high - low) << code;
      ASSERT_EQ(spacing(format, -low), high - low) << code;
    }
    const double top = std::ldexp(1.0, max_exponent(format) - format.mantissa_bits);
    for (const double x : {max_finite(format), 2 * max_finite(format), kInfinity, kNan}) {
      EXPECT_EQ(spacing(format, x), top);
    }
  }
}

// Usable in constant expressions, and with the format as a template argument.
static_assert(encode(kE4m3, 448.0) == 0x7e);
static_assert(encode<kE4m3>(465.0, {.saturation = Saturation::kNone}) == 0x7f);
static_assert(encode<kE2m1>(-0.3) == 0x9);
static_assert(decode<kE5m2>(0x7b) == 57344);
static_assert(encode(kUe8m0, 1.0000001, {.rounding = Rounding::kUp}) == 128);
static_assert(round_to(kBf16, 1.00390625) == 1.0);
static_assert(spacing(kE2m1, 5.0) == 2);
static_assert(is_nan(kE4m3, 0xff) && !is_nan(kE2m1, 0xf) && is_infinity(kFp16, 0xfc00));

}  // namespace
}  // namespace tilewright
