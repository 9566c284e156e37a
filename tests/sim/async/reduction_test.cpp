#include "sim/async/reduction.h"

#include "sim/async/bulk_copy.h"

#include <array>
#include <bit>
#include <cstring>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright::sim {
namespace {

using ::testing::HasSubstr;

template <class T>
T reduced(ReduceOp op, ReduceType type, T memory, T value) {
  EXPECT_EQ(check_reduction(op, type), "");
  EXPECT_EQ(size_of(type), sizeof(T));
  reduce_into(op, type, reinterpret_cast<std::byte*>(&memory),
              reinterpret_cast<const std::byte*>(&value), sizeof(T));
  return memory;
}

std::uint32_t u32(ReduceOp op, std::uint32_t memory, std::uint32_t value) {
  return reduced(op, ReduceType::kU32, memory, value);
}
std::uint16_t f16(ReduceOp op, std::uint16_t memory, std::uint16_t value) {
  return reduced(op, ReduceType::kF16, memory, value);
}
std::uint16_t bf16(ReduceOp op, std::uint16_t memory, std::uint16_t value) {
  return reduced(op, ReduceType::kBf16, memory, value);
}
std::uint32_t f32_add(std::uint32_t memory, std::uint32_t value) {
  return reduced(ReduceOp::kAdd, ReduceType::kF32, memory, value);
}

TEST(SimReduction, Integers) {
  EXPECT_EQ(u32(ReduceOp::kAdd, 0xffffffff, 3), 2u);
  EXPECT_EQ(u32(ReduceOp::kMin, 0xffffffff, 3), 3u);
  EXPECT_EQ(reduced<std::int32_t>(ReduceOp::kMin, ReduceType::kS32, -1, 3), -1);
  EXPECT_EQ(reduced<std::int64_t>(ReduceOp::kMax, ReduceType::kS64, -5, -9), -5);
  EXPECT_EQ(reduced<std::uint64_t>(ReduceOp::kMax, ReduceType::kU64, 1, 1ull << 63), 1ull << 63);
  EXPECT_EQ(reduced<std::int32_t>(ReduceOp::kAdd, ReduceType::kS32, 0x7fffffff, 1),
            std::numeric_limits<std::int32_t>::min());
  EXPECT_EQ(u32(ReduceOp::kAnd, 0b1100, 0b1010), 0b1000u);
  EXPECT_EQ(u32(ReduceOp::kOr, 0b1100, 0b1010), 0b1110u);
  EXPECT_EQ(u32(ReduceOp::kXor, 0b1100, 0b1010), 0b0110u);
}

TEST(SimReduction, IncAndDecWrap) {
  EXPECT_EQ(u32(ReduceOp::kInc, 4, 5), 5u);
  EXPECT_EQ(u32(ReduceOp::kInc, 5, 5), 0u);
  EXPECT_EQ(u32(ReduceOp::kInc, 9, 5), 0u);
  EXPECT_EQ(u32(ReduceOp::kDec, 4, 5), 3u);
  EXPECT_EQ(u32(ReduceOp::kDec, 0, 5), 5u);
  EXPECT_EQ(u32(ReduceOp::kDec, 6, 5), 5u);
}

TEST(SimReduction, F32AddFlushesSubnormals) {
  EXPECT_EQ(f32_add(0x3f800000, 0x40000000), 0x40400000u);  // 1 + 2
  EXPECT_EQ(f32_add(0x00000001, 0x00000001), 0u) << "operands";
  EXPECT_EQ(f32_add(0x80000001, 0x80000001), 0x80000000u) << "keep their sign";
  EXPECT_EQ(f32_add(0x00800000, 0x80800001), 0x80000000u) << "result: 2^-126 - (2^-126 + 2^-149)";
  EXPECT_EQ(f32_add(0x7f800000, 0xff800000), 0x7fffffffu) << "infinity - infinity";
}

TEST(SimReduction, HalvesKeepSubnormalsAndRoundToEven) {
  EXPECT_EQ(f16(ReduceOp::kAdd, 0x0001, 0x0001), 0x0002);
  EXPECT_EQ(f16(ReduceOp::kAdd, 0x3c00, 0x1000), 0x3c00) << "1 + 2^-11: tie to even";
  EXPECT_EQ(f16(ReduceOp::kAdd, 0x3c01, 0x1000), 0x3c02) << "and the other way";
  EXPECT_EQ(f16(ReduceOp::kAdd, 0x7bff, 0x7bff), 0x7c00) << "overflow is infinity";
  EXPECT_EQ(f16(ReduceOp::kAdd, 0x7e01, 0x3c00), 0x7fff) << "NaN";
  EXPECT_EQ(bf16(ReduceOp::kAdd, 0x0001, 0x0002), 0x0003);
  EXPECT_EQ(bf16(ReduceOp::kAdd, 0x7f7f, 0x0001), 0x7f7f) << "far too small to matter";
}

TEST(SimReduction, HalfMinAndMax) {
  EXPECT_EQ(f16(ReduceOp::kMin, 0x3c00, 0xbc00), 0xbc00);
  EXPECT_EQ(f16(ReduceOp::kMin, 0xbc00, 0xc000), 0xc000) << "-2 < -1";
  EXPECT_EQ(f16(ReduceOp::kMax, 0xbc00, 0xc000), 0xbc00);
  EXPECT_EQ(f16(ReduceOp::kMin, 0x0000, 0x8000), 0x8000) << "-0 < +0";
  EXPECT_EQ(f16(ReduceOp::kMax, 0x8000, 0x0000), 0x0000);
  EXPECT_EQ(f16(ReduceOp::kMax, 0x7e00, 0xbc00), 0xbc00) << "the number, not NaN";
  EXPECT_EQ(f16(ReduceOp::kMax, 0xbc00, 0x7e00), 0xbc00);
  EXPECT_EQ(bf16(ReduceOp::kMin, 0x7fc0, 0xffc1), 0x7fff);
}

TEST(SimReduction, WhichExist) {
  EXPECT_THAT(check_reduction(ReduceOp::kMin, ReduceType::kF32), HasSubstr("no .min for f32"));
  EXPECT_THAT(check_reduction(ReduceOp::kInc, ReduceType::kS32), HasSubstr("no .inc for s32"));
  EXPECT_THAT(check_reduction(ReduceOp::kXor, ReduceType::kF16), HasSubstr("no .xor for f16"));
  EXPECT_EQ(check_reduction(ReduceOp::kAdd, ReduceType::kF64), "");
  EXPECT_EQ(check_bulk_reduction(ReduceOp::kAdd, ReduceType::kBf16, true), "");
  EXPECT_THAT(check_bulk_reduction(ReduceOp::kAdd, ReduceType::kBf16, false),
              HasSubstr("in shared memory"));
  EXPECT_EQ(check_bulk_reduction(ReduceOp::kAdd, ReduceType::kU64, false), "");
  EXPECT_NE(check_bulk_reduction(ReduceOp::kMax, ReduceType::kU64, false), "");
  EXPECT_EQ(check_bulk_reduction(ReduceOp::kInc, ReduceType::kU32, false), "");
}

TEST(SimReduction, EveryElement) {
  std::array<float, 5> memory = {1, 2, 3, 4, 5};
  const std::array<float, 5> values = {10, 20, 30, 40, 50};
  bulk_reduce(ReduceOp::kAdd, ReduceType::kF32, reinterpret_cast<std::byte*>(memory.data()),
              reinterpret_cast<const std::byte*>(values.data()), 16);
  EXPECT_THAT(memory, testing::ElementsAre(11, 22, 33, 44, 5));
}

TEST(SimBulkCopy, Alignment) {
  EXPECT_EQ(check_bulk(0x1000, 0x2010, 48), "");
  EXPECT_THAT(check_bulk(0x1008, 0x2000, 48), HasSubstr("destination 0x1008"));
  EXPECT_THAT(check_bulk(0x1000, 0x2004, 48), HasSubstr("source 0x2004"));
  EXPECT_THAT(check_bulk(0x1000, 0x2000, 40), HasSubstr("size = 40 bytes"));
}

TEST(SimBulkCopy, WholeAndMasked) {
  std::array<std::byte, 32> source, destination{};
  for (std::size_t i = 0; i < 32; ++i) source[i] = std::byte(i + 1);
  bulk_copy_masked(destination.data(), source.data(), 32, 0x8005);
  for (std::size_t i = 0; i < 32; ++i) {
    const bool is_copied = i % 16 == 0 || i % 16 == 2 || i % 16 == 15;
    EXPECT_EQ(destination[i], is_copied ? source[i] : std::byte{0}) << i;
  }
  bulk_copy(destination.data(), source.data(), 32);
  EXPECT_EQ(destination, source);
}

}  // namespace
}  // namespace tilewright::sim
