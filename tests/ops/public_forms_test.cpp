// What the public headers say of problems before there is a device: complete ones, their work, the
// kernels to choose from, how operands become e4m3.
#include "tilewright/attention_decode.h"
#include "tilewright/attention_prepare.h"

#include "ops/attention/kernels.h"
#include "ops/attention/plan.h"
#include "tests/ops/gpu_infos.h"

#include <gmock/gmock.h>

namespace tilewright::ops {
namespace {

using testing::ElementsAre;

const AttentionProblem kCausal = {
    .batch = 3, .heads = 4, .kv_heads = 2, .q_len = 5, .kv_len = 9, .head_dim = 64, .causal = true};

TEST(CountWork, OfAttentionCountsWhatTheMaskLeaves) {
  const Work work = count_work(kCausal);
  EXPECT_EQ(work.flops, 3 * 4 * 4.0 * 64 * (5 + 6 + 7 + 8 + 9));
  EXPECT_EQ(work.bytes, 2.0 * 3 * 64 * (2 * 5 * 4 + 2 * 9 * 2));
  const AttentionPlan plan = make_attention_plan(h200(), kCausal);
  EXPECT_EQ(plan.flops, work.flops);
  EXPECT_EQ(plan.bytes, work.bytes);
}

TEST(CountWork, OfDecodeIsThatOfOneSequence) {
  const AttentionDecodeProblem p = complete(AttentionDecodeProblem{.kv_dtype = DType::kF8_E4M3,
                                                                   .q_len = 2,
                                                                   .heads = 8,
                                                                   .kv_heads = 2,
                                                                   .head_dim = 128,
                                                                   .max_len = 100,
                                                                   .window_left = 10});
  // Query 0 sees keys 27 to 37, query 1 28 to 38: 12 keys and values of a byte in all.
  const Work work = count_work(p, 39);
  EXPECT_EQ(work.flops, 4.0 * 128 * 8 * (11 + 11));
  EXPECT_EQ(work.bytes, 2.0 * 12 * 2 * 128 + 2 * 2.0 * 2 * 8 * 128);
}

TEST(CountWork, FloorIsTheSlowerOfMemoryAndTensorCores) {
  Plan plan;
  plan.flops = 6e12;
  plan.bytes = 2e9;
  EXPECT_EQ(plan.floor_us(4e12, 600e12), 10000);
  EXPECT_EQ(plan.floor_us(100e9, 600e12), 20000);
}

TEST(AttentionKernels, ListsEveryNameThatAProblemCanHave) {
  std::vector<std::string> in_e4m3, in_pages;
  for (const AttentionKernelInfo& kernel : tilewright::attention_kernels()) {
    EXPECT_FALSE(kernel.idea.empty()) << kernel.name;
    const device::DeviceInfo device = kernel.compute_capability == 90 ? h200() : b200();
    AttentionProblem p = kCausal;
    p.kernel = kernel.name;
    const bool is_e4m3_only =
        kernel.name == "sm100_h" || kernel.name == "sm100_pages_e4m3" || kernel.name == "k7_pages";
    if (is_e4m3_only) p.dtype = DType::kF8_E4M3;
    p.head_dim = kernel.name == "sm100_f" || kernel.name == "k6_long" ? 256 : 64;
    if (kernel.name == "k6_long") p.head_dim = 128;
    EXPECT_EQ(make_attention_plan(device, p).kernel, kernel.name);
    if (kernel.computes_in_e4m3) in_e4m3.push_back(kernel.name);
    if (kernel.reads_pages) in_pages.push_back(kernel.name);
  }
  EXPECT_THAT(in_e4m3,
              ElementsAre("k7", "k7_short", "k7_pages", "k8", "sm100_h", "sm100_pages_e4m3"));
  EXPECT_THAT(in_pages, ElementsAre("k6_pages", "k7_pages", "sm100_pages", "sm100_pages_e4m3"))
      << "the others are rungs of the ladder";
  EXPECT_EQ(tilewright::attention_kernels().size(), all_attention_kernels().size());
}

TEST(PrepareProblem, OfAPlanIsWhatItsFirstLaunchesDo) {
  const auto plan = [](const char* kernel) {
    AttentionProblem p = kCausal;
    p.kernel = kernel;
    return make_attention_plan(h200(), p);
  };
  EXPECT_FALSE(prepare_problem(plan("k6")).has_value());
  const AttentionPrepareProblem plain = prepare_problem(plan("k7")).value();
  EXPECT_EQ(plain.scales, ScaleSharing::kHead);
  EXPECT_FALSE(plain.is_rotated);
  const AttentionPrepareProblem rotated = prepare_problem(plan("k8")).value();
  EXPECT_EQ(rotated.scales, ScaleSharing::kBlock);
  EXPECT_TRUE(rotated.is_rotated);
  EXPECT_EQ(rotated.v_layout, Fp8ValueLayout::kColumns);
}

TEST(PrepareProblem, LeadsToTheAttentionOfItsResult) {
  const AttentionProblem source = complete(kCausal);
  const Fp8Options options = {.scales = ScaleSharing::kBlock, .v_layout = Fp8ValueLayout::kRows};
  const AttentionPrepareProblem prepare = prepare_problem(source, options, true);
  EXPECT_EQ(prepare.q_strides.batch, source.q_strides.batch);
  EXPECT_EQ(prepare.scales, options.scales);
  const AttentionProblem p = complete(prepared_problem(source, options));
  EXPECT_EQ(p.dtype, DType::kF8_E4M3);
  EXPECT_EQ(p.out_dtype, DType::kBF16);
  EXPECT_EQ(p.fp8.v_layout, options.v_layout);
  EXPECT_EQ(p.causal, true);
  EXPECT_FALSE(prepare_problem(make_attention_plan(h200(), p)).has_value()) << "it is e4m3 already";
}

}  // namespace
}  // namespace tilewright::ops
