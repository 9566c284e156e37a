#include "reference/top_k.h"

#include "tests/reference/inputs.h"

#include <cmath>
#include <limits>
#include <set>

namespace tilewright::reference {
namespace {

using Doubles = std::vector<double>;
using Ints = std::vector<int32_t>;
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(TopK, LargestFirst) {
  EXPECT_EQ(top_k(Doubles{3, -1, 7, 5}, 3), (Ints{2, 3, 0}));
}

TEST(TopK, TiesGoToTheLowestIndex) {
  EXPECT_EQ(top_k(Doubles{1, 2, 1, 2, 1}, 4), (Ints{1, 3, 0, 2}));
  EXPECT_EQ(top_k(Doubles(6, 0.5), 3), (Ints{0, 1, 2}));
  EXPECT_EQ(top_k(Doubles{0.0, -0.0, 0.0}, 3), (Ints{0, 1, 2}));  // -0 equals 0
}

TEST(TopK, NanCountsAsMinusInfinity) {
  EXPECT_EQ(top_k(Doubles{kNan, -5, kNan, 2}, 2), (Ints{3, 1}));
  EXPECT_EQ(top_k(Doubles{kNan, -kInf, kNan, -1e308, kInf}, 5), (Ints{4, 3, 0, 1, 2}));
}

TEST(TopK, PadsWithMinusOne) {
  EXPECT_EQ(top_k(Doubles{1, 2}, 4), (Ints{1, 0, -1, -1}));
  EXPECT_EQ(top_k({}, 2), (Ints{-1, -1}));
  EXPECT_EQ(top_k(Doubles{1}, 0), Ints{});
}

TEST(TopK, NothingOutsideIsLargerThanAnythingInside) {
  Doubles values;
  Random random(3);
  for (int i = 0; i < 500; ++i) values.push_back(std::floor(random.uniform(0, 40)));  // many ties
  const Ints picked = top_k(values, 100);
  const std::set<int32_t> inside(picked.begin(), picked.end());
  ASSERT_EQ(inside.size(), 100u);
  for (size_t i = 1; i < picked.size(); ++i) {
    const bool is_ordered =
        values[picked[i - 1]] > values[picked[i]] ||
        (values[picked[i - 1]] == values[picked[i]] && picked[i - 1] < picked[i]);
    EXPECT_TRUE(is_ordered) << i;
  }
  for (int32_t i = 0; i < 500; ++i) {
    if (inside.contains(i)) continue;
    const int32_t last = picked.back();
    EXPECT_TRUE(values[i] < values[last] || (values[i] == values[last] && i > last)) << i;
  }
}

TEST(TopK, BadArguments) {
  expect_invalid([] { top_k(Doubles{1}, -1); }, {"top_k: k = -1; expected at least 0"});
  const double one = 1;
  const std::span<const double> too_long(&one, size_t{1} << 31);  // refused before it is read
  expect_invalid([&] { top_k(too_long, 1); },
                 {"top_k: 2147483648 values; expected at most 2^31 - 1"});
}

}  // namespace
}  // namespace tilewright::reference
