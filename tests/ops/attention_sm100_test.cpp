// The attention operator on Blackwell: which kernel, and that maps and grids are as it wants them.
#include "ops/attention/plan.h"
#include "tests/ops/attention_case.h"
#include "tests/ops/blackwell_test.h"

#include <gmock/gmock.h>

namespace tilewright::ops {
namespace {

using ::testing::HasSubstr;

class AttentionSm100Test : public BlackwellTest<AttentionSm100Test> {
 protected:
  static AttentionPlan plan(const AttentionProblem& problem) {
    return plan_attention(*device_, problem);
  }
  static std::string message_of(const AttentionProblem& problem) {
    try {
      return plan(problem).to_string();
    } catch (const Error& error) {
      return error.what();
    }
  }
  static void check(const AttentionCase& c) {
    SCOPED_TRACE(plan(c.problem).to_string());
    AttentionRun(*device_, c).check();
  }
  static void check(const AttentionProblem& problem) { check(AttentionCase{problem, {}, {}, {}}); }
};

TEST_F(AttentionSm100Test, ChoosesByCount) {
  const auto kernel_for = [](std::int64_t head_dim, std::int64_t q_len) {
    return plan({.heads = 16, .kv_heads = 4, .q_len = q_len, .kv_len = 4096, .head_dim = head_dim})
        .kernel;
  };
  EXPECT_EQ(kernel_for(64, 4096), "sm100_e");
  EXPECT_EQ(kernel_for(64, 1), "sm100_c");  // the second tile would be empty
  EXPECT_EQ(kernel_for(128, 4096), "sm100_e");
  EXPECT_EQ(kernel_for(256, 4096), "sm100_f");
  EXPECT_EQ(kernel_for(512, 1), "sm100_f");
  const AttentionPlan pairs =
      plan({.heads = 16, .kv_heads = 4, .q_len = 100, .kv_len = 300, .head_dim = 512});
  EXPECT_EQ(pairs.tile_queries, 2 * 64 / 4);
  EXPECT_EQ(pairs.launches.at(0).grid, (std::array<std::uint32_t, 3>{2 * 4, 4, 1}));
}

// Compute capability 10.3 is of the family that the kernels are compiled for.
TEST_F(AttentionSm100Test, EveryKernelRunsOnAB300) {
  SuiteDevice<AttentionSm100Test>::open("sim:b300");
  for (const char* kernel : {"sm100_c", "sm100_e", "sm100_f"}) {
    const std::int64_t head_dim = kernel == std::string("sm100_f") ? 256 : 64;
    AttentionProblem p = {
        .heads = 4, .kv_heads = 2, .q_len = 70, .kv_len = 150, .head_dim = head_dim};
    p.kernel = kernel;
    p.causal = true;
    check(p);
  }
}

TEST_F(AttentionSm100Test, RefusesWithTheReason) {
  const AttentionProblem good = {
      .heads = 80, .kv_heads = 1, .q_len = 8, .kv_len = 8, .head_dim = 512};
  AttentionProblem p = good;
  p.kernel = "sm100_f";
  EXPECT_THAT(message_of(p), HasSubstr("has at most 64 query heads for a key head; these are 80"));
  p.kernel = "k6";
  p.head_dim = 64;
  EXPECT_THAT(message_of(p), HasSubstr("kernel k6 is for sm_90a; NVIDIA B200"));
  p.kernel = "sm100_h";
  EXPECT_THAT(message_of(p), HasSubstr("kernel sm100_h is for operands of e4m3"));
  p.kernel = "auto";
  p.dtype = DType::kF8_E4M3, p.head_dim = 512;
  EXPECT_THAT(message_of(p),
              HasSubstr("sm100_h, sm100_pages, sm100_pages_e4m3: exists for head_dim 64, 128, "
                        "256"));
  EXPECT_EQ(plan(good).kernel, "sm100_c");
}

TEST_F(AttentionSm100Test, EveryKernel) {
  for (const AttentionKernel& kernel : attention_kernels_for(100)) {
    if (kernel.is_e4m3_only) continue;  // attention_e4m3_test.cpp
    for (const AttentionVariant& variant : kernel.variants) {
      check({.batch = 2,
             .heads = 2,
             .kv_heads = 1,
             .q_len = 35,
             .kv_len = 140,
             .head_dim = variant.head_dim,
             .causal = true,
             .has_lse = true,
             .kernel = kernel.name,
             .value_dim = variant.value_dim});
    }
  }
}

TEST_F(AttentionSm100Test, EveryOptionOfEveryKernel) {
  for (const AttentionKernel& kernel : attention_kernels_for(100)) {
    if (kernel.is_e4m3_only) continue;
    const std::int64_t dim = kernel.variants[0].head_dim;
    const AttentionProblem base = {.heads = 4,
                                   .kv_heads = 2,
                                   .q_len = 35,
                                   .kv_len = 140,
                                   .head_dim = dim,
                                   .causal = true,
                                   .has_lse = true,
                                   .kernel = kernel.name};
    const auto with = [&](auto change) {
      AttentionProblem p = base;
      change(p);
      return p;
    };
    check(with([](auto& p) { p.has_sink = true, p.window_left = 20; }));
    check(with([](auto& p) { p.dtype = DType::kF16, p.causal = false, p.scale = 0.3; }));
    check(with([](auto& p) { p.causal = false, p.window_left = 30, p.window_right = 9; }));
    check(with([](auto& p) { p.softcap = 2, p.scale = 0.3; }));
    check(with([](auto& p) { p.softcap = 4, p.window_left = 50, p.has_sink = true; }));
    check(with([&](auto& p) {
      p.q_strides = {35 * 4 * (dim + 8), 4 * (dim + 8), dim + 8};
      p.v_strides = {140 * 4 * dim, 4 * dim, dim};
      p.out_strides = {35 * 4 * (dim + 16), 4 * (dim + 16), dim + 16};
    }));
    check(packed(with([](auto& p) { p.has_sink = true, p.window_left = 25; }), {40, 0, 3, 20},
                 {50, 5, 40, 20}));
  }
}

TEST_F(AttentionSm100Test, PackedStridedAndEmpty) {
  check(packed({.heads = 2, .kv_heads = 1, .head_dim = 256, .causal = true, .has_sink = true},
               {70, 0, 3}, {90, 5, 40}));
  check({.dtype = DType::kF16,
         .heads = 2,
         .kv_heads = 2,
         .q_len = 40,
         .kv_len = 50,
         .head_dim = 64,
         .window_left = 20,
         .has_lse = true,
         .q_strides = {0, 144, 72},
         .out_strides = {0, 160, 80}});
  check({.heads = 1, .kv_heads = 1, .q_len = 5, .kv_len = 0, .head_dim = 512, .has_lse = true});
}

}  // namespace
}  // namespace tilewright::ops
