#include "reference/moe/router.h"

#include "tests/reference/golden.h"
#include "tests/reference/inputs.h"

#include <cmath>
#include <limits>

namespace tilewright::reference {
namespace {

using Doubles = std::vector<double>;
using Ints = std::vector<int32_t>;

RouterParams params_of(int64_t tokens, int64_t experts, int64_t topk, RouterScore score,
                       bool normalize = true, double scale = 1) {
  return {tokens, experts, topk, score, normalize, scale};
}

TEST(Router, SoftmaxByHand) {
  const Doubles logits = {std::log(1), std::log(4), std::log(2), std::log(3)};
  const auto all = route_by_score(params_of(1, 4, 2, RouterScore::kSoftmax, false), logits);
  EXPECT_EQ(all.ids, (Ints{1, 3}));
  expect_close(all.scores, Doubles{0.1, 0.4, 0.2, 0.3});
  expect_close(all.weights, Doubles{0.4, 0.3});
  const auto normalized = route_by_score(params_of(1, 4, 2, RouterScore::kSoftmax), logits);
  expect_close(normalized.weights, Doubles{4.0 / 7, 3.0 / 7});
}

// Softmax over all experts, normalised over the chosen, equals softmax over the chosen logits.
TEST(Router, NormalizedSoftmaxIsTheSoftmaxOfTheChosen) {
  const Doubles logits = random_doubles(1, 16, -5, 5);
  const auto routing = route_by_score(params_of(1, 16, 4, RouterScore::kSoftmax), logits);
  double sum = 0;
  Doubles expected;
  for (const int32_t e : routing.ids) sum += std::exp(logits[e]);
  for (const int32_t e : routing.ids) expected.push_back(std::exp(logits[e]) / sum);
  expect_close(routing.weights, expected);
}

TEST(Router, SqrtSoftplusByHand) {
  // softplus(ln(e^4 - 1)) = 4, softplus(ln(e - 1)) = 1
  const Doubles logits = {std::log(std::exp(1) - 1), std::log(std::exp(4) - 1), 0};
  const auto routing =
      route_by_score(params_of(1, 3, 2, RouterScore::kSqrtSoftplus, true, 1.5), logits);
  expect_close(routing.scores, Doubles{1, 2, std::sqrt(std::log(2))});
  EXPECT_EQ(routing.ids, (Ints{1, 0}));
  expect_close(routing.weights, Doubles{1, 0.5});  // 1.5 * (2, 1) / 3
}

// The naive log(1 + exp(z)) is 0 below -37 and infinite above 709.
TEST(Router, SqrtSoftplusAtExtremeLogits) {
  const Doubles logits = {-100, 800, -700, 40};
  const auto params = params_of(1, 4, 4, RouterScore::kSqrtSoftplus);
  // softplus(z) = exp(z) far below 0, z far above
  expect_close(route_by_score(params, logits).scores,
               Doubles{std::exp(-50), std::sqrt(800), std::exp(-350), std::sqrt(40)});
}

TEST(Router, BiasMovesTheSelectionButNotTheWeights) {
  const Doubles logits = {3, 2, 1, 0};
  const auto params = params_of(1, 4, 2, RouterScore::kSqrtSoftplus, false);
  const auto plain = route_by_score(params, logits);
  EXPECT_EQ(plain.ids, (Ints{0, 1}));
  const auto biased = route_by_score(params, logits, Doubles{-5, 0, 0, 5});
  EXPECT_EQ(biased.ids, (Ints{3, 1}));
  EXPECT_EQ(biased.scores, plain.scores);
  EXPECT_EQ(biased.weights, (Doubles{plain.scores[3], plain.scores[1]}));
}

TEST(Router, TiesGoToTheLowestExpert) {
  const auto routing =
      route_by_score(params_of(2, 4, 2, RouterScore::kSoftmax), Doubles{1, 1, 1, 1, 0, 2, 2, 2});
  EXPECT_EQ(routing.ids, (Ints{0, 1, 1, 2}));
  EXPECT_EQ(routing.weights, Doubles(4, 0.5));
}

TEST(Router, NormalizedWeightsSumToTheScale) {
  for (const RouterScore score : {RouterScore::kSoftmax, RouterScore::kSqrtSoftplus}) {
    const auto routing =
        route_by_score(params_of(20, 32, 6, score, true, 2.5), random_doubles(2, 20 * 32, -8, 8));
    for (int t = 0; t < 20; ++t) {
      double sum = 0;
      for (int i = 0; i < 6; ++i) sum += routing.weights[t * 6 + i];
      EXPECT_NEAR(sum, 2.5, 1e-14);
    }
  }
}

TEST(Router, SoftmaxScoresSumToOneAndHugeLogitsAreFine) {
  Doubles logits = random_doubles(3, 8, -8, 8);
  for (double& z : logits) z += 5000;
  const auto routing = route_by_score(params_of(1, 8, 2, RouterScore::kSoftmax), logits);
  double sum = 0;
  for (const double score : routing.scores) sum += score;
  EXPECT_NEAR(sum, 1, 1e-15);
}

TEST(Router, ScoresOfZeroGiveWeightsOfZero) {
  const auto params = params_of(1, 3, 2, RouterScore::kSqrtSoftplus);
  EXPECT_EQ(route_by_score(params, Doubles(3, -5000)).weights, Doubles(2, 0));
}

TEST(Router, NanLosesToEveryOtherExpert) {
  const Doubles logits = {std::numeric_limits<double>::quiet_NaN(), -3, -2};
  const auto routing = route_by_score(params_of(1, 3, 2, RouterScore::kSqrtSoftplus), logits);
  EXPECT_EQ(routing.ids, (Ints{2, 1}));
}

TEST(Router, HashPicksTheTableRowInItsOrderAndWeightsByTheLogits) {
  const Ints table = {0, 3, 2, 1, 3, 2};  // three tokens of the vocabulary, two experts each
  const Doubles logits = random_doubles(4, 3 * 4);
  const auto params = params_of(3, 4, 2, RouterScore::kSqrtSoftplus, true, 1.5);
  const auto routing = route_by_hash(params, logits, Ints{2, 0, 2}, table);
  EXPECT_EQ(routing.ids, (Ints{3, 2, 0, 3, 3, 2}));
  EXPECT_EQ(routing.scores, route_by_score(params, logits).scores);
  for (int t = 0; t < 3; ++t) {
    const double a = routing.scores[t * 4 + routing.ids[t * 2]];
    const double b = routing.scores[t * 4 + routing.ids[t * 2 + 1]];
    expect_close(std::span(routing.weights).subspan(t * 2, 2),
                 Doubles{1.5 * a / (a + b), 1.5 * b / (a + b)});
  }
}

// With the table that score routing would have chosen, hash routing returns the same.
TEST(Router, HashWithTheBestExpertsEqualsScoreRouting) {
  const auto params = params_of(5, 8, 3, RouterScore::kSoftmax);
  const Doubles logits = random_doubles(5, 5 * 8);
  const auto expected = route_by_score(params, logits);
  const auto routing = route_by_hash(params, logits, Ints{0, 1, 2, 3, 4}, expected.ids);
  EXPECT_EQ(routing.ids, expected.ids);
  EXPECT_EQ(routing.weights, expected.weights);
}

TEST(Router, BadArguments) {
  const auto params = params_of(2, 4, 2, RouterScore::kSoftmax);
  const Doubles logits(8);
  expect_invalid([&] { route_by_score(params, Doubles(7)); },
                 {"router: logits has 7 elements; expected 8 for [tokens, experts] = [2, 4]"});
  expect_invalid([&] { route_by_score(params, logits, Doubles(3)); }, {"bias has 3 elements"});
  for (const int64_t topk : {5, 0, -1}) {
    expect_invalid([&] { route_by_score(params_of(2, 4, topk, RouterScore::kSoftmax), logits); },
                   {"router: topk = ", "and experts = 4", "expected 1 <= topk <= experts"});
  }
  const Ints table = {0, 1, 2, 4};
  expect_invalid([&] { route_by_hash(params, logits, Ints{0}, table); },
                 {"router: token_ids has 1 elements; expected 2"});
  expect_invalid(
      [&] {
        route_by_hash(params, logits, Ints{0, 2}, table);
      },
      {"router: token_ids[1] = 2; expected 0 to 1, the rows of the table"});
  expect_invalid([&] { route_by_hash(params, logits, Ints{-1, 0}, table); }, {"token_ids[0] = -1"});
  expect_invalid(
      [&] {
        route_by_hash(params, logits, Ints{0, 1}, table);
      },
      {"router: table[1, 1] = 4; expected 0 to 3, the experts"});
  expect_invalid(
      [&] {
        route_by_hash(params, logits, Ints{0, 0}, Ints{0, 1, -1});
      },
      {"router: table has 3 elements; expected 2 for [vocab, topk] = [1, 2]"});
  expect_invalid(
      [&] {
        route_by_hash(params, logits, Ints{0, 1}, Ints{0, 1, -1, 3});
      },
      {"router: table[1, 0] = -1; expected 0 to 3"});
  EXPECT_EQ(route_by_hash(params, logits, Ints{0, 0}, table).ids, (Ints{0, 1, 0, 1}));
}

}  // namespace
}  // namespace tilewright::reference
