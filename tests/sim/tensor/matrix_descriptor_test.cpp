#include "sim/tensor/matrix_descriptor.h"

#include "tilewright/error.h"

#include <cstring>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace tilewright::sim {
namespace {

constexpr OperandSwizzle kSwizzles[] = {OperandSwizzle::kNone, OperandSwizzle::k32B,
                                        OperandSwizzle::k64B, OperandSwizzle::k128B};

TEST(MatrixDescriptor, FieldsOfAWord) {
  const std::uint64_t bits = 0x0123ULL | 0x0008ULL << 16 | 0x0040ULL << 32 | 1ULL << 62;
  const MatrixDescriptor expected{0x1230, 0x80, 0x400, 0, OperandSwizzle::k128B};
  EXPECT_EQ(decode_matrix_descriptor(bits), expected);
  // Carries into bits 15..14 and the constant bits of later descriptors do not count.
  EXPECT_EQ(decode_matrix_descriptor(bits | 3 << 14 | 1ULL << 46), expected);
  EXPECT_EQ(decode_matrix_descriptor(5ULL << 49).base_offset, 5U);
  EXPECT_EQ(decode_matrix_descriptor(2ULL << 62).swizzle, OperandSwizzle::k64B);
  EXPECT_EQ(decode_matrix_descriptor(3ULL << 62).swizzle, OperandSwizzle::k32B);
}

TEST(MatrixDescriptor, SwizzlesOfAddresses) {
  EXPECT_EQ(swizzled(OperandSwizzle::kNone, 0x3F4), 0x3F4U);
  EXPECT_EQ(swizzled(OperandSwizzle::k128B, 0x385), 0x3F5U);
  EXPECT_EQ(swizzled(OperandSwizzle::k128B, 0x400), 0x400U);
  EXPECT_EQ(swizzled(OperandSwizzle::k64B, 0x380), 0x3B0U);
  EXPECT_EQ(swizzled(OperandSwizzle::k32B, 0x380), 0x390U);
  EXPECT_EQ(swizzled(OperandSwizzle::k32B, 0x310), 0x310U);
}

TEST(MatrixDescriptor, SpotAddresses) {
  const MatrixDescriptor d{0x400, 0x80, 0x500, 0, OperandSwizzle::kNone};
  // row 13 = 8 + 5, k 11 of 2 bytes = byte 22
  EXPECT_EQ(operand_address(d, OperandMajor::kK, 13, 11, 2), 0x400U + 0x500 + 80 + 0x80 + 6);
  EXPECT_EQ(operand_address(d, OperandMajor::kMn, 13, 11, 2), 0x400U + 0x500 + 10 + 48 + 0x80);
  MatrixDescriptor s = d;
  s.swizzle = OperandSwizzle::k128B;
  // 0x400 + 0x500 + 5 * 128 + 22 = 0xB96: line 7, chunk 1 goes to chunk 6.
  EXPECT_EQ(operand_address(s, OperandMajor::kK, 13, 11, 2), 0xBE6U);
  // m byte 154 = 128 + 26, k 11 = 8 + 3: 0x400 + 0x80 + 26 + 3 * 128 + 0x500 = 0xB1A.
  EXPECT_EQ(operand_address(s, OperandMajor::kMn, 77, 11, 2), 0xB1AU ^ 0x60);
}

struct Shared {
  Shared() : bytes(64 << 10) {
    std::mt19937 rng(1);
    for (auto& byte : bytes) byte = static_cast<std::byte>(rng());
  }
  std::vector<std::byte> bytes;
};

/// A descriptor such as kernels use for the tile, at the given start.
MatrixDescriptor usual_descriptor(OperandSwizzle swizzle, OperandMajor major, std::uint32_t start) {
  const auto span = static_cast<std::uint32_t>(swizzle);
  if (span == 0) return {start, 128, 0x200, 0, swizzle};
  return {start, major == OperandMajor::kK ? 16 : 8 * span * 2, 8 * span, 0, swizzle};
}

void expect_gathered(const Shared& shared, const MatrixDescriptor& d, const OperandTile& tile) {
  std::vector<std::byte> codes(tile.size_bytes());
  ASSERT_TRUE(gather_tile(shared.bytes, d, tile, codes).is_done());
  const auto size = static_cast<std::size_t>(tile.element_bytes);
  for (int row = 0; row < tile.rows; ++row) {
    for (int k = 0; k < tile.k; ++k) {
      const std::uint32_t address =
          operand_address(d, tile.major, static_cast<std::uint32_t>(row),
                          static_cast<std::uint32_t>(k), static_cast<std::uint32_t>(size));
      const auto at = static_cast<std::size_t>(row * tile.k + k) * size;
      ASSERT_EQ(std::memcmp(codes.data() + at, shared.bytes.data() + address, size), 0)
          << "row " << row << ", k " << k << ", span " << static_cast<int>(d.swizzle);
    }
  }
}

TEST(GatherTile, EveryElementComesFromItsAddress) {
  const Shared shared;
  for (const OperandSwizzle swizzle : kSwizzles) {
    for (const OperandMajor major : {OperandMajor::kK, OperandMajor::kMn}) {
      for (const std::uint32_t start : {0x400U, 0x420U, 0x2C60U}) {
        for (const int bytes : {1, 2, 4}) {
          const MatrixDescriptor d = usual_descriptor(swizzle, major, start);
          expect_gathered(shared, d, {major, 64, 32 / bytes, bytes});
          expect_gathered(shared, d, {major, 24, 32 / bytes, bytes});
        }
      }
    }
  }
}

TEST(GatherTile, NothingIsWrittenOutOfBounds) {
  const Shared shared;
  for (const OperandMajor major : {OperandMajor::kK, OperandMajor::kMn}) {
    for (const OperandSwizzle swizzle : kSwizzles) {
      const OperandTile tile{major, 64, 16, 2};
      const MatrixDescriptor d = usual_descriptor(swizzle, major, 0x1000);
      std::uint32_t end = 0;
      for (std::uint32_t row = 0; row < 64; ++row) {
        for (std::uint32_t k = 0; k < 16; ++k) {
          end = std::max(end, operand_address(d, major, row, k, 2) + 2);
        }
      }
      std::vector<std::byte> codes(tile.size_bytes(), std::byte{0x5A});
      const auto result = gather_tile(std::span(shared.bytes).first(end - 1), d, tile, codes);
      EXPECT_EQ(result.status, GatherStatus::kOutOfBounds);
      EXPECT_EQ(result.address, end - 2);
      EXPECT_EQ(codes, std::vector<std::byte>(tile.size_bytes(), std::byte{0x5A}));
      EXPECT_TRUE(gather_tile(std::span(shared.bytes).first(end), d, tile, codes).is_done());
    }
  }
}

TEST(GatherTile, HugeStridesAreOutOfBoundsAndNotAWrap) {
  const Shared shared;
  const OperandTile tile{OperandMajor::kK, 256, 16, 2};
  std::vector<std::byte> codes(tile.size_bytes());
  const MatrixDescriptor d = decode_matrix_descriptor(0x3FFFULL << 32 | 0x3FFFULL << 16 | 0x3FFF);
  EXPECT_EQ(gather_tile(shared.bytes, d, tile, codes).status, GatherStatus::kOutOfBounds);
  EXPECT_EQ(gather_tile({}, {}, tile, codes).status, GatherStatus::kOutOfBounds);
}

TEST(GatherTile, RefusesWhatItDoesNotKnow) {
  const Shared shared;
  const OperandTile tile{OperandMajor::kK, 8, 16, 2};
  std::vector<std::byte> codes(tile.size_bytes());
  MatrixDescriptor d = usual_descriptor(OperandSwizzle::k128B, OperandMajor::kK, 0x400);
  d.base_offset = 1;
  EXPECT_EQ(gather_tile(shared.bytes, d, tile, codes).status, GatherStatus::kBaseOffsetUnsupported);
  EXPECT_THROW(gather_tile(shared.bytes, {}, {OperandMajor::kK, 8, 16, 3}, codes), Error);
  EXPECT_THROW(gather_tile(shared.bytes, {}, {OperandMajor::kK, 0, 16, 2}, codes), Error);
  EXPECT_THROW(gather_tile(shared.bytes, {}, {OperandMajor::kK, 16, 16, 2}, codes), Error);
}

}  // namespace
}  // namespace tilewright::sim
