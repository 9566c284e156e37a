#include "sim/tensor/integer_multiply.h"

#include "tilewright/error.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace tilewright::sim {
namespace {

std::vector<std::byte> bytes_of(std::vector<int> values) {
  std::vector<std::byte> bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value & 255));
  return bytes;
}

std::int32_t multiply(const IntegerOperand& a, const IntegerOperand& b, int k, std::int32_t c,
                      bool is_saturating = false) {
  std::int32_t d = c;
  multiply_integer_tile({1, 1, k}, a, b, is_saturating, std::span(&d, 1), std::span(&d, 1));
  return d;
}

TEST(IntegerMultiply, SignsOfBytes) {
  const auto a = bytes_of({-1, 2, -128, 127});
  const auto b = bytes_of({3, -4, -128, 255});
  const IntegerOperand as{a, IntegerType::kS8};
  const IntegerOperand au{a, IntegerType::kU8};
  const IntegerOperand bs{b, IntegerType::kS8};
  const IntegerOperand bu{b, IntegerType::kU8};
  EXPECT_EQ(multiply(as, bs, 4, 10), -3 - 8 + 16384 - 127 + 10);
  EXPECT_EQ(multiply(as, bu, 4, 0), -3 + 504 - 16384 + 127 * 255);
  EXPECT_EQ(multiply(au, bu, 4, 0), 765 + 504 + 16384 + 127 * 255);
}

TEST(IntegerMultiply, NibblesLowHalfFirst) {
  const auto a = bytes_of({0x8F, 0x21});  // s4: -1 -8 1 2; u4: 15 8 1 2
  const auto b = bytes_of({0x31, 0x75});  // 1 3 5 7
  EXPECT_EQ(multiply({a, IntegerType::kS4}, {b, IntegerType::kS4}, 4, 0), -1 - 24 + 5 + 14);
  EXPECT_EQ(multiply({a, IntegerType::kU4}, {b, IntegerType::kS4}, 4, 0), 15 + 24 + 5 + 14);
}

TEST(IntegerMultiply, WrapsOrClamps) {
  const auto ones = bytes_of({1});
  const auto minus = bytes_of({-1});
  const IntegerOperand one{ones, IntegerType::kS8};
  const IntegerOperand minus_one{minus, IntegerType::kS8};
  constexpr std::int32_t kMin = std::numeric_limits<std::int32_t>::min();
  constexpr std::int32_t kMax = std::numeric_limits<std::int32_t>::max();
  EXPECT_EQ(multiply(one, one, 1, kMax), kMin);
  EXPECT_EQ(multiply(one, one, 1, kMax, true), kMax);
  EXPECT_EQ(multiply(one, minus_one, 1, kMin), kMax);
  EXPECT_EQ(multiply(one, minus_one, 1, kMin, true), kMin);
  EXPECT_EQ(multiply(one, one, 1, 5, true), 6);
}

TEST(IntegerMultiply, TilesAreRowsTimesRows) {
  std::mt19937 rng(1);
  std::vector<std::byte> a(16 * 32);
  std::vector<std::byte> b(24 * 32);
  for (auto& byte : a) byte = static_cast<std::byte>(rng());
  for (auto& byte : b) byte = static_cast<std::byte>(rng());
  std::vector<std::int32_t> d(16 * 24);
  multiply_integer_tile({16, 24, 32}, {a, IntegerType::kS8}, {b, IntegerType::kU8}, false, {}, d);
  for (std::size_t row = 0; row < 16; ++row) {
    for (std::size_t col = 0; col < 24; ++col) {
      int sum = 0;
      for (std::size_t k = 0; k < 32; ++k) {
        sum += static_cast<std::int8_t>(a[row * 32 + k]) * static_cast<int>(b[col * 32 + k]);
      }
      ASSERT_EQ(d[row * 24 + col], sum);
    }
  }
}

TEST(IntegerMultiply, Bits) {
  std::vector<std::byte> a(2 * 32, std::byte{0x0F});
  std::vector<std::byte> b(1 * 32, std::byte{0x3C});
  b[31] = std::byte{0xFF};
  const std::vector<std::int32_t> c = {1, std::numeric_limits<std::int32_t>::max()};
  std::vector<std::int32_t> d(2);
  multiply_bit_tile({2, 1, 256}, a, b, BitOperation::kAnd, c, d);
  EXPECT_EQ(d[0], 31 * 2 + 4 + 1);
  EXPECT_EQ(d[1], std::numeric_limits<std::int32_t>::min() + 65);
  multiply_bit_tile({2, 1, 256}, a, b, BitOperation::kXor, {}, d);
  EXPECT_EQ(d[0], 31 * 4 + 4);
}

TEST(IntegerMultiply, DoublesAreAChainOfFusedSteps) {
  const double e = 0x1p-30;
  const std::vector<double> a = {1 + e, 1};
  const std::vector<double> b = {1 - e, -1};
  std::vector<double> d(1);
  multiply_f64_tile({1, 1, 2}, a, b, {}, d);
  EXPECT_EQ(d[0], std::fma(1.0, -1.0, std::fma(1 + e, 1 - e, 0.0)));
  const std::vector<double> c = {-1.0};
  multiply_f64_tile({1, 1, 2}, a, b, c, d);
  EXPECT_EQ(d[0], -1.0 - 0x1p-60);  // (1 - e^2) - 1 without rounding in between, then - 1
  EXPECT_EQ(std::fma(1 + e, 1 - e, -1.0), -0x1p-60);
}

TEST(IntegerMultiply, ChecksItsArguments) {
  const std::vector<std::byte> a(32);
  std::vector<std::int32_t> d(1);
  const IntegerOperand good{a, IntegerType::kS8};
  EXPECT_NO_THROW(multiply_integer_tile({1, 1, 32}, good, good, false, {}, d));
  EXPECT_THROW(multiply_integer_tile({1, 1, 16}, good, good, false, {}, d), Error);
  EXPECT_THROW(multiply_integer_tile({1, 1, 63}, {a, IntegerType::kS4}, good, false, {}, d), Error);
  EXPECT_THROW(multiply_integer_tile({2, 1, 16}, good, good, false, {}, d), Error);
  EXPECT_THROW(multiply_bit_tile({1, 1, 30}, a, a, BitOperation::kAnd, {}, d), Error);
  EXPECT_THROW(multiply_bit_tile({1, 1, 128}, a, a, BitOperation::kAnd, {}, d), Error);
}

}  // namespace
}  // namespace tilewright::sim
