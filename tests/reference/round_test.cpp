#include "reference/round.h"

#include "tests/reference/inputs.h"

namespace tilewright::reference {
namespace {

TEST(Round, ThroughFloatToBf16) {
  // Just above the middle of 1 and 1 + 2^-7: nearest is up, but the float in between is the middle.
  std::vector<double> values = {1 + 0x1p-8 + 0x1p-40, 1 + 0x1.8p-8, -3.5};
  round_to_bf16(values);
  EXPECT_EQ(values, (std::vector<double>{1, 1 + 0x1p-7, -3.5}));
}

TEST(Round, BlocksOfTheFirstColumns) {
  std::vector<double> row(66, 0.3);
  row[0] = 448;  // scale 1
  row[64] = row[65] = 0.3;
  round_to_blocks(kFp8Block64Pow2, row, 1, 66, 64);
  EXPECT_EQ(row[0], 448);
  EXPECT_EQ(row[1], 0.3125) << "e4m3: 1.25 * 2^-2";
  EXPECT_EQ(row[65], 0.3) << "not quantised";
  expect_invalid([&] { round_to_blocks(kFp8Block64Pow2, row, 1, 65, 64); }, {"[rows, cols]"});
}

}  // namespace
}  // namespace tilewright::reference
