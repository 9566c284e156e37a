#include "formats/scale_layout.h"

#include "tests/formats/expect_invalid.h"

#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright {
namespace {

// Published offsets for 8 tiles along K (32 scale columns).
TEST(ScaleLayout, CheckValues) {
  struct Case {
    int64_t row, col, offset;
  };
  const Case cases[] = {{0, 0, 0},   {1, 0, 16},     {32, 0, 4},     {31, 3, 499}, {127, 3, 511},
                        {0, 4, 512}, {128, 0, 4096}, {130, 5, 4641}, {64, 0, 8},   {96, 0, 12}};
  for (const auto& [row, col, offset] : cases) {
    EXPECT_EQ(swizzled_scale_offset(row, col, 32), offset) << row << "," << col;
    // Any column count with 8 tiles has the same offsets.
    EXPECT_EQ(swizzled_scale_offset(row, col, 29), offset) << row << "," << col;
  }
}

// CuTe's layout of a 256 x 128 operand with blocks of 16:
// (((32,4),2),((16,4),2)) : (((16,4),1024),((0,1),512)), evaluated mode by mode.
TEST(ScaleLayout, IsCutesTiledAtom) {
  struct Shape {
    int64_t rows, k, tile_stride_rows, tile_stride_k;
  };
  const Shape shapes[] = {
      {128, 64, 512, 512}, {128, 128, 1024, 512}, {256, 64, 512, 512}, {256, 128, 1024, 512}};
  for (const Shape& shape : shapes) {
    for (int64_t row = 0; row < shape.rows; ++row) {
      for (int64_t k = 0; k < shape.k; ++k) {
        const int64_t expected = row % 32 * 16 + row / 32 % 4 * 4 +
                                 row / 128 * shape.tile_stride_rows + k / 16 % 4 +
                                 k / 64 * shape.tile_stride_k;
        ASSERT_EQ(swizzled_scale_offset(row, k / 16, shape.k / 16), expected);
      }
    }
  }
}

TEST(ScaleLayout, EveryPaddedScaleHasItsOwnByte) {
  for (const auto& [rows, cols] : {std::pair<int64_t, int64_t>{256, 12}, {384, 4}, {128, 28}}) {
    std::vector<int> uses(swizzled_scale_bytes(rows, cols));
    ASSERT_EQ(std::ssize(uses), rows * cols);
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t col = 0; col < cols; ++col) ++uses[swizzled_scale_offset(row, col, cols)];
    }
    EXPECT_THAT(uses, testing::Each(1));
  }
}

TEST(ScaleLayout, RaggedShapesRoundTripAndPadWithZeros) {
  for (const int64_t rows : {0, 1, 31, 127, 128, 129, 300}) {
    for (const int64_t cols : {0, 1, 3, 4, 5, 28}) {
      std::vector<uint8_t> scales(rows * cols);
      for (size_t i = 0; i < scales.size(); ++i) scales[i] = static_cast<uint8_t>(1 + i % 255);
      const auto swizzled = swizzle_scales(scales, rows, cols);
      ASSERT_EQ(std::ssize(swizzled), swizzled_scale_bytes(rows, cols));
      ASSERT_EQ(swizzled.size() % 512, 0u);
      // No scale is 0, so the zeros are the padding, and nothing was written twice.
      EXPECT_EQ(std::count(swizzled.begin(), swizzled.end(), 0),
                std::ssize(swizzled) - rows * cols);
      EXPECT_EQ(unswizzle_scales(swizzled, rows, cols), scales);
    }
  }
}

TEST(ScaleLayout, RefusesWrongSizes) {
  const std::vector<uint8_t> scales(8);
  expect_invalid([&] { swizzle_scales(scales, 2, 3); },
                 "swizzle_scales: scales has 8 elements; a 2 x 3 matrix needs 6");
  expect_invalid([&] { swizzle_scales(scales, -2, -4); }, "rows = -2, cols = -4");
  // 2^33 * 2^31 is 0 in 64 bits.
  expect_invalid([&] { swizzle_scales({}, int64_t{1} << 33, int64_t{1} << 31); }, "2147483647");
  expect_invalid([&] { unswizzle_scales(scales, 2, 4); }, "a 2 x 4 matrix needs 512");
  expect_invalid([&] { unswizzle_scales(scales, INT64_MAX, INT64_MAX); }, "each must be between");
}

}  // namespace
}  // namespace tilewright
