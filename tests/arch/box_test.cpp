// Tiles as boxes: what kernels state directly is what the layout algebra derives.

#include "arch/fragments/smem_tiles.h"
#include "base/error.h"

#include <gtest/gtest.h>

namespace tilewright::arch {
namespace {

// The tile of a box as an operand: its rows are mn (K-major), or the reduction index (MN-major).
constexpr ComposedLayout operand(const SmemBox& box, Major major, int bits) {
  const std::int64_t columns = box.row_bytes * 8 / bits;
  return major == Major::kK ? make_smem_tile(major, box.swizzle, bits, box.rows, columns)
                            : make_smem_tile(major, box.swizzle, bits, columns, box.rows, true);
}

// The algebra derives the major mode from the layout, and the descriptor from both.
constexpr bool describes(const SmemBox& box, Major major, int bits) {
  const ComposedLayout tile = operand(box, major, bits);
  return major_of(tile) == major &&
         box.describe(major) == describe_smem_tile(tile, box.swizzle, bits);
}

// 8-bit operands are always K-major: that is all that the instructions read.
constexpr bool is_described(int rows, int row_bytes, SmemSwizzle swizzle) {
  const SmemBox box = {rows, row_bytes, swizzle};
  return describes(box, Major::kK, 16) && describes(box, Major::kMN, 16) &&
         describes(box, Major::kK, 8);
}

// The boxes of the kernels: queries, keys and values of K4 to K6; K7's bytes; sparse attention and
// its indexer; linear layers; and the boxes of Blackwell.
static_assert(is_described(64, 128, SmemSwizzle::k128B));
static_assert(is_described(64, 256, SmemSwizzle::k128B));
static_assert(is_described(64, 512, SmemSwizzle::k128B));
static_assert(is_described(64, 1024, SmemSwizzle::k128B));
static_assert(is_described(80, 512, SmemSwizzle::k128B));
static_assert(is_described(128, 128, SmemSwizzle::k128B));
static_assert(is_described(128, 256, SmemSwizzle::k128B));
static_assert(is_described(176, 256, SmemSwizzle::k128B));
static_assert(is_described(192, 128, SmemSwizzle::k128B));
static_assert(is_described(256, 128, SmemSwizzle::k128B));
static_assert(is_described(64, 64, SmemSwizzle::k64B));
static_assert(is_described(128, 64, SmemSwizzle::k64B));
static_assert(is_described(256, 32, SmemSwizzle::k32B));
static_assert(is_described(8, 128, SmemSwizzle::k128B));

TEST(Boxes, DescriptorsAreThoseOfTheAlgebra) {
  for (const SmemSwizzle swizzle : {SmemSwizzle::k32B, SmemSwizzle::k64B, SmemSwizzle::k128B}) {
    for (int rows = 8; rows <= 256; rows += 8) {
      for (const int boxes : {1, 2, 3, 8})
        EXPECT_TRUE(is_described(rows, boxes * swizzle_span_bytes(swizzle), swizzle))
            << rows << " rows, " << boxes << " boxes";
    }
  }
}

// Where a copy puts 16-byte chunk `c` of a row: in its box, one box behind another, swizzled.
std::uint32_t chunk_offset(const SmemBox& box, int row, int c) {
  const int chunks = box.span() / 16;
  return static_cast<std::uint32_t>(c / chunks * box.box_bytes()) +
         swizzle_address(box.swizzle,
                         static_cast<std::uint32_t>(row * box.span() + c % chunks * 16));
}

TEST(Boxes, ChunksLieWhereTheLayoutPutsThem) {
  for (const SmemSwizzle swizzle : {SmemSwizzle::k32B, SmemSwizzle::k64B, SmemSwizzle::k128B}) {
    for (const int rows : {8, 24, 64}) {
      const SmemBox box = {rows, 2 * swizzle_span_bytes(swizzle), swizzle};
      const ComposedLayout tile = operand(box, Major::kK, 16);
      EXPECT_EQ(box.bytes(), 2 * size(tile));
      for (int row = 0; row < rows; ++row) {
        for (int chunk = 0; chunk < box.row_bytes / 16; ++chunk) {
          for (int element = 0; element < 8; ++element)
            ASSERT_EQ(chunk_offset(box, row, chunk) + 2 * element,
                      2 * tile(row, chunk * 8 + element));
        }
      }
    }
  }
}

TEST(Boxes, TheMajorModeIsAPropertyOfTheLayout) {
  const Layout rows = make_row_major(make_shape(64, 64));
  EXPECT_EQ(major_of(rows), Major::kK);
  EXPECT_EQ(major_of(make_layout(make_shape(64, 64))), Major::kMN);
  EXPECT_THROW(major_of(make_layout(make_shape(64, 64), make_stride(2, 128))), Error);
  EXPECT_THROW(major_of(make_layout(64)), Error);
}

}  // namespace
}  // namespace tilewright::arch
