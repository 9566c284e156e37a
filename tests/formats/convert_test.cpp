#include "tilewright/convert.h"

#include "tilewright/error.h"

#include "formats/minifloat.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright {
namespace {

using ::testing::HasSubstr;

std::vector<int> bytes_of(const std::vector<std::byte>& bytes) {
  std::vector<int> out;
  for (const std::byte b : bytes) out.push_back(std::to_integer<int>(b));
  return out;
}

TEST(Convert, KnownCodesLieInOrderLittleEndian) {
  const std::vector<float> numbers = {1.0f, -2.0f};
  EXPECT_EQ(bytes_of(encode(DType::kF32, numbers)), (std::vector{0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0}));
  EXPECT_EQ(bytes_of(encode(DType::kBF16, numbers)), (std::vector{0x80, 0x3f, 0x00, 0xc0}));
  EXPECT_EQ(bytes_of(encode(DType::kF16, numbers)), (std::vector{0x00, 0x3c, 0x00, 0xc0}));
  EXPECT_EQ(bytes_of(encode(DType::kF8_E4M3, numbers)), (std::vector{0x38, 0xc0}));
  EXPECT_EQ(bytes_of(encode(DType::kF8_E5M2, numbers)), (std::vector{0x3c, 0xc0}));
  EXPECT_EQ(bytes_of(encode(DType::kF4, numbers)), (std::vector{0xc2}));
}

TEST(Convert, RoundsToNearestEvenAndSaturatesSmallFormats) {
  const std::vector<float> numbers = {1.0f + 0x1p-8f, 1.0f + 0x1.8p-7f, 1e30f};
  EXPECT_EQ(decode(DType::kBF16, encode(DType::kBF16, numbers)),
            (std::vector{1.0f, 1.0f + 0x1p-6f, 0x1.94p99f}));
  EXPECT_EQ(decode(DType::kF8_E4M3, encode(DType::kF8_E4M3, numbers))[2], 448.0f);
  EXPECT_EQ(decode(DType::kF4, encode(DType::kF4, std::vector{-1e9f, 0.3f})),
            (std::vector{-6.0f, 0.5f}));
  const std::vector<float> nan = {std::numeric_limits<float>::quiet_NaN()};
  EXPECT_TRUE(std::isnan(decode(DType::kF8_E4M3, encode(DType::kF8_E4M3, nan))[0]));
}

TEST(Convert, EveryCodeComesBack) {
  for (const DType dtype : {DType::kF16, DType::kBF16, DType::kF8_E4M3, DType::kF8_E5M2}) {
    const std::size_t width = static_cast<std::size_t>(bits_per_elem(dtype)) / 8;
    std::vector<std::byte> codes;
    for (unsigned code = 0; code < 1u << 8 * width; ++code) {
      for (std::size_t b = 0; b < width; ++b) codes.push_back(std::byte(code >> 8 * b));
    }
    const std::vector<float> numbers = decode(dtype, codes);
    const std::vector<std::byte> again = encode(dtype, numbers);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      // NaNs have many codes, and encode() saturates the infinities of e5m2.
      if (!std::isfinite(numbers[i])) continue;
      for (std::size_t b = i * width; b < (i + 1) * width; ++b) ASSERT_EQ(codes[b], again[b]) << i;
    }
  }
}

TEST(Convert, SixBitCodesShareBytes) {
  const std::vector<float> numbers = {1, 2, 3, -4, 0.5f, 1.5f, -2, 0};
  const std::vector<std::byte> codes = encode(DType::kF6_E2M3, numbers);
  EXPECT_EQ(codes.size(), 6u);
  EXPECT_EQ(decode(DType::kF6_E2M3, codes), numbers);
}

TEST(Convert, ErrorsNameTypeAndSize) {
  const auto text = [](auto&& call) -> std::string {
    try {
      call();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
      return error.what();
    }
    return "no error";
  };
  EXPECT_THAT(text([] { encode(DType::kI32, std::vector{1.0f}); }), HasSubstr("encode: I32"));
  EXPECT_THAT(text([] { decode(DType::kBF16, std::vector(3, std::byte{})); }),
              HasSubstr("decode: 3 bytes are no whole number of BF16 elements of 16 bits"));
}

}  // namespace
}  // namespace tilewright
