// Head dimensions that no kernel has: computed as the next wider one, with zeros that tensor copies
// deliver. Against float64, in every type, by every kernel that pads, with every option.
#include "device/graph.h"
#include "ops/attention/padding.h"
#include "ops/attention/plan.h"
#include "tests/ops/attention_case.h"
#include "tests/ops/gpu_infos.h"
#include "tests/ops/operator_test.h"

#include <gmock/gmock.h>

namespace tilewright::ops {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class AttentionHeadDimTest : public ChipTest<AttentionHeadDimTest> {
 protected:
  static void check(const AttentionCase& c) {
    SCOPED_TRACE(plan_attention(*device_, c.problem).to_string());
    AttentionRun(*device_, c).check();
  }
  static void check(const AttentionProblem& problem) { check(AttentionCase{problem, {}, {}, {}}); }

  // Those of the device that take operands of 16 bits as they are.
  static std::vector<AttentionKernel> kernels() {
    std::vector<AttentionKernel> found;
    for (const AttentionKernel& kernel : attention_kernels_for(device_->compute_capability()))
      if (kernel.pads && !kernel.computes_in_e4m3()) found.push_back(kernel);
    return found;
  }
};
TILEWRIGHT_ON_EVERY_CHIP(AttentionHeadDimTest);

AttentionProblem with(AttentionProblem p, auto change) {
  change(p);
  return p;
}

// Chosen by itself. Every third one is packed, every second one f16; 20 queries end within a box.
TEST_P(AttentionHeadDimTest, EveryMultipleOf8) {
  const std::int64_t last = is_blackwell() ? 512 : 256, step = is_blackwell() ? 24 : 8;
  for (std::int64_t head_dim = 8; head_dim <= last; head_dim += step) {
    const std::int64_t number = head_dim / step;
    const AttentionProblem p = {.dtype = number % 2 == 0 ? DType::kBF16 : DType::kF16,
                                .heads = 2,
                                .kv_heads = 1,
                                .q_len = 20,
                                .kv_len = 30,
                                .head_dim = head_dim,
                                .causal = true,
                                .has_lse = true};
    check(number % 3 == 0 ? packed(p, {20, 0, 3}, {30, 5, 2}) : AttentionCase{p, {}, {}, {}});
  }
}

// By name, one head_dim for each form; results that are clipped by their map and such that are
// trimmed. 140 queries have more than one tile, or more than one box.
TEST_P(AttentionHeadDimTest, EveryKernelThatPads) {
  int tried = 0;
  for (const AttentionKernel& kernel : kernels()) {
    for (const AttentionVariant& variant : kernel.variants) {
      const std::int64_t dim = variant.head_dim - 24;
      const std::int64_t value_dim = variant.value_dim == variant.head_dim ? dim : 104;
      const AttentionProblem p = {.heads = 2,
                                  .kv_heads = 1,
                                  .q_len = 140,
                                  .kv_len = 150,
                                  .head_dim = dim,
                                  .causal = true,
                                  .has_lse = true,
                                  .kernel = kernel.name,
                                  .value_dim = value_dim};
      check(p);
      check(packed(with(p, [](auto& x) { x.has_lse = false; }), {70, 0, 3}, {90, 5, 40}));
      tried += 2;
    }
  }
  EXPECT_GE(tried, is_blackwell() ? 16 : 20);
}

TEST_P(AttentionHeadDimTest, EveryOptionOfEveryKernelThatPads) {
  for (const AttentionKernel& kernel : kernels()) {
    const std::int64_t width = kernel.variants[0].head_dim, dim = width - 24;
    const AttentionProblem base = {.batch = 2,
                                   .heads = 4,
                                   .kv_heads = 2,
                                   .q_len = 35,
                                   .kv_len = 140,
                                   .head_dim = dim,
                                   .causal = true,
                                   .has_lse = true,
                                   .kernel = kernel.name};
    check(with(base, [](auto& p) { p.has_sink = true, p.window_left = 20; }));
    check(with(base, [](auto& p) { p.dtype = DType::kF16, p.causal = false, p.scale = 0.3; }));
    check(with(base, [](auto& p) { p.softcap = 4, p.causal = false, p.window_right = 9; }));
    // What lies between heads and rows of out is not written, results that are trimmed included.
    const auto strided = with(base, [&](auto& p) {
      p.q_strides = {35 * 4 * (dim + 8), 4 * (dim + 8), dim + 8};
      p.v_strides = {140 * 4 * dim, 4 * dim, dim};
      p.out_strides = {35 * 4 * (dim + 16), 4 * (dim + 16), dim + 16};
    });
    check(strided);
    check(packed(with(base,
                      [&](auto& p) {
                        p.has_sink = true, p.window_left = 25, p.dtype = DType::kF16;
                        p.out_strides = {0, 4 * (dim + 8), dim + 8};
                      }),
                 {40, 0, 3, 20}, {50, 5, 40, 20}));
    check(with(base, [](auto& p) { p.kv_len = 0; }));
  }
}

// 150 queries are two tiles, of which the second ends in a box; 240 keys three steps.
TEST_P(AttentionHeadDimTest, EveryOptionOfTheFormOf192) {
  if (is_blackwell()) GTEST_SKIP() << "it has none";
  const AttentionProblem full = {.heads = 2,
                                 .kv_heads = 1,
                                 .q_len = 150,
                                 .kv_len = 240,
                                 .head_dim = 192,
                                 .causal = true,
                                 .has_lse = true,
                                 .kernel = "k6"};
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    const auto base = with(full, [&](auto& p) { p.dtype = dtype; });
    check(with(base, [](auto& p) { p.has_sink = true, p.kv_len = 113; }));
    check(with(base, [](auto& p) { p.causal = false, p.window_left = 30, p.window_right = 120; }));
    check(with(base, [](auto& p) { p.causal = false, p.softcap = 4, p.scale = 0.3; }));
    check(packed(with(base, [](auto& p) { p.window_left = 130, p.head_dim = 160; }),
                 {130, 0, 3, 20}, {240, 5, 40, 10}));
  }
  check(with(full, [](auto& p) { p.kv_len = 0; }));
}

