// Experts that are divided among ranks: what the parts add up to, and what is refused.
#include "tests/ops/moe_case.h"
#include "tests/ops/operator_test.h"

namespace tilewright::ops {
namespace {

class MoeShareTest : public ChipTest<MoeShareTest> {};
TILEWRIGHT_ON_EVERY_CHIP(MoeShareTest);

TEST_P(MoeShareTest, PartsAddUpToTheWhole) {
  for (const MoeRouting routing : {MoeRouting::kLogits, MoeRouting::kHash, MoeRouting::kGiven}) {
    SCOPED_TRACE(static_cast<int>(routing));
    expect_shares_add_up(*device_, {.problem = {.tokens = 9,
                                                .topk = 2,
                                                .routing = routing,
                                                .has_bias = routing == MoeRouting::kLogits,
                                                .vocab = routing == MoeRouting::kHash ? 50 : 0,
                                                .out_dtype = DType::kF32,
                                                .kernel = "band"},
                                    .experts = 4,
                                    .hidden = 64,
                                    .inter = 32});
  }
}

TEST_P(MoeShareTest, RefusesWhatIsNoShare) {
  const MoeWeightsInfo two = {
      .format = NumberFormat::kBf16, .experts = 2, .hidden = 64, .inter = 32};
  const auto refuses = [&](MoeProblem problem, const MoeWeightsInfo& weights,
                           const std::vector<std::string>& words) {
    problem.tokens = 4;
    problem.topk = 2;
    reference::expect_invalid([&] { plan_moe(*device_, weights, problem); }, words);
  };
  refuses({.first_expert = 1}, two, {"first_expert = 1", "0 without all_experts"});
  refuses({.all_experts = 1}, two, {"all_experts = 1", "2 (those of the weights) to 384"});
  refuses({.all_experts = 4, .first_expert = 3}, two, {"first_expert = 3", "0 to 2"});
  MoeWeightsInfo shared = two;
  shared.has_shared = true;
  refuses({.all_experts = 4}, shared, {"has_shared", "every rank would add the shared one"});
  MoeProblem more_than_here = {.tokens = 4, .topk = 3, .all_experts = 4};
  EXPECT_EQ(plan_moe(*device_, two, more_than_here).problem.topk, 3);
}

}  // namespace
}  // namespace tilewright::ops
