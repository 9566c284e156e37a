// Swizzles, and the bank conflicts they remove.

#include "base/error.h"
#include "layout/banks.h"
#include "layout/constant.h"
#include "layout_families.h"

#include <set>

namespace tilewright {
namespace {

TEST(Swizzle, IsItsOwnInverseAndKeepsTheLowBits) {
  for (const Swizzle swizzle : {Swizzle{3, 4, 3}, Swizzle{2, 4, 3}, Swizzle{1, 4, 3},
                                Swizzle{2, 5, 2}, Swizzle{3, 2, -3}, Swizzle{}}) {
    std::set<std::int64_t> image;
    for (std::int64_t i = 0; i < 4096; ++i) {
      EXPECT_EQ(swizzle(swizzle(i)), i) << to_string(swizzle);
      EXPECT_EQ(swizzle(i) & ((1 << swizzle.base) - 1), i & ((1 << swizzle.base) - 1));
      image.insert(swizzle(i));
    }
    EXPECT_EQ(image.size(), 4096u) << to_string(swizzle);
  }
}

TEST(Swizzle, ComposedLayoutsEvaluateOffsetThenSwizzle) {
  const ComposedLayout a = parse_composed_layout("Sw<2,1,3> o 8 o (4,8):(8,1)");
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 8; ++j) EXPECT_EQ(a(i, j), Swizzle(2, 1, 3)(8 + 8 * i + j));
  }
}

TEST(Constant, OffsetInAgreesWithEvaluation) {
  constexpr Layout kOdd = "((3,5),7):((70,2),10)"_layout;
  constexpr ComposedLayout kTile = "Sw<3,3,3> o 64 o ((8,2),(64,2)):((64,512),(1,1024))"_composed;
  constexpr ComposedLayout kBackwards = "Sw<2,1,-3> o 0 o (8,8):(8,1)"_composed;
  for (int i = 0; i < 105; ++i) EXPECT_EQ(offset_in<kOdd>(i), kOdd(i));
  for (int i = 0; i < 15; ++i) {
    for (int j = 0; j < 7; ++j) EXPECT_EQ(offset_in<kOdd>(i, j), kOdd(i, j));
  }
  for (unsigned i = 0; i < 16; ++i) {
    for (unsigned j = 0; j < 128; ++j) EXPECT_EQ(offset_in<kTile>(i, j), kTile(i, j));
  }
  for (int i = 0; i < 64; ++i) EXPECT_EQ(offset_in<kBackwards>(i), kBackwards(i));
  static_assert(offset_in<kTile>(1, 8) == 64 + (64 ^ 8 ^ 16));
}

TEST(Banks, RowsAreFreeAndColumnsConflict) {
  // 32 lanes down a column of a 32x32 tile of 4-byte words, row-major: all in one bank.
  EXPECT_EQ(count_bank_conflicts(parse_layout("(32,32):(32,1)"), 32).wavefronts, 32);
  EXPECT_EQ(count_bank_conflicts(parse_layout("(32,32):(1,32)"), 32).wavefronts, 1);
  EXPECT_EQ(count_bank_conflicts(parse_layout("(32,32):(33,1)"), 32).conflicts(), 0)
      << "padding by one word";
  EXPECT_EQ(count_bank_conflicts(parse_layout("(32,1):(0,1)"), 32).wavefronts, 1)
      << "one word, broadcast";
  EXPECT_EQ(count_bank_conflicts(parse_layout("(32,1):(2,1)"), 32).wavefronts, 2);
}

TEST(Banks, VectorAccessesAreServedInGroups) {
  EXPECT_EQ(count_bank_conflicts(parse_layout("(32,4):(4,1)"), 32, 4).wavefronts, 4)
      << "16 B a lane, contiguous";
  EXPECT_EQ(count_bank_conflicts(parse_layout("(32,4):(4,1)"), 32, 4).conflicts(), 0);
  EXPECT_EQ(count_bank_conflicts(parse_layout("(32,2):(2,1)"), 32, 2).wavefronts, 2);
  EXPECT_EQ(count_bank_conflicts(parse_layout("(32,2):(1,32)"), 16, 1).wavefronts, 1)
      << "two lanes share a word";
  EXPECT_THROW(count_bank_conflicts(parse_layout("(32,2):(1,32)"), 16, 2), Error)
      << "not contiguous";
  EXPECT_THROW(count_bank_conflicts(parse_layout("(32,3):(3,1)"), 32, 3), Error) << "12 bytes";
}

TEST(Banks, TheSwizzleMakesColumnReadsOf16BytesFree) {
  // Eight lanes read the same 16-byte chunk of eight rows of 128 bytes: what ldmatrix does.
  const Layout rows = parse_layout("((8,4),8):((64,0),1)");
  const BankReport plain = count_bank_conflicts(rows, 16, 8);
  EXPECT_EQ(plain.wavefronts, 32);
  EXPECT_EQ(plain.worst_bank, 8);
  const BankReport swizzled =
      count_bank_conflicts(ComposedLayout(Swizzle{3, 3, 3}, 0, rows), 16, 8);
  EXPECT_EQ(swizzled.conflicts(), 0);
  EXPECT_EQ(swizzled.worst_bank, 1);
  static_assert(
      count_bank_conflicts("Sw<3,3,3> o 0 o ((8,4),8):((64,0),1)"_composed, 16, 8).conflicts() == 0,
      "a kernel can demand it at compile time");
}

}  // namespace
}  // namespace tilewright