// The same of both forms of 96, whose second box of columns is used by half: 340 keys are three or
// four steps.
TEST_P(AttentionHeadDimTest, EveryOptionOfTheFormsOf96) {
  if (is_blackwell()) GTEST_SKIP() << "it has none";
  const AttentionProblem full = {.heads = 2,
                                 .kv_heads = 1,
                                 .q_len = 150,
                                 .kv_len = 340,
                                 .head_dim = 96,
                                 .causal = true,
                                 .has_lse = true};
  for (const auto& [kernel, dtype] :
       {std::pair{"k6", DType::kBF16}, {"k6", DType::kF16}, {"k6_short", DType::kF16}}) {
    const auto base = with(full, [&](auto& p) { p.dtype = dtype, p.kernel = kernel; });
    check(with(base, [](auto& p) { p.has_sink = true, p.kv_len = 213; }));
    check(with(base, [](auto& p) { p.causal = false, p.window_left = 30, p.window_right = 120; }));
    check(with(base, [](auto& p) { p.causal = false, p.softcap = 4, p.scale = 0.3; }));
    check(with(base, [](auto& p) { p.value_dim = 72, p.kv_heads = 2; }));
    check(packed(with(base, [](auto& p) { p.window_left = 130, p.head_dim = 80; }), {130, 0, 3, 20},
                 {340, 5, 40, 10}));
  }
  check(with(full, [](auto& p) { p.kv_len = 0; }));
}

TEST_P(AttentionHeadDimTest, CapturedInAGraph) {
  const AttentionProblem p = {
      .heads = 2, .kv_heads = 2, .head_dim = 72, .causal = true, .has_lse = true};
  AttentionRun(*device_, packed(p, {70, 20}, {70, 20}))
      .check([](const Attention& attention, const AttentionArguments& arguments,
                const device::Stream& stream) {
        const device::Graph graph =
            device::Graph::capture(stream, [&] { attention.run(arguments); });
        graph.launch(stream);
        graph.launch(stream);
      });
}

