#include "sim/async/tensor_copy.h"

#include "naive_tensor_copy.h"

#include <bit>
#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright::sim {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kMemoryBytes = 1 << 20;
constexpr TensorElement kPlainElements[] = {
    TensorElement::kU8,           TensorElement::kU16,         TensorElement::kU32,
    TensorElement::kS64,          TensorElement::kF16,         TensorElement::kBf16,
    TensorElement::kF32,          TensorElement::kF64,         TensorElement::k16U4Align8B,
    TensorElement::k16U4Align16B, TensorElement::k16U6Align16B};

/// The byte of the fill at this place of a row.
std::byte naive_fill(const TensorMapFields& map, std::uint32_t byte_in_row) {
  if (map.fill == TensorFill::kZeros) return std::byte{0};
  const std::uint32_t size = element_bits(map.element) / 8;
  if (map.element == TensorElement::kF16 && byte_in_row % 2 == 0) return std::byte{0xf7};
  return byte_in_row % size == size - 1 ? std::byte{0x7f} : std::byte{0xff};
}

/// A random copy of each kind of elements, many times.
template <class Check>
void for_random_copies(int rounds, Check&& check_copy) {
  std::mt19937 rng(20260821);
  for (int round = 0; round < rounds; ++round) {
    for (const TensorElement element : kPlainElements) {
      const TensorMapFields map = random_map(rng, element);
      const TensorCopy copy = random_copy(rng, map);
      ASSERT_EQ(check(copy), "");
      check_copy(rng, copy);
      if (testing::Test::HasFailure()) {
        GTEST_FAIL() << "round " << round << ", " << name_of(element) << ", swizzle "
                     << name_of(map.swizzle) << ", rank " << map.rank;
      }
    }
  }
}

