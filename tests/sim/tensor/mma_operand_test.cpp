#include "sim/tensor/mma_operand.h"

#include <cstring>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace tilewright::sim {
namespace {

constexpr SharedSwizzle kSwizzles[] = {SharedSwizzle::kNone, SharedSwizzle::k32B,
                                       SharedSwizzle::k64B, SharedSwizzle::k128B,
                                       SharedSwizzle::k128B32BAtom};

struct Kind {
  const FormatSpec* format;
  int container_bits;
  int k;
};
constexpr Kind kKinds[] = {{&kTf32, 32, 8}, {&kBf16, 16, 16}, {&kE4m3, 8, 32}, {nullptr, 8, 32},
                           {&kE2m1, 8, 32}, {&kE3m2, 8, 32},  {&kE2m1, 4, 64}, {&kE2m1, 4, 96}};

/// A descriptor whose rows and columns do not overlap.
SharedDescriptor usual(SharedSwizzle swizzle, OperandMajor major, int k_bytes) {
  const std::uint32_t span = span_bytes(swizzle);
  SharedDescriptor d{2048, 16, 8 * span, 0, swizzle, false};
  if (swizzle == SharedSwizzle::kNone) {
    d.leading_bytes = 0x2000;
    d.stride_bytes = 128;
  } else if (major == OperandMajor::kMn) {
    d.leading_bytes = 0x1000;
  } else if (k_bytes > static_cast<int>(span)) {
    d.stride_bytes = 8 * span + 64;  // rows of 48 bytes run into each other: only places count
  }
  return d;
}

/// The code of element (row, k) by the definition: bit position along the contiguous index.
std::uint32_t code_at(const std::vector<std::byte>& shared, const SharedDescriptor& d,
                      const MmaOperand& operand, int row, int k) {
  const bool is_k = operand.major == OperandMajor::kK;
  const auto contiguous = static_cast<std::uint32_t>(is_k ? k : row);
  const auto other = static_cast<std::uint32_t>(is_k ? row : k);
  const auto container = static_cast<std::uint32_t>(operand.container_bits);
  std::uint32_t bit = contiguous * container;
  std::uint32_t bits = container;
  if (operand.is_padded()) {
    bits = static_cast<std::uint32_t>(operand.format->bits());
    bit = contiguous / 16 * 128 + contiguous % 16 * bits;
  }
  std::uint32_t code = 0;
  for (std::uint32_t i = 0; i < bits; ++i) {
    const std::uint32_t address = shared_operand_address(d, operand.major, (bit + i) / 8, other);
    const auto byte = std::to_integer<std::uint32_t>(shared[address]);
    code |= (byte >> (bit + i) % 8 & 1) << i;
  }
  return code;
}

std::vector<std::byte> random_bytes(std::size_t count) {
  std::mt19937 rng(7);
  std::vector<std::byte> bytes(count);
  for (auto& byte : bytes) byte = static_cast<std::byte>(rng());
  return bytes;
}

std::vector<MmaOperand> operands() {
  std::vector<MmaOperand> out;
  for (const Kind& kind : kKinds) {
    for (const OperandMajor major : {OperandMajor::kK, OperandMajor::kMn}) {
      if (major == OperandMajor::kMn && kind.container_bits == 4) continue;
      for (const int rows : {16, 128}) {
        out.push_back({major, rows, kind.k, kind.container_bits, kind.format});
      }
    }
  }
  return out;
}

TEST(MmaOperand, EveryElementOfEveryLayout) {
  const auto shared = random_bytes(200 << 10);
  for (const MmaOperand& operand : operands()) {
    for (const SharedSwizzle swizzle : kSwizzles) {
      const auto d = usual(swizzle, operand.major, operand.k * operand.container_bits / 8);
      std::vector<std::byte> codes(operand.size_bytes());
      ASSERT_TRUE(gather_shared(shared, d, operand, codes).is_done());
      for (int row = 0; row < operand.rows; ++row) {
        for (int k = 0; k < operand.k; ++k) {
          std::uint32_t code = 0;
          std::memcpy(&code, codes.data() + (row * operand.k + k) * operand.code_bytes(),
                      static_cast<std::size_t>(operand.code_bytes()));
          ASSERT_EQ(code, code_at(shared, d, operand, row, k))
              << "container " << operand.container_bits << " row " << row << " k " << k
              << " swizzle " << static_cast<int>(swizzle);
        }
      }
    }
  }
}

TEST(MmaOperand, EndsWithSharedMemory) {
  const auto shared = random_bytes(4096);
  const MmaOperand operand{OperandMajor::kK, 16, 16, 16, &kBf16};
  std::vector<std::byte> codes(operand.size_bytes());
  const SharedDescriptor d{3072, 16, 512, 0, SharedSwizzle::k32B, false};
  EXPECT_TRUE(gather_shared(shared, d, operand, codes).is_done());
  const GatherResult result = gather_shared(std::span(shared).first(4096 - 257), d, operand, codes);
  EXPECT_EQ(result.status, GatherStatus::kOutOfBounds);
  EXPECT_EQ(result.address, (3584U + 7 * 32) ^ 16);  // row 15 is in an odd line
}

TEST(MmaOperand, RunsAreTheBytesThatAreRead) {
  const MmaOperand rows{OperandMajor::kK, 16, 16, 16, &kBf16};
  const std::vector<SharedRun> whole = {{2048, 512}};
  EXPECT_EQ(runs_of({2048, 16, 256, 0, SharedSwizzle::k32B, false}, rows, 1 << 16), whole);
  const auto lines = runs_of({2048, 16, 1024, 0, SharedSwizzle::k128B, false}, rows, 1 << 16);
  ASSERT_EQ(lines.size(), 15U);  // the end of row 7 and the beginning of row 8 meet
  EXPECT_EQ(lines[0], (SharedRun{2048, 32}));
  EXPECT_EQ(lines[2], (SharedRun{2048 + 256 + 32, 32}));
  const std::vector<SharedRun> cut = {{2048, 452}};
  EXPECT_EQ(runs_of({2048, 16, 256, 0, SharedSwizzle::k32B, false}, rows, 2500), cut);
}

TEST(MmaOperand, UndefinedBytesBelongToRows) {
  for (const MmaOperand& operand : operands()) {
    const auto d =
        usual(SharedSwizzle::k128B, operand.major, operand.k * operand.container_bits / 8);
    for (std::uint32_t address = 2048; address < 2048 + 4096; address += 331) {
      std::vector<std::uint8_t> shadow(200 << 10, 1);
      shadow[address] = address % 2 == 0 ? 0 : 2;  // never written; an undefined value
      std::vector<std::uint8_t> found(static_cast<std::size_t>(operand.rows));
      find_undefined_rows(shadow, d, operand, found);
      // The definition: an element that changes when the byte does.
      std::vector<std::byte> zeros(shadow.size()), ones(shadow.size());
      ones[address] = std::byte{0xFF};
      std::vector<std::byte> a(operand.size_bytes()), b(operand.size_bytes());
      gather_shared(zeros, d, operand, a);
      gather_shared(ones, d, operand, b);
      const auto row_bytes = static_cast<std::size_t>(operand.k * operand.code_bytes());
      for (std::size_t row = 0; row < found.size(); ++row) {
        const bool differs = std::memcmp(&a[row * row_bytes], &b[row * row_bytes], row_bytes) != 0;
        ASSERT_EQ(found[row] != 0, differs) << address << ", row " << row;
      }
    }
  }
}

TEST(MmaOperand, CellsOfTensorMemory) {
  const std::uint32_t cells[12] = {0x04030201, 0x4C443C34, 0, 0, 0, 0, 0, 0x80000000, 0, 0, 0, 7};
  std::vector<std::byte> codes(96);
  // 16-bit and 8-bit elements: the lower k in the lower bits.
  unpack_tensor_row(cells, {OperandMajor::kK, 1, 16, 16, &kFp16}, codes.data());
  EXPECT_EQ(std::memcmp(codes.data(), cells, 32), 0);
  // e2m1 in bits 5..2, e3m2 in bits 6..1 of their bytes.
  unpack_tensor_row(cells, {OperandMajor::kK, 1, 32, 8, &kE2m1}, codes.data());
  EXPECT_EQ(codes[4], std::byte{0x34 >> 2});
  EXPECT_EQ(codes[7], std::byte{0x4C >> 2 & 15});
  EXPECT_EQ(codes[31], std::byte{0});
  unpack_tensor_row(cells, {OperandMajor::kK, 1, 32, 8, &kE3m2}, codes.data());
  EXPECT_EQ(codes[7], std::byte{0x4C >> 1});
  EXPECT_EQ(codes[31], std::byte{0});
  // 4 bits: eight to a cell, of k64 and of k96.
  unpack_tensor_row(cells, {OperandMajor::kK, 1, 64, 4, &kE2m1}, codes.data());
  EXPECT_EQ(codes[0], std::byte{1});
  EXPECT_EQ(codes[2], std::byte{2});
  EXPECT_EQ(codes[8], std::byte{4});
  EXPECT_EQ(codes[9], std::byte{3});
  EXPECT_EQ(codes[63], std::byte{8});
  unpack_tensor_row(cells, {OperandMajor::kK, 1, 96, 4, &kE2m1}, codes.data());
  EXPECT_EQ(codes[88], std::byte{7});
}

}  // namespace
}  // namespace tilewright::sim
