#include "model/text/sampler.h"

#include "tilewright/error.h"

#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace tilewright::model {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::array<int, 4> counts(const SamplerOptions& options, const std::vector<double>& logits) {
  Sampler sampler(options);
  std::array<int, 4> result = {};
  for (int i = 0; i < 4000; ++i) ++result[static_cast<std::size_t>(sampler.draw(logits, i))];
  return result;
}

TEST(Sampler, GreedyTakesTheLowestOfTheBest) {
  Sampler sampler({});
  EXPECT_EQ(sampler.draw(std::vector<double>{1, 3, 3, kNan}, 0), 1);
}

TEST(Sampler, DrawsAsOftenAsProbabilitiesSay) {
  const std::vector<double> logits = {std::log(1), std::log(2), std::log(5), -kInfinity};
  const auto drawn = counts({.temperature = 1, .seed = 7}, logits);
  // Four standard deviations of a binomial of 4000 are at most 126.
  EXPECT_NEAR(drawn[0], 500, 126);
  EXPECT_NEAR(drawn[1], 1000, 126);
  EXPECT_NEAR(drawn[2], 2500, 126);
  EXPECT_EQ(drawn[3], 0);
  const auto cold = counts({.temperature = 0.5, .seed = 7}, logits);  // 1 : 4 : 25
  EXPECT_NEAR(cold[0], 4000 / 30.0, 126);
  EXPECT_NEAR(cold[2], 4000 * 25 / 30.0, 126);
}

TEST(Sampler, TopPKeepsTheLikeliest) {
  const std::vector<double> logits = {std::log(1), std::log(2), std::log(5), kNan};
  const auto most = counts({.temperature = 1, .top_p = 0.6}, logits);  // 5 / 8 reaches it
  EXPECT_EQ(most[2], 4000);
  const auto two = counts({.temperature = 1, .top_p = 0.7}, logits);
  EXPECT_EQ(two[0], 0);
  EXPECT_NEAR(two[1], 4000 * 2 / 7.0, 126);
}

// Of the two likeliest 5 / 7 reaches 0.7.
TEST(Sampler, TopKComesBeforeTopP) {
  const std::vector<double> logits = {std::log(1), std::log(2), std::log(5), kNan};
  const auto two = counts({.temperature = 1, .top_k = 2}, logits);
  EXPECT_EQ(two[0], 0);
  EXPECT_NEAR(two[1], 4000 * 2 / 7.0, 126);
  EXPECT_EQ(counts({.temperature = 1, .top_k = 2, .top_p = 0.7}, logits)[2], 4000);
  EXPECT_EQ(counts({.temperature = 1, .top_k = 9}, logits), counts({.temperature = 1}, logits));
}

TEST(Sampler, MinPKeepsThoseThatAreLikelyBesideTheLikeliest) {
  const std::vector<double> logits = {std::log(1), std::log(2), std::log(5), kNan};
  const auto two = counts({.temperature = 1, .min_p = 0.3}, logits);  // 2 / 5 and 1
  EXPECT_EQ(two[0], 0);
  EXPECT_NEAR(two[1], 4000 * 2 / 7.0, 126);
}

// A token depends on its position, not on what was drawn before.
TEST(Sampler, PositionsAreIndependent) {
  const std::vector<double> logits(64, 0.0);
  const Sampler sampler({.temperature = 1, .seed = 3});
  const std::int32_t first = sampler.draw(logits, 9);
  std::set<std::int32_t> drawn;
  for (int i = 0; i < 32; ++i) drawn.insert(sampler.draw(logits, i));
  EXPECT_GT(drawn.size(), 16u);
  EXPECT_EQ(sampler.draw(logits, 9), first);
}

TEST(Sampler, SeedsAndSequences) {
  const std::vector<double> logits(64, 0.0);
  const auto draw = [&](std::uint64_t seed, std::uint64_t sequence) {
    Sampler sampler({.temperature = 1, .seed = seed}, sequence);
    std::vector<int> tokens;
    for (int i = 0; i < 8; ++i) tokens.push_back(sampler.draw(logits, i));
    return tokens;
  };
  EXPECT_EQ(draw(1, 0), draw(1, 0));
  EXPECT_NE(draw(1, 0), draw(2, 0));
  EXPECT_NE(draw(1, 0), draw(1, 1));
}

TEST(Sampler, BadArguments) {
  EXPECT_THROW(Sampler({.temperature = -1}), Error);
  EXPECT_THROW(Sampler({.top_p = 0}), Error);
  EXPECT_THROW(Sampler({.top_k = -1}), Error);
  EXPECT_THROW(Sampler({.min_p = 1.5}), Error);
  Sampler sampler({});
  EXPECT_THROW(sampler.draw(std::vector<double>{kNan, -kInfinity}, 0), Error);
  EXPECT_THROW(sampler.draw(std::vector<double>{}, 0), Error);
}

}  // namespace
}  // namespace tilewright::model