class AttentionPaddingTest : public ::testing::Test {
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

const AttentionProblem kLong = {
    .batch = 4, .heads = 16, .kv_heads = 16, .q_len = 4096, .kv_len = 4096, .head_dim = 112};

TEST_F(AttentionPaddingTest, ThePlanSaysWhatItCosts) {
  const AttentionPlan plan = make_attention_plan(h200(), kLong);
  EXPECT_EQ(plan.padded_head_dim, 128);
  EXPECT_EQ(plan.launches.size(), 1u);
  EXPECT_THAT(plan.to_string(), HasSubstr("head_dim 112 as 128: 1.14 times the products"));
  EXPECT_EQ(plan.flops, 4.0 * 112 * 4 * 16 * 4096 * 4096);

  const auto packed_problem =
      with(kLong, [](auto& p) { p.is_packed = true, p.total_q = p.total_kv = 4 * 4096; });
  const AttentionPlan packed_plan = make_attention_plan(h200(), packed_problem);
  EXPECT_THAT(packed_plan.to_string(), HasSubstr("products, results trimmed from the workspace"));
  EXPECT_EQ(packed_plan.launches.at(1).entry, "attention_trim");
  EXPECT_GE(packed_plan.workspace_bytes, 4u * 4096 * 16 * 128 * 2);
}

// Costs grow by the padding, and by what is trimmed: at 224 K6 writes rows and K5 boxes.
TEST_F(AttentionPaddingTest, CostsHavePaddingAndTrimming) {
  const auto cost = [&](const char* name, const AttentionProblem& p) {
    return attention_cost_us(find_attention_kernel(name), h200(), p);
  };
  const auto wide = with(kLong, [](auto& p) { p.head_dim = 224; });
  const auto native = with(kLong, [](auto& p) { p.head_dim = 256; });
  EXPECT_NEAR(cost("k5", wide), cost("k5", native), 1e-6 * cost("k5", native));
  const double trim = trim_cost_us(find_attention_kernel("k6"), wide);
  EXPECT_NEAR(cost("k6", wide), cost("k6", native) + trim, 1e-6 * cost("k6", native));
  const double bytes = 2.0 * 4 * 4096 * 16 * 256 * 2;  // of padded results, written and read
  EXPECT_NEAR(trim, 2 + bytes / 4.8e6, 0.02 * trim);   // 4.8 TB/s
  EXPECT_EQ(trim_cost_us(find_attention_kernel("k5"), wide), 0);
}

// Hopper has forms of 96 and 192: no size is computed as 128 or 256 that fits into one of them, and
// they end rows themselves.
TEST_F(AttentionPaddingTest, ByTheFormsOf96And192) {
  for (const bool is_packed : {false, true}) {
    for (const std::int64_t head_dim : {72, 80, 96, 136, 160, 192}) {
      const int width = head_dim <= 96 ? 96 : 192;
      const AttentionPlan plan = make_attention_plan(h200(), with(kLong, [&](auto& p) {
                                                       p.head_dim = head_dim,
                                                       p.is_packed = is_packed;
                                                       if (is_packed)
                                                         p.total_q = p.total_kv = 4 * 4096;
                                                     }));
      EXPECT_EQ(plan.kernel, "k6");
      EXPECT_EQ(plan.padded_head_dim, width);
      ASSERT_EQ(plan.launches.size(), 1u) << "nothing is trimmed";
      EXPECT_EQ(plan.launches[0].entry, fmt::format("attention_k6_bf16_d{}", width));
    }
  }
  for (const auto& [head_dim, width] : {std::pair{104, 128}, {200, 256}}) {
    const AttentionPlan plan =
        make_attention_plan(h200(), with(kLong, [&](auto& p) { p.head_dim = head_dim; }));
    EXPECT_EQ(plan.padded_head_dim, width);
  }
}

TEST_F(AttentionPaddingTest, RefusesWhatItCannotPad) {
  const auto at = [](std::int64_t head_dim, const char* kernel = "auto") {
    return with(kLong, [&](auto& p) { p.head_dim = head_dim, p.kernel = kernel; });
  };
  EXPECT_THAT(text(h200(), at(100)), HasSubstr("head_dim = 100; expected a multiple of 8"));
  EXPECT_THAT(text(h200(), at(264)),
              AllOf(HasSubstr("k5, k7, k7_pages, k8: exists for head_dim 64, 128, 256"),
                    HasSubstr("k6, k6_pages: exists for head_dim 64, 96, 128, 192, 256")));
  EXPECT_THAT(text(b200(), at(520)), HasSubstr("sm100_c: exists for head_dim 64, 128, 256, 512"));
  EXPECT_THAT(text(h200(), at(96, "k4_2")), HasSubstr("exists for head_dim 64, 128, 256"));
  EXPECT_THAT(text(h200(), at(96, "k7")),
              HasSubstr("rounds operands of head_dim 64, 128, 256 alone; give it padded ones"));
  EXPECT_THAT(text(h200(), with(at(72), [](auto& p) { p.dtype = DType::kF8_E4M3; })),
              HasSubstr("head_dim = 72; expected a multiple of 16 for operands of e4m3"));
}

}  // namespace
}  // namespace tilewright::ops