TEST(SimTensorCopy, LoadsAreTheNaiveOnes) {
  std::mt19937 seed(1);
  TestMemory memory{random_bytes(seed, kMemoryBytes)};
  int num_inside = 0, num_outside = 0;
  for_random_copies(60, [&](std::mt19937&, const TensorCopy& copy) {
    std::vector<std::byte> shared(shared_bytes(copy), std::byte{0xaa});
    std::vector<std::byte> expected = shared;
    std::uint32_t bytes = 0;
    naive_box(copy, [&](std::uint64_t global, std::uint32_t address, std::uint32_t in_row) {
      expected.at(address - copy.shared_address) =
          global != 0 ? *memory.global(global, 1) : naive_fill(*copy.map, in_row);
      ++bytes;
      ++(global != 0 ? num_inside : num_outside);
    });
    EXPECT_EQ(load(copy, memory, shared.data()), bytes);
    EXPECT_TRUE(shared == expected);
  });
  EXPECT_GT(num_inside, 50'000);
  EXPECT_GT(num_outside, 50'000);
}

// In whole chunks of 16 bytes, as an H200 does it.
TEST(SimTensorCopy, StoresAreTheNaiveOnes) {
  std::mt19937 seed(2);
  const std::vector<std::byte> before = random_bytes(seed, 1 << 17);
  int num_compared = 0;
  for_random_copies(12, [&](std::mt19937& rng, const TensorCopy& copy) {
    TestMemory memory{before};
    if (memory.global(copy.map->address, 1 << 16) == nullptr) return;
    const std::vector<std::byte> shared = random_bytes(rng, shared_bytes(copy));
    TestMemory expected{before};
    bool fits = true;
    naive_box(
        copy,
        [&](std::uint64_t global, std::uint32_t address, std::uint32_t) {
          if (global == 0) return;
          std::byte* to = expected.global(global, 1);
          fits = fits && to != nullptr;
          if (to != nullptr) *to = shared.at(address - copy.shared_address);
        },
        16);
    if (!fits) return;  // whole rows are left out then, single bytes here
    ++num_compared;
    EXPECT_EQ(store(copy, memory, shared.data()), transaction_bytes(copy));
    EXPECT_TRUE(memory.bytes == expected.bytes);
  });
  EXPECT_GT(num_compared, 60);
}

TEST(SimTensorCopy, PiecesAreTheBytesOfTheCopy) {
  for_random_copies(20, [&](std::mt19937&, const TensorCopy& copy) {
    std::vector<std::uint64_t> from_pieces(shared_bytes(copy), 1);
    std::vector<std::uint64_t> expected = from_pieces;
    for_each_row(copy, [&](const TensorRow& row) {
      for_each_piece(copy, row, [&](const TensorPiece& piece) {
        ASSERT_NE(piece.bytes, 0u);
        for (std::uint32_t i = 0; i < piece.bytes; ++i) {
          from_pieces.at(piece.shared_address + i - copy.shared_address) =
              piece.is_inside ? piece.global_address + i : 0;
        }
      });
    });
    naive_box(copy, [&](std::uint64_t global, std::uint32_t address, std::uint32_t) {
      expected.at(address - copy.shared_address) = global;
    });
    EXPECT_EQ(from_pieces, expected);
  });
}

TEST(SimTensorCopy, ReductionsAreStoresOfSums) {
  std::mt19937 rng(3);
  const std::vector<std::byte> before = random_bytes(rng, kMemoryBytes);
  int num_compared = 0;
  for (int round = 0; round < 30; ++round) {
    const TensorMapFields map = random_map(rng, TensorElement::kU32);
    const TensorCopy copy = random_copy(rng, map);
    TestMemory memory{before}, expected{before};
    const std::vector<std::byte> shared = random_bytes(rng, shared_bytes(copy));
    naive_box(copy, [&](std::uint64_t global, std::uint32_t address, std::uint32_t in_row) {
      if (global == 0 || in_row % 4 != 0) return;
      std::uint32_t old, value;
      std::memcpy(&old, expected.global(global, 4), 4);
      std::memcpy(&value, &shared.at(address - copy.shared_address), 4);
      old += value;
      std::memcpy(expected.global(global, 4), &old, 4);
      ++num_compared;
    });
    EXPECT_EQ(reduce(copy, ReduceOp::kAdd, memory, shared.data()), transaction_bytes(copy));
    EXPECT_TRUE(memory.bytes == expected.bytes) << "round " << round;
  }
  EXPECT_GT(num_compared, 1000);
}

TEST(SimTensorCopy, PackedTypesCountWhatIsInGlobalMemory) {
  TensorMapFields map;
  map.element = TensorElement::k16U4Align16B;
  map.rank = 2;
  map.box = {128, 16};
  map.element_strides = {1, 1};
  const TensorCopy copy{.map = &map};
  EXPECT_EQ(transaction_bytes(copy), 16u * 64);
  EXPECT_EQ(shared_bytes(copy), 16u * 128);
  map.element = TensorElement::k16U6Align16B;
  EXPECT_EQ(transaction_bytes(copy), 16u * 96);
  map.element_strides = {1, 3};
  EXPECT_EQ(transaction_bytes(copy), 6u * 96) << "ceil(16 / 3) rows";
}

TEST(SimTensorCopy, RowsOutsideOfMemoryAreLeftOut) {
  TensorMapFields map;
  map.address = TestMemory::kBegin;
  map.rank = 2;
  map.dims = {16, 4};
  map.strides_bytes = {16};
  map.box = {16, 4};
  map.element_strides = {1, 1};
  TestMemory memory{std::vector<std::byte>(32, std::byte{1})};
  std::vector<std::byte> shared(64, std::byte{9});
  const TensorCopy copy{.map = &map};
  EXPECT_EQ(load(copy, memory, shared.data()), 64u);
  for (std::size_t i = 0; i < 64; ++i) EXPECT_EQ(shared[i], std::byte(i < 32 ? 1 : 9)) << i;
}

TEST(SimTensorCopy, Gather4AndScatter4) {
  std::mt19937 rng(4);
  TestMemory memory{random_bytes(rng, 4096)};
  TensorMapFields map;
  map.element = TensorElement::kBf16;
  map.swizzle = TensorSwizzle::k128B;
  map.fill = TensorFill::kNan;
  map.address = TestMemory::kBegin;
  map.rank = 2;
  map.dims = {128, 16};
  map.strides_bytes = {256};
  map.box = {64, 1};
  map.element_strides = {1, 1};
  ASSERT_EQ(validate(map), "");
  const TensorCopy copy{.map = &map,
                        .shape = TensorCopyShape::kRows4,
                        .coordinates = {64, 7, 3, 16, 7},
                        .shared_address = 0x480};
  ASSERT_EQ(check(copy), "");
  std::vector<std::byte> shared(512), expected(512);
  for (std::uint32_t row = 0; row < 4; ++row) {
    const std::vector<std::int64_t> start = {64, copy.coordinates[row + 1]};
    naive_row(copy, start, row, [&](std::uint64_t global, std::uint32_t at, std::uint32_t byte) {
      expected.at(at - 0x480) = global != 0 ? *memory.global(global, 1) : naive_fill(map, byte);
    });
  }
  EXPECT_EQ(load(copy, memory, shared.data()), 512u);
  EXPECT_TRUE(shared == expected);

  TestMemory zeros{std::vector<std::byte>(4096)};
  store(copy, zeros, shared.data());
  for (std::size_t i = 0; i < 4096; ++i) {
    const bool is_copied = (i / 256 == 7 || i / 256 == 3) && i % 256 >= 128;
    ASSERT_EQ(zeros.bytes[i], is_copied ? memory.bytes[i] : std::byte{0}) << i;
  }
  map.box[1] = 2;
  EXPECT_THAT(check(copy), HasSubstr("rank 2 and box[1] = 2"));
}

/// Pixels of a convolution: for each output pixel the input pixel under filter tap (r, s).
TEST(SimTensorCopy, Im2colIsTheInputOfAConvolution) {
  constexpr int kWidth = 7, kHeight = 5, kImages = 3, kPad = 1, kTaps = 3;
  std::mt19937 rng(5);
  TestMemory memory{random_bytes(rng, kWidth * kHeight * kImages * 16)};
  for (const int stride : {1, 2, 3}) {
    TensorMapFields map;
    map.mode = TensorMode::kIm2col;
    map.address = TestMemory::kBegin;
    map.rank = 4;
    map.dims = {16, kWidth, kHeight, kImages};
    map.strides_bytes = {16, 16 * kWidth, 16 * kWidth * kHeight};
    const auto s = static_cast<std::uint32_t>(stride);
    map.element_strides = {1, s, s, 1};
    map.lower_corner = {-kPad, -kPad};
    map.upper_corner = {kPad - (kTaps - 1), kPad - (kTaps - 1)};
    map.channels_per_pixel = 16;
    map.pixels_per_column = 40;
    ASSERT_EQ(validate(map), "");
    const int out_w = (kWidth + 2 * kPad - kTaps) / stride + 1;
    const int out_h = (kHeight + 2 * kPad - kTaps) / stride + 1;
    for (int tap = 0; tap < kTaps * kTaps; ++tap) {
      const int first = 4;  // the output pixel that the column begins with
      TensorCopy copy{.map = &map};
      copy.coordinates = {0, first % out_w * stride - kPad, first / out_w % out_h * stride - kPad,
                          first / out_w / out_h};
      copy.im2col_offsets = {static_cast<std::uint16_t>(tap % kTaps),
                             static_cast<std::uint16_t>(tap / kTaps)};
      ASSERT_EQ(check(copy), "");
      std::vector<std::byte> shared(40 * 16, std::byte{0xaa});
      EXPECT_EQ(load(copy, memory, shared.data()), 40u * 16);
      for (int pixel = 0; pixel < 40; ++pixel) {
        const int out = first + pixel;
        const int w = out % out_w * stride - kPad + tap % kTaps;
        const int h = out / out_w % out_h * stride - kPad + tap / kTaps;
        const int n = out / out_w / out_h;
        const bool is_inside = w >= 0 && w < kWidth && h >= 0 && h < kHeight && n < kImages;
        for (int c = 0; c < 16; ++c) {
          const int at = ((n * kHeight + h) * kWidth + w) * 16 + c;
          const std::byte expected =
              is_inside ? memory.bytes[static_cast<std::size_t>(at)] : std::byte{0};
          ASSERT_EQ(shared[static_cast<std::size_t>(pixel * 16 + c)], expected)
              << "stride " << stride << " tap " << tap << " pixel " << pixel;
        }
      }
    }
  }
}

TEST(SimTensorCopy, ConvertingTypes) {
  const std::uint32_t words[4] = {0x00000001, 0x807fffff, 0x3f801000, 0x3f803000};
  const auto loaded = [&](TensorElement element) {
    TensorMapFields map;
    map.element = element;
    map.address = TestMemory::kBegin;
    map.dims = {4};
    map.box = {4};
    map.element_strides = {1};
    TestMemory memory{std::vector<std::byte>(16)};
    std::memcpy(memory.bytes.data(), words, 16);
    std::array<std::uint32_t, 4> result{};
    load({.map = &map}, memory, reinterpret_cast<std::byte*>(result.data()));
    return result;
  };
  using testing::ElementsAre;
  EXPECT_THAT(loaded(TensorElement::kF32), ElementsAre(1, 0x807fffff, 0x3f801000, 0x3f803000));
  EXPECT_THAT(loaded(TensorElement::kF32Ftz), ElementsAre(0, 0x80000000, 0x3f801000, 0x3f803000));
  EXPECT_THAT(loaded(TensorElement::kTf32), ElementsAre(0, 0x80800000, 0x3f800000, 0x3f804000));
  EXPECT_THAT(loaded(TensorElement::kTf32Ftz), ElementsAre(0, 0x80000000, 0x3f800000, 0x3f804000));
}

TEST(SimTensorCopy, Refusals) {
  std::mt19937 rng(6);
  TensorMapFields map = random_map(rng, TensorElement::kBf16);
  TensorCopy copy{.map = &map};
  copy.shared_address = 0x440;
  EXPECT_THAT(check(copy), HasSubstr("shared address 0x440 is not a multiple of 128"));
  copy.shared_address = 0x480;
  copy.coordinates[0] = -4;
  EXPECT_THAT(check(copy), HasSubstr("innermost coordinate -4"));
  copy.coordinates[0] = -8;
  EXPECT_EQ(check(copy), "");
  map.interleave = TensorInterleave::k16B;
  EXPECT_THAT(check(copy), HasSubstr("interleaved tensor maps are not simulated"));
  EXPECT_EQ(check_tensor_reduction(map, ReduceOp::kMin), "");
  EXPECT_THAT(check_tensor_reduction(map, ReduceOp::kAnd), HasSubstr("no .and for bf16"));
  map.element = TensorElement::kF64;
  EXPECT_THAT(check_tensor_reduction(map, ReduceOp::kAdd), HasSubstr("f64 elements have none"));
}

}  // namespace
}  // namespace tilewright::sim
