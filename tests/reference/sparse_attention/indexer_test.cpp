#include "reference/sparse_attention/indexer.h"

#include "formats/minifloat.h"
#include "tests/reference/golden.h"
#include "tests/reference/inputs.h"

#include <cmath>
#include <limits>

namespace tilewright::reference {
namespace {

using Doubles = std::vector<double>;
using Ints = std::vector<int32_t>;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(Indexer, ReluBeforeTheWeightWhichMayBeNegative) {
  const IndexerParams params{.tokens = 1, .heads = 2, .dim = 1};
  // key 1: relu(3) * 2 + relu(-5) * -1 = 6; key -1: relu(-3) * 2 + relu(5) * -1 = -5
  const Doubles q = {3, -5}, k = {1, -1, 1}, w = {2, -1};
  EXPECT_EQ(indexer_scores(params, q, k, w, Ints{2}), (Doubles{6, -5, -kInfinity}));
}

TEST(Indexer, TransformIsOrthogonalAndItsOwnInverse) {
  const auto x = random_doubles(1, 2 * 128);
  const auto y = indexer_transform(128, x);
  expect_close(indexer_transform(128, y), x, 1e-13, 1e-14);
  double before = 0, after = 0;
  for (size_t i = 0; i < 128; ++i) before += x[i] * x[i], after += y[i] * y[i];
  EXPECT_NEAR(after, before, 1e-12);
}

TEST(Indexer, TransformRoundsBeforeAndAfterAndToBlocks) {
  const auto x = random_doubles(1, 128);
  const auto rounded = indexer_transform(128, x, true);
  for (const double value : rounded) EXPECT_EQ(value, round_to(kBf16, value));
  for (const double value : indexer_transform(128, x, true, &kMxfp4Ceil)) {
    const double magnitude = std::abs(value);
    if (magnitude == 0) continue;
    int exponent;
    EXPECT_EQ(std::fmod(std::frexp(magnitude, &exponent) * 4, 1), 0) << "two bits of significand";
  }
}

TEST(Indexer, FactorOfTheWeights) {
  EXPECT_DOUBLE_EQ(indexer_weight_factor({.heads = 64, .dim = 128}), 1 / std::sqrt(128.0) / 8);
}

TEST(Indexer, SelectionIsAscendingAndSkipsWhatIsNoScore) {
  const Doubles scores = {1, 5, -kInfinity, 5, kNan, -2};
  EXPECT_EQ(indexer_select(1, scores, 2), (Ints{1, 3}));
  EXPECT_EQ(indexer_select(1, scores, 1), (Ints{1})) << "equal scores: the lower entry";
  EXPECT_EQ(indexer_select(1, scores, 6), (Ints{0, 1, 3, 5, -1, -1}));
  EXPECT_EQ(indexer_select(2, Doubles{}, 2), (Ints{-1, -1, -1, -1}));
}

}  // namespace
}  // namespace tilewright::reference
