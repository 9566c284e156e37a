// What a plan of a linear layer says, by arithmetic alone: no device is opened.
#include "ops/linear/plan.h"

#include "base/error.h"
#include "device/kernel_registry.h"
#include "tests/ops/gpu_infos.h"
#include "tests/reference/inputs.h"

#include <algorithm>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright::ops {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr LinearWeightInfo kW4A16 = {NumberFormat::kNvfp4, LinearActivations::kBf16, 7168, 7168};
constexpr LinearWeightInfo kW4A8 = {NumberFormat::kNvfp4, LinearActivations::kFp8, 7168, 7168};

class LinearPlanTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (device::kernel_images().empty()) GTEST_SKIP() << "built without kernels";
  }
};

TEST_F(LinearPlanTest, HasARegimeForFewAndForManyRows) {
  EXPECT_EQ(make_linear_plan(h200(), kW4A16, {.m = 1}).kernel, "direct");
  EXPECT_THAT(make_linear_plan(h200(), kW4A8, {.m = 1}).kernel, HasSubstr("band"));
  EXPECT_THAT(make_linear_plan(h200(), kW4A16, {.m = 4096}).kernel, HasSubstr("wide_bf16"));
  const LinearPlan fp8 = make_linear_plan(h200(), kW4A8, {.m = 4096});
  EXPECT_THAT(fp8.kernel, HasSubstr("wide_e4m3_fp4"));
  // x is quantised by a launch of its own into the workspace: codes, then scales.
  ASSERT_EQ(fp8.launches.size(), 2u);
  EXPECT_EQ(fp8.launches[0].entry, "quantize_fp8_token_bf16");
  EXPECT_EQ(fp8.workspace_bytes, 4096u * 7168 + 4096 * 4);
}

TEST_F(LinearPlanTest, SaysWhyNotTheOthers) {
  const LinearPlan plan = make_linear_plan(h200(), kW4A8, {.m = 256});
  std::set<std::string> names;
  for (const Candidate& c : plan.candidates) {
    EXPECT_TRUE(names.insert(c.name).second) << c.name << " twice";
    EXPECT_EQ(c.reason.empty(), c.name == plan.kernel) << c.name << ": " << c.reason;
  }
  EXPECT_THAT(plan.to_string(), HasSubstr("m 256, n 7168, k 7168, weight nvfp4 for fp8"));
  EXPECT_THAT(plan.to_string(), HasSubstr("times as long"));
  EXPECT_EQ(plan.flops, 2.0 * 256 * 7168 * 7168);
}

TEST_F(LinearPlanTest, RefusesAKernelThatCannot) {
  try {
    make_linear_plan(h200(), kW4A16, {.m = 8, .kernel = "wide_e4m3_fp4_t128"});
    ADD_FAILURE() << "was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
    EXPECT_THAT(error.what(),
                HasSubstr("prepared for fp8 activations. Possible here: direct, band"));
  }
  try {
    make_linear_plan(b200(), kW4A16, {.m = 8, .kernel = "wide_bf16_t64_s2"});
    ADD_FAILURE() << "was taken";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("is for sm_90a; NVIDIA B200 has compute capability 10.0. Possible here: "
                          "direct, band"));
  }
}

TEST_F(LinearPlanTest, BlackwellTakesTheKernelsOfBothChips) {
  const LinearPlan few = make_linear_plan(b200(), kW4A16, {.m = 8});
  EXPECT_EQ(few.kernel, "direct");
  EXPECT_THAT(few.to_string(), HasSubstr("estimates by count: no Blackwell GPU was measured"));
  EXPECT_THAT(make_linear_plan(b200(), kW4A16, {.m = 6000}).kernel, HasSubstr("band"));
  EXPECT_THAT(make_linear_plan(b200(), kW4A8, {.m = 64}).kernel, HasSubstr("band"));
}

// fp8 weights for fp8 activations are rows there, with kernels of their own for few and for many.
TEST_F(LinearPlanTest, BlackwellMultipliesFp8ByE4m3) {
  constexpr LinearWeightInfo kW8A8 = {NumberFormat::kFp8, LinearActivations::kFp8, 7168, 7168};
  EXPECT_EQ(make_linear_plan(b200(), kW8A8, {.m = 8}).kernel, "tensor_e4m3_few");
  const LinearPlan many = make_linear_plan(b200(), kW8A8, {.m = 4096});
  EXPECT_EQ(many.kernel, "tensor_e4m3_2cta_n256");
  ASSERT_EQ(many.launches.size(), 2u);
  EXPECT_EQ(many.launches[0].entry, "quantize_fp8_block_bf16");
  const LinearPlan given = make_linear_plan(b200(), kW8A8, {.m = 4096, .x_dtype = DType::kF8_E4M3});
  EXPECT_EQ(given.launches.size(), 1u);
  EXPECT_EQ(given.workspace_bytes, 0u);
  const auto reason = [](const LinearPlan& plan, std::string_view kernel) {
    return std::ranges::find(plan.candidates, kernel, &Candidate::name)->reason;
  };
  EXPECT_THAT(reason(many, "band"), HasSubstr("on Blackwell fp8 by fp8 ones are kept as rows"));
  EXPECT_THAT(reason(make_linear_plan(b200(), kW4A8, {.m = 64}), "tensor_e4m3_few"),
              HasSubstr("is for fp8 weights"));
  EXPECT_THAT(
      reason(make_linear_plan(b200(), {NumberFormat::kFp8, LinearActivations::kBf16, 7168, 7168},
                              {.m = 64}),
             "tensor_e4m3_few"),
      HasSubstr("prepared for fp8 activations"));
}

