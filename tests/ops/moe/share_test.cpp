// Experts that are divided among ranks: what the parts add up to, and what is refused.
#include "tests/ops/moe_case.h"
#include "tests/ops/operator_test.h"

namespace tilewright::ops {
namespace {

class MoeShareTest : public ChipTest<MoeShareTest> {};
TILEWRIGHT_ON_EVERY_CHIP(MoeShareTest);

constexpr std::int64_t kAllExperts = 4;

MoeWeightsSource part_of(const MoeWeightsSource& all, std::int64_t first, std::int64_t count) {
  const auto part = [&](const std::vector<LinearWeightSource>& from) {
    return std::vector<LinearWeightSource>(from.begin() + first, from.begin() + first + count);
  };
  return {.gate = part(all.gate), .up = part(all.up), .down = part(all.down)};
}

// What a rank with `count` experts from `first` on makes of the call `a` of the whole layer.
std::vector<float> run_part(const Device& device, const MoeRun& run, MoeArguments a,
                            const device::Stream& stream, std::int64_t first, std::int64_t count) {
  const MoeWeights weights = MoeWeights::prepare(device, part_of(run.source(), first, count));
  MoeProblem problem = run.test_case().problem;
  problem.all_experts = kAllExperts;
  problem.first_expert = first;
  const Moe moe(weights, problem);
  EXPECT_EQ(std::ranges::count(moe.plan().launches, "share", &Launch::step), 1);
  Buffer workspace(opened(device), moe.plan().workspace_bytes);
  workspace.poison();
  const auto elems = static_cast<std::size_t>(problem.tokens * run.test_case().hidden);
  const kernels::Output<float> out(opened(device), elems);
  a.out = out.pointer();
  a.workspace = pointer_to<void>(workspace);
  moe.run(a);
  stream.synchronize();
  moe.check(a);  // experts of others are no error
  return out.read();
}

// Of two experts a token has, each part adds one, both or none: fp32 sums of the same two numbers
// in either order.
TEST_P(MoeShareTest, PartsAddUpToTheWhole) {
  for (const MoeRouting routing : {MoeRouting::kLogits, MoeRouting::kHash, MoeRouting::kGiven}) {
    SCOPED_TRACE(static_cast<int>(routing));
    MoeRun run(*device_, {.problem = {.tokens = 9,
                                      .topk = 2,
                                      .routing = routing,
                                      .has_bias = routing == MoeRouting::kLogits,
                                      .vocab = routing == MoeRouting::kHash ? 50 : 0,
                                      .out_dtype = DType::kF32,
                                      .kernel = "band"},
                          .experts = kAllExperts,
                          .hidden = 64,
                          .inter = 32});
    std::vector<double> sum(9 * 64);
    const std::vector<double> whole =
        run.run([&](const Moe& moe, const MoeArguments& a, const device::Stream& stream) {
          moe.run(a);
          for (const auto& [first, count] : {std::pair{0, 1}, std::pair{1, 3}}) {
            const auto part = run_part(*device_, run, a, stream, first, count);
            for (std::size_t i = 0; i < sum.size(); ++i)
              sum[i] = static_cast<float>(sum[i] + static_cast<double>(part[i]));
          }
        });
    EXPECT_EQ(sum, whole);
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
