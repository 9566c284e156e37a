#include "sim/tensor/mma_descriptor.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright::sim {
namespace {

using testing::HasSubstr;

constexpr MmaKind kKinds[] = {MmaKind::kF16,      MmaKind::kTf32, MmaKind::kF8f6f4,  MmaKind::kI8,
                              MmaKind::kMxf8f6f4, MmaKind::kMxf4, MmaKind::kMxf4nvf4};

MmaMode mode_of(MmaKind kind, int cta_group = 1, bool is_ws = false) {
  MmaMode mode;
  mode.kind = kind;
  mode.cta_group = cta_group;
  mode.is_ws = is_ws;
  if (is_block_scaled(kind)) mode.scale_block = kind == MmaKind::kMxf4nvf4 ? 16 : 32;
  return mode;
}

std::uint32_t shape(int m, int n) {
  return static_cast<std::uint32_t>(n / 8) << 17 | static_cast<std::uint32_t>(m / 16) << 24;
}

/// A descriptor that the kind takes: f32 or s32 sums, the first types, 128 x 64.
std::uint32_t good(MmaKind kind, int m = 128) {
  const std::uint32_t base = shape(m, 64);
  switch (kind) {
    case MmaKind::kTf32:
      return base | 1 << 4 | 2 << 7 | 2 << 10;
    case MmaKind::kI8:
      return base | 2 << 4;
    case MmaKind::kMxf8f6f4:
      return base | 1 << 23;
    case MmaKind::kMxf4:
      return base | 1 << 7 | 1 << 10 | 1 << 23;
    case MmaKind::kMxf4nvf4:
      return base | 1 << 7 | 1 << 10;
    default:
      return base | 1 << 4;
  }
}

TEST(MmaDescriptor, GoodOnes) {
  for (const MmaKind kind : kKinds) {
    for (const int cta_group : {1, 2}) {
      const MmaMode mode = mode_of(kind, cta_group);
      const std::uint32_t bits = good(kind);
      EXPECT_EQ(check_mma_descriptor(bits, mode), "") << name_of(kind);
      EXPECT_EQ(check_mma_later_bits(bits, mode), "") << name_of(kind);
      const MmaDescriptor d = decode_mma_descriptor(bits, mode);
      EXPECT_EQ(d.m, 128);
      EXPECT_EQ(d.n, 64);
    }
  }
}

TEST(MmaDescriptor, FieldsOfAWord) {
  const std::uint32_t bits = shape(128, 256) | 1 << 4 | 1 << 7 | 1 << 10 | 1 << 13 | 1 << 16;
  const MmaDescriptor d = decode_mma_descriptor(bits, mode_of(MmaKind::kF16));
  EXPECT_EQ(d.n, 256);
  EXPECT_EQ(d.k, 16);
  EXPECT_EQ(d.a, &kBf16);
  EXPECT_EQ(d.b, &kBf16);
  EXPECT_TRUE(d.is_a_negated);
  EXPECT_FALSE(d.is_b_negated);
  EXPECT_EQ(d.a_major, OperandMajor::kK);
  EXPECT_EQ(d.b_major, OperandMajor::kMn);
  EXPECT_EQ(describe_mma_descriptor(bits, mode_of(MmaKind::kF16)),
            "0x8412490: m128n256k16, f32 += -bf16 * bf16, B N-major");
  const std::uint32_t scaled = shape(256, 64) | 1 << 7 | 1 << 10 | 2 << 4 | 2U << 29 | 1 << 23;
  const MmaDescriptor s = decode_mma_descriptor(scaled, mode_of(MmaKind::kMxf4, 2));
  EXPECT_EQ(s.m, 256);
  EXPECT_EQ(s.k, 64);
  EXPECT_EQ(s.a_scale_id, 2);
  EXPECT_EQ(s.b_scale_id, 2);
  EXPECT_EQ(s.scale, &kUe8m0);
}

TEST(MmaDescriptor, TypesByKind) {
  const auto types = [](MmaKind kind, std::uint32_t a, std::uint32_t b, std::uint32_t sum) {
    const std::uint32_t bits =
        (good(kind) & ~(7U << 7 | 7U << 10 | 3U << 4)) | a << 7 | b << 10 | sum << 4;
    return check_mma_descriptor(bits, mode_of(kind));
  };
  for (std::uint32_t type = 0; type < 8; ++type) {
    const bool is_8bit = type == 0 || type == 1 || (type >= 3 && type <= 5);
    EXPECT_EQ(types(MmaKind::kF16, type, type, 1).empty(), type <= 1) << type;
    EXPECT_EQ(types(MmaKind::kTf32, type, 2, 1).empty(), type == 2) << type;
    EXPECT_EQ(types(MmaKind::kF8f6f4, type, 0, 1).empty(), is_8bit) << type;
    EXPECT_EQ(types(MmaKind::kF8f6f4, 0, type, 0).empty(), is_8bit) << type;
    EXPECT_EQ(types(MmaKind::kMxf8f6f4, type, 5, 0).empty(), is_8bit) << type;
    EXPECT_EQ(types(MmaKind::kI8, type, 1, 2).empty(), type <= 1) << type;
    EXPECT_EQ(types(MmaKind::kMxf4, type, 1, 0).empty(), type == 1) << type;
  }
  EXPECT_EQ(types(MmaKind::kF16, 0, 0, 0), "");
  EXPECT_THAT(types(MmaKind::kF16, 1, 1, 0), HasSubstr("1 f32 for these types"));
  EXPECT_THAT(types(MmaKind::kTf32, 2, 2, 0), HasSubstr("the type of D (bits 5..4) is 0"));
  EXPECT_THAT(types(MmaKind::kI8, 0, 0, 1), HasSubstr("2 s32 for integers"));
  EXPECT_THAT(types(MmaKind::kF8f6f4, 2, 0, 1), HasSubstr("the type of A (bits 9..7) is 2"));
}

TEST(MmaDescriptor, RowsAndColumns) {
  struct Case {
    MmaMode mode;
    std::vector<int> m, n;  ///< some that are legal
    int bad_n;
  };
  const Case cases[] = {
      {mode_of(MmaKind::kF16), {64, 128}, {8, 24, 256}, 264},
      {mode_of(MmaKind::kF16, 2), {128, 256}, {16, 48, 256}, 8},
      {mode_of(MmaKind::kF16, 1, true), {32, 64, 128}, {64, 128, 256}, 32},
      {mode_of(MmaKind::kI8), {64, 128}, {8, 16, 24, 32, 48, 256}, 40},
      {mode_of(MmaKind::kI8, 2), {128, 256}, {32, 64, 256}, 16},
      {mode_of(MmaKind::kMxf8f6f4), {128}, {8, 16, 256}, 0},
      {mode_of(MmaKind::kMxf4nvf4, 2), {128, 256}, {16, 240}, 24},
  };
  for (const Case& c : cases) {
    const std::uint32_t rest = good(c.mode.kind) & ~(63U << 17 | 31U << 24);
    for (int m = 0; m < 512; m += 16) {
      const bool is_legal = std::ranges::count(c.m, m) != 0;
      // Block-scaled kinds have bits 28..27 only: others are reserved.
      if (is_block_scaled(c.mode.kind) && m % 128 != 0) continue;
      const std::string problem = check_mma_descriptor(rest | shape(m, c.n.front()), c.mode);
      EXPECT_EQ(problem.empty(), is_legal) << name_of(c.mode.kind) << " m " << m << ": " << problem;
    }
    for (const int n : c.n) {
      EXPECT_EQ(check_mma_descriptor(rest | shape(c.m.front(), n), c.mode), "") << n;
    }
    EXPECT_THAT(check_mma_descriptor(rest | shape(c.m.front(), c.bad_n), c.mode),
                HasSubstr("N (bits 22..17, times 8) is " + std::to_string(c.bad_n)));
  }
  const std::uint32_t transposed = 1 << 4 | 1 << 16;
  EXPECT_THAT(check_mma_descriptor(shape(128, 24) | transposed, mode_of(MmaKind::kF8f6f4)),
              HasSubstr("a multiple of 16 when B is N-major"));
  EXPECT_EQ(check_mma_descriptor(shape(128, 24) | transposed, mode_of(MmaKind::kF16)), "");
}

TEST(MmaDescriptor, EveryBitIsAField) {
  // Toggling any bit of a good descriptor changes a field, or is refused, or is told under strict.
  for (const MmaKind kind : kKinds) {
    const MmaMode mode = mode_of(kind);
    const std::uint32_t bits = good(kind);
    for (int bit = 0; bit < 32; ++bit) {
      const std::uint32_t other = bits ^ std::uint32_t{1} << bit;
      const bool is_noticed =
          decode_mma_descriptor(other, mode) != decode_mma_descriptor(bits, mode) ||
          !check_mma_descriptor(other, mode).empty() || !check_mma_later_bits(other, mode).empty();
      EXPECT_TRUE(is_noticed) << name_of(kind) << " bit " << bit;
    }
  }
}

TEST(MmaDescriptor, BitsOfLaterDevicesAreNoErrors) {
  for (const auto& [kind, bits] :
       {std::pair{MmaKind::kF16, 1U << 6 | 1U << 29}, std::pair{MmaKind::kMxf8f6f4, 1U << 26},
        std::pair{MmaKind::kMxf8f6f4, 1U << 24}, std::pair{MmaKind::kMxf4, 1U << 12},
        std::pair{MmaKind::kMxf4, 1U << 3}}) {
    EXPECT_EQ(check_mma_descriptor(good(kind) | bits, mode_of(kind)), "") << name_of(kind);
    EXPECT_THAT(check_mma_later_bits(good(kind) | bits, mode_of(kind)), HasSubstr("must be 0"));
  }
}

TEST(MmaDescriptor, ReservedBitsAreErrors) {
  const auto problem = [](MmaKind kind, std::uint32_t bits) {
    return check_mma_descriptor(good(kind) | bits, mode_of(kind));
  };
  EXPECT_THAT(problem(MmaKind::kF16, 1 << 2), HasSubstr("bit 2 = 1, must be 0: it says sparse"));
  EXPECT_THAT(problem(MmaKind::kF16, 1 << 3), HasSubstr("only integers saturate"));
  EXPECT_THAT(problem(MmaKind::kF8f6f4, 1 << 23), HasSubstr("bit 23 = 1"));
  EXPECT_THAT(problem(MmaKind::kI8, 1 << 13), HasSubstr("negate A"));
  EXPECT_THAT(problem(MmaKind::kMxf8f6f4, 1 << 25), HasSubstr("bit 25 = 1"));
  EXPECT_THAT(problem(MmaKind::kMxf4, 1 << 15), HasSubstr("transpose A"));
  EXPECT_THAT(problem(MmaKind::kMxf4, 1U << 31), HasSubstr("k96 needs .target sm_103a"));
}

TEST(MmaDescriptor, ScalesByKind) {
  const auto with = [](MmaKind kind, int block, std::uint32_t bits) {
    MmaMode mode = mode_of(kind);
    mode.scale_block = block;
    return check_mma_descriptor(bits, mode);
  };
  const std::uint32_t fp4 = good(MmaKind::kMxf4nvf4);
  EXPECT_THAT(with(MmaKind::kMxf4, 32, good(MmaKind::kMxf4) & ~(1U << 23)), HasSubstr("ue8m0"));
  EXPECT_THAT(with(MmaKind::kMxf4nvf4, 32, fp4), HasSubstr("with a scale for 32 elements"));
  EXPECT_EQ(with(MmaKind::kMxf4nvf4, 32, fp4 | 1 << 23 | 2 << 4 | 2U << 29), "");
  EXPECT_THAT(with(MmaKind::kMxf4nvf4, 32, fp4 | 1 << 23 | 1 << 4), HasSubstr("id of SFB"));
  EXPECT_THAT(with(MmaKind::kMxf4nvf4, 16, fp4 | 2U << 29), HasSubstr("id of SFA"));
  for (std::uint32_t id = 0; id < 4; ++id) {
    const std::uint32_t bits = good(MmaKind::kMxf8f6f4) | id << 29 | id << 4;
    EXPECT_EQ(with(MmaKind::kMxf8f6f4, 32, bits), "");
  }
}

TEST(MmaDescriptor, K96OfSm103) {
  MmaMode mode = mode_of(MmaKind::kMxf4nvf4);
  mode.target = 103;
  const std::uint32_t bits = good(MmaKind::kMxf4nvf4) | 1U << 31 | 2U << 29;
  EXPECT_EQ(check_mma_descriptor(bits, mode), "");
  EXPECT_EQ(decode_mma_descriptor(bits, mode).k, 96);
  EXPECT_THAT(check_mma_descriptor(bits ^ 3U << 29, mode), HasSubstr("with 6 scales"));
  mode.scale_block = 32;
  EXPECT_EQ(check_mma_descriptor((bits ^ 3U << 29) | 1U << 23, mode), "");
}

TEST(MmaDescriptor, TensorMemoryHoldsKMajorRows) {
  MmaMode mode = mode_of(MmaKind::kF16);
  mode.is_a_in_tmem = true;
  EXPECT_THAT(check_mma_descriptor(good(MmaKind::kF16) | 1 << 15, mode),
              HasSubstr("A in Tensor Memory is K-major"));
}

}  // namespace
}  // namespace tilewright::sim