TEST_F(LinearPlanTest, FewRowsTakeAllGroupsAtOnce) {
  const LinearWeightInfo weight = {NumberFormat::kFp8, LinearActivations::kBf16, 8192, 4096, 8};
  const LinearPlan few = make_linear_plan(h200(), weight, {.m = 4});
  EXPECT_EQ(few.launches.size(), 1u) << few.kernel;
  EXPECT_EQ(few.problem.x_stride, 8 * 4096);
  const LinearPlan many = make_linear_plan(h200(), weight, {.m = 4096});
  EXPECT_EQ(many.launches.size(), 8u) << many.kernel;
  EXPECT_THAT(many.to_string(), HasSubstr("8 groups"));
  EXPECT_EQ(few.flops, 2.0 * 4 * 8192 * 4096);
  EXPECT_EQ(few.bytes, 8192.0 * 4096 * (1 + 4.0 / (128 * 128)) + 4 * 2.0 * (8 * 4096 + 8192));
}

TEST_F(LinearPlanTest, RefusesGroupsThatCannotBe) {
  const auto refuses = [&](const LinearWeightInfo& weight, const LinearProblem& p,
                           const char* text) {
    EXPECT_THAT([&] { make_linear_plan(h200(), weight, p); },
                ThrowsMessage<Error>(HasSubstr(text)));
  };
  constexpr LinearActivations kBf16 = LinearActivations::kBf16;
  refuses({NumberFormat::kFp8, kBf16, 384, 64, 2}, {.m = 1},
          "groups = 2; expected 1, or up to 1024 with a multiple of 128 of the 384 rows in each");
  refuses({NumberFormat::kNvfp4, kBf16, 48, 64, 2}, {.m = 1}, "a multiple of 16 of the 48 rows");
  refuses({NumberFormat::kBf16, kBf16, 64, 64, 0}, {.m = 1}, "groups = 0");
  refuses({NumberFormat::kFp8, LinearActivations::kFp8, 256, 64, 2},
          {.m = 1, .x_dtype = DType::kF8_E4M3}, "BF16 for a weight of 2 groups");
  refuses({NumberFormat::kBf16, kBf16, 64, 64, 2}, {.m = 1, .x_stride = 64}, "from 128 to 2^32");
}

TEST_F(LinearPlanTest, LaunchesNothingForNoRows) {
  const LinearPlan plan = make_linear_plan(h200(), kW4A16, {.m = 0});
  EXPECT_TRUE(plan.launches.empty());
  EXPECT_EQ(plan.workspace_bytes, 0u);
  EXPECT_THAT(plan.to_string(), HasSubstr("none: x has no rows"));
}

// No grid of clusters may be larger than what is resident at once.
TEST_F(LinearPlanTest, GridsFitTheDevice) {
  EXPECT_EQ(resident_clusters(h200(), 1), 132u);
  EXPECT_EQ(resident_clusters(h200(), 2), 66u);
  EXPECT_EQ(resident_clusters(h200(), 4), 30u);
  EXPECT_EQ(resident_clusters(h200(), 8), 15u);
  for (const auto& kernel : linear_kernels()) {
    for (const LinearWeightInfo& weight : {kW4A16, kW4A8}) {
      for (const std::int64_t m : {1, 64, 8192}) {
        LinearPlan plan;
        plan.weight = weight;
        plan.problem = {.m = m};
        if (!kernel->obstacle(weight, plan.problem).empty()) continue;
        // These have a cluster for each tile.
        if (kernel->name().starts_with("wide_e4m3") && kernel->name().ends_with("_s2")) continue;
        kernel->lay_out(h200(), plan);
        const Launch& launch = plan.launches.back();
        const std::uint32_t ctas = launch.shared_bytes <= 114 * 1024 ? 2 : 1;
        EXPECT_LE(launch.grid[0] / launch.cluster, resident_clusters(h200(), launch.cluster, ctas))
            << kernel->name() << ", m " << m;
        EXPECT_EQ(launch.grid[0] % launch.cluster, 0u);
      }
    }
  }
}

// The kernel that cuts k in two does not walk: too few clusters would leave tiles out.
TEST_F(LinearPlanTest, TilesOfWhichKIsCutHaveAClusterEach) {
  const LinearPlan plan =
      make_linear_plan(h200(), kW4A8, {.m = 8192, .kernel = "wide_e4m3_fp4_t128_s2"});
  EXPECT_EQ(plan.launches[1].grid[0], 2u * (8192 / 128) * (7168 / 128));
  EXPECT_EQ(plan.launches[1].cluster, 2u);
}

}  // namespace
}  // namespace tilewright::ops
