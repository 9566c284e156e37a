#include "sim/tensor/scaled_multiply.h"

#include "tilewright/error.h"

#include "formats/minifloat.h"

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace tilewright::sim {
namespace {

std::vector<KernelVariant> variants() {
  std::vector<KernelVariant> result;
  for (const auto variant :
       {KernelVariant::kGeneric, KernelVariant::kAvx2, KernelVariant::kAvx512}) {
    if (is_supported(variant)) result.push_back(variant);
  }
  return result;
}

/// Inputs of one call.
struct Inputs {
  TileExtents extents;
  const FormatSpec* a_format;
  const FormatSpec* b_format;
  const FormatSpec* scale_format;
  int per_row;
  std::vector<std::byte> a, b;
  std::vector<std::uint8_t> a_scales, b_scales;
  std::vector<std::uint32_t> c;

  TileOperand a_operand(bool is_negated = false) const { return {a, a_format, is_negated}; }
  TileOperand b_operand() const { return {b, b_format, false}; }
  TileScales scales() const { return {a_scales, b_scales, per_row, scale_format}; }
};

/// How the accumulators relate to the products.
enum class Spread { kNear, kAny, kZero };

std::uint8_t scale_code(const FormatSpec& format, Spread spread, std::mt19937& rng) {
  if (spread == Spread::kAny) return static_cast<std::uint8_t>(rng());  // NaNs among them
  return format.mantissa_bits == 0 ? static_cast<std::uint8_t>(117 + rng() % 20)
                                   : static_cast<std::uint8_t>(rng() % 0x7F);
}

std::uint32_t accumulator(Spread spread, std::mt19937& rng) {
  if (spread == Spread::kZero) return rng() % 2 == 0 ? 0 : 0x80000000U;
  if (spread == Spread::kAny) return static_cast<std::uint32_t>(rng());
  return encode(kFp32, std::normal_distribution<double>(0, 50)(rng));
}

Inputs make_inputs(TileExtents e, const FormatSpec& a, const FormatSpec& b, const FormatSpec& scale,
                   int per_row, Spread spread, unsigned seed) {
  std::mt19937 rng(seed);
  Inputs in{e, &a, &b, &scale, per_row, {}, {}, {}, {}, {}};
  const auto fill = [&](std::vector<std::byte>& to, const FormatSpec& format, int rows) {
    to.resize(static_cast<std::size_t>(rows * e.k));
    for (auto& byte : to) {
      std::uint32_t code = rng() & ((1U << format.bits()) - 1);
      const bool is_special = is_nan(format, code) || is_infinity(format, code);
      if (is_special && (spread != Spread::kAny || rng() % 8 != 0)) code = 1;
      byte = static_cast<std::byte>(code);
    }
  };
  fill(in.a, a, e.m);
  fill(in.b, b, e.n);
  for (int i = 0; i < e.m * per_row; ++i) in.a_scales.push_back(scale_code(scale, spread, rng));
  for (int i = 0; i < e.n * per_row; ++i) in.b_scales.push_back(scale_code(scale, spread, rng));
  for (int i = 0; i < e.m * e.n; ++i) in.c.push_back(accumulator(spread, rng));
  return in;
}

std::vector<TensorNumber> numbers(const std::vector<std::byte>& codes, const FormatSpec& format,
                                  int first, int count, bool is_negated) {
  std::vector<TensorNumber> out;
  for (int i = 0; i < count; ++i) {
    out.push_back(decode_number(
        format, std::to_integer<std::uint32_t>(codes[static_cast<std::size_t>(first + i)]),
        is_negated));
  }
  return out;
}

std::vector<TensorNumber> scale_numbers(const std::vector<std::uint8_t>& codes,
                                        const FormatSpec& format, int first, int count) {
  std::vector<TensorNumber> out;
  for (int i = 0; i < count; ++i) {
    out.push_back(decode_number(format, codes[static_cast<std::size_t>(first + i)]));
  }
  return out;
}

/// What an element must be, by the model for one element.
std::uint32_t model(const Inputs& in, const TensorArithmetic& arithmetic, int row, int col,
                    bool is_a_negated) {
  const int k = in.extents.k;
  const auto a = numbers(in.a, *in.a_format, row * k, k, is_a_negated);
  const auto b = numbers(in.b, *in.b_format, col * k, k, false);
  const auto sa = scale_numbers(in.a_scales, *in.scale_format, row * in.per_row, in.per_row);
  const auto sb = scale_numbers(in.b_scales, *in.scale_format, col * in.per_row, in.per_row);
  const TensorNumber c =
      decode_number(kFp32, in.c[static_cast<std::size_t>(row * in.extents.n + col)]);
  if (arithmetic.fraction_bits == 35) return dot_add_block_scaled(arithmetic, a, b, c, sa, sb);
  const bool is_number =
      sa[0].kind == TensorNumber::Kind::kFinite && sb[0].kind == TensorNumber::Kind::kFinite;
  return is_number ? dot_add(arithmetic, a, b, c, sa[0].exponent + sb[0].exponent) : 0x7FFFFFFF;
}

void compare(const Inputs& in, bool is_a_negated = false) {
  const bool is_fp4 = in.extents.k > 32;
  const TensorArithmetic arithmetic = tensor_arithmetic(
      is_fp4 ? TensorUnit::kTcgen05BlockFp4 : TensorUnit::kTcgen05, *in.a_format, false);
  for (const KernelVariant variant : variants()) {
    std::vector<std::uint32_t> d = in.c;  // in place
    (is_fp4 ? multiply_fp4_tile : multiply_scaled_tile)(arithmetic, in.extents,
                                                        in.a_operand(is_a_negated), in.b_operand(),
                                                        in.scales(), d, d, variant);
    for (int row = 0; row < in.extents.m; ++row) {
      for (int col = 0; col < in.extents.n; ++col) {
        ASSERT_EQ(d[static_cast<std::size_t>(row * in.extents.n + col)],
                  model(in, arithmetic, row, col, is_a_negated))
            << name_of(variant) << " row " << row << " column " << col;
      }
    }
  }
}

TEST(ScaledMultiply, Mxf8f6f4IsTheModel) {
  unsigned seed = 1;
  for (const Spread spread : {Spread::kNear, Spread::kAny, Spread::kZero}) {
    compare(make_inputs({16, 40, 32}, kE4m3, kE4m3, kUe8m0, 1, spread, seed++));
    compare(make_inputs({16, 16, 32}, kE5m2, kE2m1, kUe8m0, 1, spread, seed++));
    compare(make_inputs({8, 24, 32}, kE3m2, kE2m3, kUe8m0, 1, spread, seed++), true);
  }
}

TEST(ScaledMultiply, Mxf4IsTheModel) {
  unsigned seed = 1;
  for (const Spread spread : {Spread::kNear, Spread::kAny, Spread::kZero}) {
    compare(make_inputs({8, 40, 64}, kE2m1, kE2m1, kUe8m0, 2, spread, seed++));
    compare(make_inputs({8, 24, 64}, kE2m1, kE2m1, kUe8m0, 4, spread, seed++), true);
    compare(make_inputs({8, 72, 64}, kE2m1, kE2m1, kUe4m3, 4, spread, seed++));
    compare(make_inputs({4, 40, 96}, kE2m1, kE2m1, kUe4m3, 6, spread, seed++));
  }
}

// e2m1 products times ue4m3 scales are multiples of 2^-2 * 2^-18 below 2^30: sums of 64 of them
// within 2^-35 of the largest term are exact, so that only the last rounding, toward zero, is left.
TEST(ScaledMultiply, Fp4IsCloseToExactSums) {
  const Inputs in = make_inputs({16, 32, 64}, kE2m1, kE2m1, kUe4m3, 4, Spread::kNear, 77);
  std::vector<std::uint32_t> d(in.c.size());
  multiply_fp4_tile(tensor_arithmetic(TensorUnit::kTcgen05BlockFp4, kE2m1, false), in.extents,
                    in.a_operand(), in.b_operand(), in.scales(), in.c, d);
  for (int row = 0; row < 16; ++row) {
    for (int col = 0; col < 32; ++col) {
      const auto at = static_cast<std::size_t>(row * 32 + col);
      double sum = decode(kFp32, in.c[at]);
      double largest = std::abs(sum);
      for (int k = 0; k < 64; ++k) {
        const auto a = std::to_integer<std::uint32_t>(in.a[static_cast<std::size_t>(row * 64 + k)]);
        const auto b = std::to_integer<std::uint32_t>(in.b[static_cast<std::size_t>(col * 64 + k)]);
        const double scale =
            decode(kUe4m3, in.a_scales[static_cast<std::size_t>(row * 4 + k / 16)]) *
            decode(kUe4m3, in.b_scales[static_cast<std::size_t>(col * 4 + k / 16)]);
        sum += decode(kE2m1, a) * decode(kE2m1, b) * scale;
        largest = std::max(largest, scale);
      }
      // Five terms cut at 2^-35 of the largest, and the result at 2^-23.
      const double bound =
          5 * largest * std::ldexp(2.0, -35) + std::abs(sum) * std::ldexp(1.0, -23);
      ASSERT_NEAR(decode(kFp32, d[at]), sum, bound) << row << ", " << col;
    }
  }
}

TEST(ScaledMultiply, ExactMode) {
  Inputs in = make_inputs({4, 8, 64}, kE2m1, kE2m1, kUe8m0, 2, Spread::kNear, 5);
  TensorArithmetic arithmetic = tensor_arithmetic(TensorUnit::kTcgen05BlockFp4, kE2m1, false);
  arithmetic.is_exact = true;
  std::vector<std::uint32_t> d(in.c.size());
  multiply_fp4_tile(arithmetic, in.extents, in.a_operand(), in.b_operand(), in.scales(), in.c, d);
  for (int i = 0; i < 32; ++i) {
    EXPECT_EQ(d[static_cast<std::size_t>(i)], model(in, arithmetic, i / 8, i % 8, false));
  }
}

TEST(ScaledMultiply, AccumulatorsAreScaledBeforeTheyAreAdded) {
  std::mt19937 rng(3);
  const TileExtents e{16, 24, 16};
  for (const bool is_half : {false, true}) {
    const TensorArithmetic arithmetic = tensor_arithmetic(TensorUnit::kTcgen05, kFp16, is_half);
    std::vector<std::byte> a(16 * 16 * 2), b(24 * 16 * 2);
    for (auto* codes : {&a, &b}) {
      for (std::size_t i = 0; i < codes->size(); i += 2) {
        const std::uint32_t code = encode(kFp16, std::normal_distribution<double>()(rng));
        std::memcpy(codes->data() + i, &code, 2);
      }
    }
    std::vector<std::uint32_t> c;
    for (int i = 0; i < 16 * 24; ++i) {
      c.push_back(is_half ? rng() & 0xFFFF : static_cast<std::uint32_t>(rng()));
    }
    for (const int shift : {1, 5, 15}) {
      auto d = c;
      multiply_tile_onto_scaled(arithmetic, e, {a, &kFp16}, {b, &kFp16}, shift, d, d);
      for (int i = 0; i < 16 * 24; ++i) {
        TensorNumber old =
            decode_number(code_format(arithmetic.output), c[static_cast<std::size_t>(i)]);
        const bool is_zero = old.significand == 0;
        if (!is_zero) old.exponent -= shift;
        std::vector<TensorNumber> left, right;
        for (int k = 0; k < 16; ++k) {
          std::uint32_t code = 0;
          std::memcpy(&code, a.data() + (i / 24 * 16 + k) * 2, 2);
          left.push_back(decode_number(kFp16, code));
          std::memcpy(&code, b.data() + (i % 24 * 16 + k) * 2, 2);
          right.push_back(decode_number(kFp16, code));
        }
        ASSERT_EQ(d[static_cast<std::size_t>(i)], dot_add(arithmetic, left, right, old)) << i;
      }
    }
  }
}

TEST(ScaledMultiply, RefusesWhatDoesNotFit) {
  const Inputs in = make_inputs({8, 16, 64}, kE2m1, kE2m1, kUe8m0, 2, Spread::kNear, 5);
  std::vector<std::uint32_t> d(in.c.size());
  const TensorArithmetic arithmetic;
  EXPECT_THROW(multiply_fp4_tile(arithmetic, {8, 16, 64}, in.a_operand(), in.b_operand(),
                                 {in.a_scales, in.b_scales, 4, &kUe8m0}, in.c, d),
               Error);
  EXPECT_THROW(multiply_fp4_tile(arithmetic, {8, 16, 40}, in.a_operand(), in.b_operand(),
                                 in.scales(), in.c, d),
               Error);
  EXPECT_THROW(multiply_scaled_tile(arithmetic, in.extents, in.a_operand(), in.b_operand(),
                                    in.scales(), in.c, d),
               Error);
}

}  // namespace
}  // namespace tilewright::sim
