// Values, and results, of another width than queries and keys: DeepSeek-V3's prefill has 192 and
// 128. Against float64, in both types, with every option, on both chips.
#include "ops/attention/padding.h"
#include "ops/attention/plan.h"
#include "tests/ops/attention_case.h"
#include "tests/ops/gpu_infos.h"
#include "tests/ops/operator_test.h"

#include <gmock/gmock.h>

namespace tilewright::ops {
namespace {

using ::testing::HasSubstr;

class AttentionValueDimTest : public ChipTest<AttentionValueDimTest> {
 protected:
  static void check(const AttentionCase& c) {
    SCOPED_TRACE(plan_attention(*device_, c.problem).to_string());
    AttentionRun(*device_, c).check();
  }
  static void check(const AttentionProblem& problem) { check(AttentionCase{problem, {}, {}, {}}); }
  // Of small problems, plan() may choose another.
  static const char* own_kernel() { return is_blackwell() ? "sm100_e" : "k6"; }
};
TILEWRIGHT_ON_EVERY_CHIP(AttentionValueDimTest);

AttentionProblem with(AttentionProblem p, auto change) {
  change(p);
  return p;
}

// 150 queries are two tiles of Hopper's and one of Blackwell's, both end in a box; 140 keys two
// steps.
const AttentionProblem kBase = {.heads = 2,
                                .kv_heads = 2,
                                .q_len = 150,
                                .kv_len = 140,
                                .head_dim = 192,
                                .causal = true,
                                .has_lse = true,
                                .value_dim = 128};

TEST_P(AttentionValueDimTest, EveryOption) {
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    const auto base = with(kBase, [&](auto& p) { p.dtype = dtype, p.kernel = own_kernel(); });
    check(base);
    check(with(base, [](auto& p) { p.causal = false, p.has_sink = true, p.kv_len = 300; }));
    check(with(base, [](auto& p) { p.causal = false, p.window_left = 30, p.window_right = 9; }));
    check(with(base, [](auto& p) { p.softcap = 4, p.scale = 0.3, p.has_lse = false; }));
    check(packed(with(base, [](auto& p) { p.kv_heads = 1, p.has_sink = true; }), {130, 0, 3, 20},
                 {90, 5, 40, 20}));
  }
  check(with(kBase, [](auto& p) { p.kv_len = 0; }));
}
// What lies between heads and rows of out is not written.
TEST_P(AttentionValueDimTest, Strides) {
  check(with(kBase, [](auto& p) {
    p.batch = 2, p.q_len = 20;
    p.q_strides = {20 * 400, 400, 200};
    p.k_strides = {140 * 640, 640, 320};  // values lie behind keys
    p.v_strides = {140 * 640, 640, 320};
    p.out_strides = {20 * 300, 300 - 4, 136};
  }));
}
// Narrower ones than a form has: columns that do not exist are neither read nor written.
TEST_P(AttentionValueDimTest, EveryPairIsThatOfAWiderForm) {
  struct Pair {
    std::int64_t head_dim, value_dim;
    const char* entry;
  };
  for (const auto& [head_dim, value_dim, entry] :
       {Pair{136, 104, "_d192_v128"}, Pair{192, 8, "_d192_v128"},
        Pair{40, 72, is_blackwell() ? "_d128" : "_d96"}, Pair{64, 24, "_d64"},
        Pair{144, 160, is_blackwell() ? "_d256" : "_d192"}, Pair{256, 64, "_d256"}}) {
    const AttentionProblem p = with(kBase, [&](auto& x) {
      x.head_dim = head_dim, x.value_dim = value_dim, x.q_len = 20, x.dtype = DType::kF16;
      if (value_dim <= 128 && head_dim <= 192) x.kernel = own_kernel();
    });
    EXPECT_THAT(plan_attention(*device_, p).launches.at(0).entry, HasSubstr(entry));
    check(p);
    check(packed(p, {20, 0, 3}, {30, 5, 2}));
  }
}

class AttentionValueDimPlan : public ::testing::Test {
 protected:
  void SetUp() override {
    if (device::kernel_images().empty()) GTEST_SKIP() << "built without kernels";
  }
  static std::string text(const device::DeviceInfo& device, const AttentionProblem& problem) {
    try {
      return make_attention_plan(device, problem).to_string();
    } catch (const Error& error) {
      return error.what();
    }
  }
};

const AttentionProblem kPrefill = {.batch = 2,
                                   .heads = 16,
                                   .kv_heads = 16,
                                   .q_len = 4096,
                                   .kv_len = 4096,
                                   .head_dim = 192,
                                   .value_dim = 128};

TEST_F(AttentionValueDimPlan, CountsBoth) {
  const AttentionPlan plan = make_attention_plan(h200(), kPrefill);
  EXPECT_EQ(plan.kernel, "k6");
  EXPECT_EQ(plan.flops, 2.0 * (192 + 128) * 2 * 16 * 4096 * 4096);
  EXPECT_EQ(plan.bytes, 2.0 * 2 * 16 * 4096 * (2 * 192 + 2 * 128));
  EXPECT_EQ(plan.problem.scale, 1 / std::sqrt(192.0));
  const Strides v = plan.problem.v_strides;
  EXPECT_EQ(std::tuple(v.batch, v.row, v.head), std::tuple(4096 * 16 * 128, 16 * 128, 128));
  EXPECT_THAT(plan.to_string(), HasSubstr("head_dim 192, value_dim 128, scale"));
  EXPECT_THAT(plan.to_string(), ::testing::Not(HasSubstr("padding")));
  // The same as no value_dim.
  EXPECT_EQ(text(h200(), with(kPrefill, [](auto& p) { p.value_dim = 192; })),
            text(h200(), with(kPrefill, [](auto& p) { p.value_dim = 0; })));
}
// The form that fits is cheaper than the one for 256 columns of both, by what that adds.
TEST_F(AttentionValueDimPlan, NarrowerOnesAreSaid) {
  const auto narrow = with(kPrefill, [](auto& p) { p.head_dim = 160, p.value_dim = 96; });
  EXPECT_THAT(text(h200(), narrow),
              HasSubstr("head_dim 160, value_dim 96 as 192 and 128: 1.25 times the products"));
  const auto wide = with(kPrefill, [](auto& p) { p.value_dim = 136, p.kernel = "k6"; });
  EXPECT_THAT(text(h200(), wide),
              HasSubstr("head_dim 192, value_dim 136 as 192: 1.17 times the products"));
  const AttentionPlan plan =
      make_attention_plan(h200(), with(wide, [](auto& p) { p.head_dim = 200; }));
  EXPECT_EQ(plan.padded_head_dim, 256);
  EXPECT_THAT(plan.to_string(), HasSubstr("1.52 times the products, results trimmed"));
  EXPECT_GE(plan.workspace_bytes, 2u * 4096 * 16 * 256 * 2);
}
// Three boxes of queries and keys, two of values: all of Tensor Memory and of shared memory.
TEST_F(AttentionValueDimPlan, OnBlackwell) {
  const AttentionPlan plan = make_attention_plan(b200(), kPrefill);
  EXPECT_EQ(plan.kernel, "sm100_e");
  EXPECT_EQ(plan.launches.at(0).entry, "attention_sm100_stage_e_bf16_d192_v128");
  EXPECT_LE(plan.launches.at(0).shared_bytes, 227u * 1024);
  EXPECT_THAT(text(b200(), with(kPrefill, [](auto& p) { p.value_dim = 512; })),
              HasSubstr("as 512: 1.45 times the products"));
}
TEST_F(AttentionValueDimPlan, RefusesWhatHasNoForm) {
  const auto at = [](std::int64_t head_dim, std::int64_t value_dim, const char* kernel = "auto") {
    return with(kPrefill, [&](auto& p) {
      p.head_dim = head_dim, p.value_dim = value_dim, p.kernel = kernel;
    });
  };
  EXPECT_THAT(text(h200(), at(192, 100)), HasSubstr("value_dim = 100; expected a multiple of 8"));
  EXPECT_THAT(text(h200(), at(192, -8)), HasSubstr("value_dim = -8; expected a multiple of 8"));
  EXPECT_THAT(
      text(h200(), at(64, 512)),
      HasSubstr("k6, k6_pages: exists for head_dim 64, 96, 128, 192, 256, 192 with value_dim 128"));
  for (const char* const kernel : {"k1", "k4_2", "k6_3", "k7", "k8"})
    EXPECT_THAT(text(h200(), at(128, 64, kernel)),
                HasSubstr("does not support a value_dim other than head_dim"));
  EXPECT_THAT(
      text(h200(), with(at(192, 128), [](auto& p) { p.dtype = DType::kF8_E4M3; })),
      HasSubstr("k7, k7_short, k7_pages, k8: does not support a value_dim other than head_dim"));
  const auto overlapping = with(kPrefill, [](auto& p) {
    p.out_strides = {4096 * 16 * 128, 16 * 128, 120};
  });
  EXPECT_THAT(text(h200(), overlapping),
              HasSubstr("out_strides.head = 120; expected at least value_dim = 128"));
}

}  // namespace
}  // namespace tilewright::ops
