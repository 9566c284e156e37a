#include "sim/tensor/tile_multiply.h"

#include "tilewright/error.h"

#include "formats/minifloat.h"

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

namespace tilewright::sim {
namespace {

/// Kinds of operands that are hard in different ways.
enum class Data {
  kNormal,
  kWideSpread,
  kAnyCode,
  kCancelling,
  kSubnormal,
  kHuge,
  kSparse,
  kEqual,
  kTiny,
  kZerosAndHuge,
  kZeroRows,  ///< three of four rows, and of accumulators, are zeros of either sign
};
constexpr Data kAllData[] = {Data::kNormal,       Data::kWideSpread, Data::kAnyCode,
                             Data::kCancelling,   Data::kSubnormal,  Data::kHuge,
                             Data::kSparse,       Data::kEqual,      Data::kTiny,
                             Data::kZerosAndHuge, Data::kZeroRows};

/// Every variant that runs here. multiply_tile() takes the variant as its last argument.
std::vector<KernelVariant> variants() {
  std::vector<KernelVariant> result;
  for (const auto variant :
       {KernelVariant::kGeneric, KernelVariant::kAvx2, KernelVariant::kAvx512}) {
    if (is_supported(variant)) result.push_back(variant);
  }
  return result;
}

class Generator {
 public:
  explicit Generator(unsigned seed) : rng_(seed) {}

  std::uint32_t code(const FormatSpec& format, Data data, int index) {
    const auto any = static_cast<std::uint32_t>(rng_());
    const std::uint32_t sign = any & format.sign_mask();
    const double normal = normal_(rng_);
    switch (data) {
      case Data::kNormal:
        return encode(format, normal);
      case Data::kWideSpread:  // all codes, but hardly ever an infinity or a NaN
        return is_special(format, any) ? sign : any & mask(format);
      case Data::kAnyCode:  // a few of them infinities and NaNs, also where codes are many
        return any % 64 == 0 ? special(format, any / 64) : any & mask(format);
      case Data::kCancelling:  // pairs of products that differ in the sign, or nearly so
        return encode(format, index % 2 == 0 ? last_ = normal : -last_ * (any % 4 == 0 ? 1.01 : 1));
      case Data::kSubnormal:
        return sign | (any >> 8 & (format.mantissa_mask() * 2 + 1));
      case Data::kHuge:
        return sign | (max_finite_code(format) - (any >> 8) % 3);
      case Data::kSparse:
        return any % 8 != 0 ? sign : encode(format, normal * std::ldexp(1.0, any / 8 % 8));
      case Data::kTiny:  // products below the least subnormal fp32, if the format has them
        return encode(format, std::ldexp(normal, -75 + static_cast<int>(any % 8)));
      case Data::kZerosAndHuge:  // in turns over k, so that zeros meet small and large numbers
        if (any % 3 == 0) return sign;
        return any % 3 == 1 ? encode(format, std::ldexp(normal, -60))
                            : sign | (max_finite_code(format) - (any >> 8) % 64);
      case Data::kZeroRows:
        return index / 16 % 4 != 0 ? sign : encode(format, normal);
      case Data::kEqual:
        break;
    }
    return encode(format, 1.75);
  }

  std::uint32_t any() { return static_cast<std::uint32_t>(rng_()); }

 private:
  static std::uint32_t mask(const FormatSpec& format) {
    return format.magnitude_mask() | format.sign_mask();
  }
  static bool is_special(const FormatSpec& format, std::uint32_t code) {
    return is_nan(format, code) || is_infinity(format, code);
  }
  static std::uint32_t special(const FormatSpec& format, std::uint32_t which) {
    if (!format.has_nan()) return 0;
    if (which % 2 == 0 && format.has_infinity()) {
      return infinity_code(format) | (which % 4 == 0 ? format.sign_mask() : 0);
    }
    return nan_code(format);
  }

