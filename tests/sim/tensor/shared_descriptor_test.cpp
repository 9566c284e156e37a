#include "sim/tensor/shared_descriptor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright::sim {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kConstant = std::uint64_t{1} << 46;

std::uint64_t descriptor(std::uint64_t start, std::uint64_t leading, std::uint64_t stride,
                         std::uint64_t swizzle) {
  return start >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | kConstant | swizzle << 61;
}

TEST(SharedDescriptor, FieldsOfAWord) {
  const SharedDescriptor expected{0x1230, 0x80, 0x400, 0, SharedSwizzle::k128B, false};
  const std::uint64_t bits = descriptor(0x1230, 0x80, 0x400, 2);
  EXPECT_EQ(decode_shared_descriptor(bits), expected);
  EXPECT_EQ(check_shared_descriptor(bits, 100), "");
  EXPECT_EQ(check_unused_bits(bits), "");
  EXPECT_EQ(decode_shared_descriptor(bits | 5ULL << 49).base_offset, 5U);
  EXPECT_TRUE(decode_shared_descriptor(bits | 1ULL << 52).is_leading_absolute);
  constexpr SharedSwizzle kExpected[] = {SharedSwizzle::kNone, SharedSwizzle::k128B32BAtom,
                                         SharedSwizzle::k128B, SharedSwizzle::kNone,
                                         SharedSwizzle::k64B,  SharedSwizzle::kNone,
                                         SharedSwizzle::k32B,  SharedSwizzle::kNone};
  for (std::uint64_t mode = 0; mode < 8; ++mode) {
    EXPECT_EQ(decode_shared_descriptor(mode << 61).swizzle, kExpected[mode]);
  }
}

TEST(SharedDescriptor, EveryBitIsAField) {
  // Toggling any bit of a good descriptor changes a field, or is refused, or is told under strict.
  const std::uint64_t good = descriptor(0x4000, 0x100, 0x400, 0);
  for (int bit = 0; bit < 64; ++bit) {
    const std::uint64_t bits = good ^ std::uint64_t{1} << bit;
    const bool is_noticed = decode_shared_descriptor(bits) != decode_shared_descriptor(good) ||
                            !check_shared_descriptor(bits, 100).empty() ||
                            !check_unused_bits(bits).empty();
    EXPECT_TRUE(is_noticed) << bit;
  }
}

TEST(SharedDescriptor, ErrorsNameTheField) {
  const std::uint64_t good = descriptor(0x400, 16, 1024, 2);
  EXPECT_THAT(check_shared_descriptor(good & ~kConstant, 100),
              HasSubstr("bits 48..46 are 0; they must be 1"));
  EXPECT_THAT(check_shared_descriptor(good | 1ULL << 61, 100), HasSubstr("(bits 63..61) is 3"));
  EXPECT_THAT(check_shared_descriptor(good | 1ULL << 53, 100), HasSubstr("bits 60..53 are 0x1"));
  EXPECT_THAT(check_shared_descriptor(good | 1ULL << 60, 100), HasSubstr("bits 60..53 are 0x80"));
  EXPECT_THAT(check_shared_descriptor(good | 3ULL << 49, 100), HasSubstr("base offset"));
  EXPECT_THAT(check_shared_descriptor(good | 1ULL << 52, 100), HasSubstr("sm_100a"));
  EXPECT_EQ(check_shared_descriptor(good | 1ULL << 52, 103), "");
  EXPECT_THAT(check_shared_descriptor(descriptor(0x400, 16, 1024, 0) | 1ULL << 52, 103),
              HasSubstr("swizzle of 128 bytes"));
  EXPECT_THAT(check_unused_bits(good | 1ULL << 14), HasSubstr("bits 15..14 are 1"));
  EXPECT_THAT(check_unused_bits(good | 1ULL << 31), HasSubstr("bits 31..30 are 2"));
}

TEST(SharedDescriptor, SwizzlesOfAddresses) {
  EXPECT_EQ(swizzled(SharedSwizzle::kNone, 0x3F4), 0x3F4U);
  EXPECT_EQ(swizzled(SharedSwizzle::k128B, 0x385), 0x3F5U);
  EXPECT_EQ(swizzled(SharedSwizzle::k64B, 0x380), 0x3B0U);
  EXPECT_EQ(swizzled(SharedSwizzle::k32B, 0x380), 0x390U);
  EXPECT_EQ(swizzled(SharedSwizzle::k128B32BAtom, 0x390), 0x3F0U);
  EXPECT_EQ(swizzled(SharedSwizzle::k128B32BAtom, 0x290), 0x2B0U);
}

// Two experiments that NVIDIA publishes with what a B200 answers (the SliceK probe of the CuTe DSL
// examples). A tile lies in shared memory with one swizzle and is read through a descriptor for
// another: the linear address comes first, then the swizzle of the descriptor.
//
// `at` is where byte 32 * stripe of a row lies under the 128-byte swizzle at a base of 1024.
std::uint32_t at_128b(std::uint32_t row, std::uint32_t stripe) {
  return 1024 + row * 128 + (stripe * 32 ^ (row % 8 * 16 & 0x60)) + 16 * (row % 2);
}

TEST(SharedDescriptor, SliceKOfARow) {
  // 32 rows of 128 bytes, read as 128 rows of 32 with the 32-byte swizzle and SBO 256.
  const auto d = decode_shared_descriptor(descriptor(1024, 16, 256, 6));
  for (std::uint32_t row = 0; row < 128; ++row) {
    const std::uint32_t seen = shared_operand_address(d, OperandMajor::kK, 0, row);
    const std::uint32_t stripe = row % 4 ^ row / 8 % 4;
    EXPECT_EQ(seen, at_128b(row / 4, stripe)) << row;
  }
}

TEST(SharedDescriptor, SliceKOfColumns) {
  // 8 rows of 128 bytes, read as 32 columns with the same swizzle and SBO 32: any SBO will do.
  const auto d = decode_shared_descriptor(descriptor(1024, 16, 32, 2));
  for (std::uint32_t column = 0; column < 32; ++column) {
    const std::uint32_t seen = shared_operand_address(d, OperandMajor::kK, 0, column);
    EXPECT_EQ(seen, at_128b(column % 8, column / 8)) << column;
  }
}

TEST(SharedDescriptor, K96ContinuesAtAnAddress) {
  // Rows of 48 bytes from byte 96 of their lines: 32 bytes are left, 16 follow in the next buffer.
  const SharedDescriptor d{1024 + 96, 8192, 1024, 0, SharedSwizzle::k128B, true};
  EXPECT_EQ(shared_operand_address(d, OperandMajor::kK, 0, 0), 1024U + 96);
  EXPECT_EQ(shared_operand_address(d, OperandMajor::kK, 16, 3), 1024U + 3 * 128 + (112 ^ 48));
  EXPECT_EQ(shared_operand_address(d, OperandMajor::kK, 32, 3), 8192U + 3 * 128 + (0 ^ 48));
  EXPECT_EQ(shared_operand_address(d, OperandMajor::kK, 32, 9), 8192U + 1024 + 128 + 16);
}

}  // namespace
}  // namespace tilewright::sim
