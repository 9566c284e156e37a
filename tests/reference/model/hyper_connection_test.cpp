#include "reference/model/hyper_connection.h"

#include "tests/reference/golden.h"
#include "tests/reference/inputs.h"

#include <cmath>

namespace tilewright::reference {
namespace {

using Doubles = std::vector<double>;

// Without any influence of the input all weights are known.
TEST(HyperConnection, WeightsOfZeroAndOnes) {
  const HyperParams params{.tokens = 1, .streams = 2, .hidden = 3, .eps = 0};
  const Doubles x = random_doubles(1, 6), fn(8 * 6, 0), base(8, 0), scale = {1, 1, 1};
  const HyperMix mix = hyper_mix(params, x, fn, base, scale);
  EXPECT_EQ(mix.pre, Doubles(2, 0.5));
  EXPECT_EQ(mix.post, Doubles(2, 1.0)) << "twice a sigmoid";
  expect_close(mix.comb, Doubles(4, 0.5));
}

TEST(HyperConnection, MixIsOfTheNormalisedStreams) {
  // m = x . fn / rms(x): scaling the streams changes nothing.
  const HyperParams params{.tokens = 1, .streams = 2, .hidden = 3, .norm_eps = 0};
  const Doubles x = random_doubles(1, 6), fn = random_doubles(2, 8 * 6), base(8, 0.25);
  Doubles scaled = x;
  for (double& value : scaled) value *= 1024;
  const Doubles scale = {0.5, 2, 1};
  const HyperMix a = hyper_mix(params, x, fn, base, scale),
                 b = hyper_mix(params, scaled, fn, base, scale);
  expect_close(b.pre, a.pre);
  expect_close(b.comb, a.comb);
  double m = 0, squares = 0;
  for (size_t i = 0; i < 6; ++i) m += x[i] * fn[i], squares += x[i] * x[i];
  const double z = m / std::sqrt(squares / 6) * 0.5 + 0.25;
  EXPECT_NEAR(a.pre[0], 1 / (1 + std::exp(-z)) + 1e-6, 1e-14);
}

TEST(HyperConnection, SinkhornMakesRowsAndColumnsSumToOne) {
  Doubles c = random_doubles(3, 16, -1, 1), once = c;
  sinkhorn(c, 4, 20, 1e-6);
  sinkhorn(once, 4, 1, 1e-6);
  double worst_row = 0;
  for (int64_t j = 0; j < 4; ++j) {
    double row = 0, column = 0, row_once = 0;
    for (int64_t k = 0; k < 4; ++k) {
      row += c[j * 4 + k], column += c[k * 4 + j], row_once += once[j * 4 + k];
    }
    EXPECT_NEAR(row, 1, 1e-4);
    EXPECT_NEAR(column, 1, 2e-6) << "columns come last, and eps is in their sum";
    worst_row = std::max(worst_row, std::abs(row_once - 1));
  }
  EXPECT_GT(worst_row, 1e-2) << "one pass is not enough";
}

TEST(HyperConnection, PostSumsOverTheFirstIndex) {
  const HyperParams params{.tokens = 1, .streams = 2, .hidden = 1};
  const HyperMix mix = {{}, {10, 20}, {1, 2, 3, 4}};  // C = [1 2; 3 4]
  EXPECT_EQ(hyper_post(params, Doubles{5, 7}, Doubles{1}, mix),
            (Doubles{10 + 1 * 5 + 3 * 7, 20 + 2 * 5 + 4 * 7}));
  EXPECT_EQ(hyper_pre(params, Doubles{5, 7}, Doubles{2, 3}), (Doubles{31}));
}

TEST(HyperConnection, BadArguments) {
  const HyperParams params{.tokens = 1, .streams = 2, .hidden = 3};
  const Doubles x(6), fn(8 * 6), base(8), scale(3);
  expect_invalid([&] { hyper_mix(params, x, base, base, scale); }, {"fn has 8 elements"});
  expect_invalid([&] { hyper_head_mix(params, x, fn, base, scale); }, {"base has 8 elements"});
  Doubles c(4);
  expect_invalid([&] { sinkhorn(c, 2, 0, 1e-6); }, {"iters = 0"});
}

}  // namespace
}  // namespace tilewright::reference