  std::mt19937_64 rng_;
  std::normal_distribution<double> normal_;
  double last_ = 0;
};

/// Inputs of one call.
struct Case {
  TileExtents extents;
  const FormatSpec* a_format;
  const FormatSpec* b_format;
  TensorArithmetic arithmetic;
};

std::vector<std::byte> operand(const FormatSpec& format, Data data, int count,
                               Generator& generate) {
  const auto bytes = static_cast<std::size_t>(code_bytes(format));
  std::vector<std::byte> codes(static_cast<std::size_t>(count) * bytes);
  for (int i = 0; i < count; ++i) {
    std::uint32_t code = generate.code(format, data, i);
    if (format == kTf32) code = code << 13 | (generate.any() & 0x1FFF);
    std::memcpy(codes.data() + static_cast<std::size_t>(i) * bytes, &code, bytes);
  }
  return codes;
}

std::vector<std::uint32_t> accumulators(const Case& c, Data data, Generator& generate) {
  const FormatSpec& format = code_format(c.arithmetic.output);
  std::vector<std::uint32_t> codes(static_cast<std::size_t>(c.extents.m * c.extents.n));
  for (std::size_t i = 0; i < codes.size(); ++i) {
    // Mostly near the products, sometimes anything.
    const bool is_near = i % 4 != 0 || data == Data::kNormal;
    codes[i] = i % 5 == 0 ? 0 : generate.code(format, is_near ? Data::kNormal : data, 0);
    if (data == Data::kZeroRows && i % 16 < 12) codes[i] = i % 11 == 0 ? format.sign_mask() : 0;
  }
  return codes;
}

void compare(const Case& c, Data data, unsigned seed) {
  Generator generate(seed);
  const auto a_codes = operand(*c.a_format, data, c.extents.m * c.extents.k, generate);
  const auto b_codes = operand(*c.b_format, data, c.extents.n * c.extents.k, generate);
  const auto before = accumulators(c, data, generate);
  const TileOperand a{a_codes, c.a_format, seed % 3 == 1};
  const TileOperand b{b_codes, c.b_format, seed % 3 == 2};
  std::vector<std::uint32_t> expected(before.size());
  multiply_tile_reference(c.arithmetic, c.extents, a, b, before, expected);
  for (const KernelVariant variant : variants()) {
    auto d = before;  // in place
    multiply_tile(c.arithmetic, c.extents, a, b, d, d, variant);
    for (std::size_t i = 0; i < d.size(); ++i) {
      ASSERT_EQ(d[i], expected[i])
          << name_of(variant) << ", element " << i << ", data " << static_cast<int>(data) << ", "
          << c.a_format->name << ", c = " << before[i];
    }
  }
}

Case unit_case(TensorUnit unit, TileExtents extents, const FormatSpec& a, const FormatSpec& b,
               bool is_f16_output = false) {
  return {extents, &a, &b, tensor_arithmetic(unit, a, is_f16_output)};
}

void compare_all(const Case& c) {
  unsigned seed = 1;
  for (const Data data : kAllData) compare(c, data, seed++);
}

TEST(TileMultiply, WgmmaHalfPrecision) {
  compare_all(unit_case(TensorUnit::kWgmma, {64, 40, 16}, kBf16, kBf16));
  compare_all(unit_case(TensorUnit::kWgmma, {64, 32, 16}, kFp16, kFp16));
  compare_all(unit_case(TensorUnit::kWgmma, {64, 32, 16}, kFp16, kFp16, true));
  compare_all(unit_case(TensorUnit::kWgmma, {16, 80, 16}, kBf16, kBf16));
}

TEST(TileMultiply, WgmmaTf32) {
  compare_all(unit_case(TensorUnit::kWgmma, {64, 48, 8}, kTf32, kTf32));
  compare_all(unit_case(TensorUnit::kWgmma, {64, 8, 8}, kTf32, kTf32));
}

TEST(TileMultiply, WgmmaFp8) {
  compare_all(unit_case(TensorUnit::kWgmma, {64, 32, 32}, kE4m3, kE4m3));
  compare_all(unit_case(TensorUnit::kWgmma, {64, 24, 32}, kE4m3, kE5m2));
  compare_all(unit_case(TensorUnit::kWgmma, {64, 24, 32}, kE5m2, kE5m2, true));
}

TEST(TileMultiply, MmaSync) {
  for (const int k : {8, 16}) {
    compare_all(unit_case(TensorUnit::kMmaSync, {16, 8, k}, kFp16, kFp16));
    compare_all(unit_case(TensorUnit::kMmaSync, {16, 8, k}, kFp16, kFp16, true));
    compare_all(unit_case(TensorUnit::kMmaSync, {16, 8, k}, kBf16, kBf16));
    compare_all(unit_case(TensorUnit::kMmaSync, {16, 8, k / 2}, kTf32, kTf32));
    compare_all(unit_case(TensorUnit::kMmaSync, {16, 8, 2 * k}, kE5m2, kE4m3));
    compare_all(unit_case(TensorUnit::kMmaSync, {16, 8, 2 * k}, kE4m3, kE4m3, true));
  }
}

TEST(TileMultiply, Tcgen05NarrowFormats) {
  compare_all(unit_case(TensorUnit::kTcgen05, {32, 32, 32}, kE4m3, kE2m1));
  compare_all(unit_case(TensorUnit::kTcgen05, {32, 16, 32}, kE3m2, kE2m3));
}

TEST(TileMultiply, OddExtents) {
  compare_all(unit_case(TensorUnit::kMmaSync, {3, 5, 7}, kBf16, kBf16));
  compare_all(unit_case(TensorUnit::kMmaSync, {1, 70, 1}, kFp16, kFp16, true));
  compare_all(unit_case(TensorUnit::kMmaSync, {6, 33, 24}, kE5m2, kE5m2));
}

TEST(TileMultiply, WithoutKernelUsesTheReference) {
  Case c = unit_case(TensorUnit::kMmaSync, {16, 8, 16}, kBf16, kBf16);
  c.arithmetic.is_exact = true;
  compare_all(c);
  compare_all(unit_case(TensorUnit::kMmaSync, {4, 8, 64}, kE4m3, kE4m3));
}

TEST(TileMultiply, LargestTile) {
  compare(unit_case(TensorUnit::kWgmma, {256, 256, 16}, kBf16, kBf16), Data::kWideSpread, 11);
}

// Products of numbers just below 2 count up to 2^27 units of 2^-25 each: k of them and C reach the
// ends of 32 bits, and pass them. Row r has r products of the other sign.
TEST(TileMultiply, SumsThatLeave32Bits) {
  for (const auto& [unit, format, k] :
       {std::tuple{TensorUnit::kWgmma, &kFp16, 16}, std::tuple{TensorUnit::kTcgen05, &kE4m3, 32}}) {
    const Case c = unit_case(unit, {k, 48, k}, *format, *format);
    const std::uint32_t code = encode(*format, 2 - std::ldexp(1.0, -format->mantissa_bits));
    const auto bytes = static_cast<std::size_t>(code_bytes(*format));
    std::vector<std::byte> a(static_cast<std::size_t>(k * k) * bytes),
        b(static_cast<std::size_t>(48 * k) * bytes);
    for (int i = 0; i < k * k; ++i) {
      const std::uint32_t signed_code = code | (i % k < i / k ? format->sign_mask() : 0);
      std::memcpy(a.data() + static_cast<std::size_t>(i) * bytes, &signed_code, bytes);
    }
    for (std::size_t i = 0; i < b.size(); i += bytes) std::memcpy(b.data() + i, &code, bytes);
    std::vector<std::uint32_t> before(static_cast<std::size_t>(k * 48)), expected(before.size());
    for (std::size_t i = 0; i < before.size(); ++i) {
      before[i] = encode(kFp32, 1.9999 * (static_cast<double>(i % 9) / 4 - 1));
    }
    multiply_tile_reference(c.arithmetic, c.extents, {a, format}, {b, format}, before, expected);
    for (const KernelVariant variant : variants()) {
      auto d = before;
      multiply_tile(c.arithmetic, c.extents, {a, format}, {b, format}, d, d, variant);
      EXPECT_EQ(d, expected) << format->name << ", " << name_of(variant);
    }
  }
}

TEST(TileMultiply, NoAccumulatorIsZero) {
  Generator generate(1);
  const auto a = operand(kBf16, Data::kNormal, 16 * 16, generate);
  const auto b = operand(kBf16, Data::kNormal, 24 * 16, generate);
  const std::vector<std::uint32_t> zeros(16 * 24, 0);
  for (const KernelVariant variant : variants()) {
    std::vector<std::uint32_t> expected(zeros.size());
    std::vector<std::uint32_t> d(zeros.size(), 99);
    multiply_tile({}, {16, 24, 16}, {a, &kBf16}, {b, &kBf16}, zeros, expected, variant);
    multiply_tile({}, {16, 24, 16}, {a, &kBf16}, {b, &kBf16}, {}, d, variant);
    EXPECT_EQ(d, expected);
  }
}

TEST(TileMultiply, ChecksItsArguments) {
  const std::vector<std::byte> codes(16 * 16 * 2);
  std::vector<std::uint32_t> d(16 * 16);
  const TileOperand good{codes, &kBf16};
  EXPECT_NO_THROW(multiply_tile({}, {16, 16, 16}, good, good, {}, d));
  EXPECT_THROW(multiply_tile({}, {16, 8, 16}, good, good, {}, d), Error);
  EXPECT_THROW(multiply_tile({}, {16, 16, 8}, good, good, {}, d), Error);
  EXPECT_THROW(multiply_tile({}, {16, 16, 0}, good, good, {}, d), Error);
  EXPECT_THROW(multiply_tile({}, {512, 16, 16}, good, good, {}, d), Error);
  EXPECT_THROW(multiply_tile({}, {16, 16, 16}, good, {codes, &kFp32}, {}, d), Error);
  EXPECT_THROW(multiply_tile({}, {16, 16, 16}, good, good, {}, std::span(d).first(9)), Error);
}

TEST(TileMultiply, GenericIsAlwaysThere) {
  EXPECT_TRUE(is_supported(KernelVariant::kGeneric));
  EXPECT_TRUE(is_supported(best_variant()));
  EXPECT_EQ(name_of(KernelVariant::kAvx2), "avx2");
}

}  // namespace
}  // namespace tilewright::sim
