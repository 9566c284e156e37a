// What a plan of sparse attention says, and what it refuses, by arithmetic alone.
#include "ops/sparse_attention/plan.h"

#include "ops/sparse_attention/problem.h"
#include "tests/ops/gpu_infos.h"
#include "tests/reference/inputs.h"

#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright::ops {
namespace {

using reference::expect_invalid;
using testing::HasSubstr;

SparseAttentionProblem flash(std::int64_t heads, std::int64_t batch = 128) {
  return {.batch = batch,
          .q_len = 2,
          .heads = heads,
          .window = {.cache = {.page_size = 256, .num_pages = 1000}, .topk = 128},
          .compressed = {.cache = {.page_size = 64, .num_pages = 9000}, .topk = 512}};
}

std::string candidates(const Plan& plan) {
  std::string text;
  for (const Candidate& c : plan.candidates) text += c.name + ": " + c.reason + "\n";
  return text;
}

TEST(SparseAttentionProblemTest, NamesFieldValueAndRule) {
  using Change = std::function<void(SparseAttentionProblem&)>;
  const std::vector<std::pair<Change, std::vector<std::string>>> cases = {
      {[](auto& p) { p.batch = -1; }, {"batch = -1", "0 to"}},
      {[](auto& p) { p.batch = p.q_len = 1 << 20; }, {"q_len = 1048576", "2^31"}},
      {[](auto& p) { p.heads = 0; }, {"heads = 0", "1 to 128"}},
      {[](auto& p) { p.heads = 129; }, {"heads = 129", "1 to 128"}},
      {[](auto& p) { p.scale = -1; }, {"scale = -1", "> 0"}},
      {[](auto& p) { p.scale = 1e-50; }, {"scale = 1e-50", "fp32 holds as a normal number"}},
      {[](auto& p) { p.scale = 1e300; }, {"scale = 1e+300", "fp32 holds"}},
      {[](auto& p) { p.window.topk = -1; }, {"window.topk = -1"}},
      {[](auto& p) { p.window.topk = p.compressed.topk = 0; }, {"at least one list"}},
      {[](auto& p) { p.compressed.index_stride = 7; }, {"compressed.index_stride = 7", "512"}},
      {[](auto& p) { p.window.cache.page_size = 0; }, {"page_size = 0", "1 to"}},
      {[](auto& p) { p.window.cache.num_pages = 1 << 30; },
       {"window.cache.num_pages = 1073741824", "2^31"}},
      {[](auto& p) { p.window.cache.page_stride_bytes = 256 * 584 + 8; }, {"149512", "149504"}},
      {[](auto& p) { p.window.cache.format = NumberFormat::kBf16; }, {"bf16", "fp8"}},
      {[](auto& p) {
         p.q_strides = {1, 1, 1};
       },
       {"q_strides = 1, 1, 1", "multiples of 8"}},
      {[](auto& p) { p.head_dim = 192; }, {"head_dim = 192", "512", "576"}},
      {[](auto& p) {
         p.head_dim = 576;
         p.window.cache.format = p.compressed.cache.format = NumberFormat::kNvfp4;
       },
       {"window.cache.format = nvfp4", "bf16 or fp8 for rows of 576"}},
      {[](auto& p) {
         p.head_dim = 576;
         p.window.cache.page_stride_bytes = 256 * 584;
       },
       {"page_stride_bytes = 149504", "167936", "656 bytes"}},
      {[](auto& p) { p.kernel = "fast"; }, {"kernel \"fast\"", "naive", "few_heads", "wgmma"}},
  };
  for (const auto& [change, parts] : cases) {
    SparseAttentionProblem p = flash(64);
    change(p);
    expect_invalid([&] { make_sparse_plan(h200(), p); }, parts);
  }
}

TEST(SparseAttentionPlanTest, CountsWorkAndBytes) {
  const SparseAttentionPlan plan = make_sparse_plan(h200(), flash(64)).plan;
  EXPECT_EQ(plan.flops, 256.0 * 640 * 64 * 2 * 1024);
  EXPECT_EQ(plan.bytes, 256.0 * (640 * 584 + 64 * 512 * 4));
  EXPECT_EQ(plan.problem.window.cache.page_stride_bytes, 149760);  // 260 * 576
  EXPECT_EQ(plan.problem.q_strides.batch, 2 * 64 * 512);
}

TEST(SparseAttentionPlanTest, CountsRowsOf576) {
  SparseAttentionProblem p = flash(64);
  p.head_dim = 576;
  const SparseAttentionPlan plan = make_sparse_plan(h200(), p).plan;
  EXPECT_EQ(plan.flops, 256.0 * 640 * 64 * 2 * 1088);
  EXPECT_EQ(plan.bytes, 256.0 * (640 * 656 + 64 * 1088 * 2));
  EXPECT_EQ(plan.problem.window.cache.page_stride_bytes, 256 * 656);
  EXPECT_EQ(plan.problem.q_strides.batch, 2 * 64 * 576);
  EXPECT_EQ(plan.problem.out_strides.batch, 2 * 64 * 512);
  EXPECT_DOUBLE_EQ(*plan.problem.scale, 1.0 / 24);
  EXPECT_THAT(plan.to_string(), HasSubstr("heads 64 of 576;"));
}

TEST(SparseAttentionPlanTest, TakesTheKernelOfRowsOf576) {
  for (const std::int64_t heads : {1, 32, 64, 65, 128}) {
    SparseAttentionProblem p = flash(heads);
    p.head_dim = 576;
    const SparseAttentionPlan plan = make_sparse_plan(h200(), p).plan;
    EXPECT_EQ(plan.launches.at(1).entry,
              heads > 64 ? "sparse_decode_wgmma_pair_fp8_mla" : "sparse_decode_wgmma_fp8_mla");
    if (heads <= 32) {
      EXPECT_THAT(candidates(plan), HasSubstr("few_heads: is for rows of 512"));
    }
    for (const std::int64_t q_len : {1, 2}) {
      p.q_len = q_len;
      const SparseAttentionPlan other = make_sparse_plan(b200(), p).plan;
      const bool has_unions = q_len > 1 && heads > 32 && heads <= 64;
      EXPECT_EQ(other.kernel, has_unions ? "pair_tiles" : "pair") << heads;
      EXPECT_EQ(other.launches.at(has_unions ? 2 : 1).entry, "sparse_decode_pair_fp8_mla");
    }
  }
  EXPECT_EQ(make_sparse_plan(b200(), sparse_prefill_problem(40, 128, 4096, 512, 576))
                .plan.launches.at(1)
                .entry,
            "sparse_decode_pair_bf16_mla");
  const SparseAttentionPlan plan =
      make_sparse_plan(h200(), sparse_prefill_problem(40, 128, 4096, 512, 576)).plan;
  EXPECT_EQ(plan.launches.at(1).entry, "latent_lists_bf16_v512_qv");
  EXPECT_EQ(plan.launches.at(1).cluster, 1u);
  for (const std::int64_t rows : {8192, 131072}) {
    EXPECT_EQ(
        make_sparse_plan(h200(), sparse_prefill_problem(4096, 64, rows, 2048, 576)).plan.kernel,
        "latent");
  }
  const SparseAttentionPlan odd =
      make_sparse_plan(h200(), sparse_prefill_problem(40, 96, 4096, 512, 576)).plan;
  EXPECT_EQ(odd.launches.at(1).entry, "sparse_decode_wgmma_pair_bf16_mla");
  EXPECT_THAT(candidates(odd), HasSubstr("latent: is for multiples of 64 heads"));
}

TEST(SparseAttentionPlanTest, TakesTheKernelOfTheHeads) {
  for (const std::int64_t heads : {1, 8, 16}) {
    const SparseAttentionPlan plan = make_sparse_plan(h200(), flash(heads)).plan;
    EXPECT_EQ(plan.kernel, "few_heads") << heads;
    EXPECT_EQ(plan.head_slots, std::max<std::int64_t>(heads, 8));
  }
  for (const std::int64_t heads : {32, 64, 65, 128}) {
    const SparseAttentionPlan plan = make_sparse_plan(h200(), flash(heads)).plan;
    EXPECT_EQ(plan.kernel, "wgmma") << heads;
    EXPECT_EQ(plan.head_slots, heads > 64 ? 128 : 64);
    EXPECT_EQ(plan.launches.at(1).cluster, heads > 64 ? 2u : 1u);
  }
  const std::string text = make_sparse_plan(h200(), flash(12)).plan.to_string();
  EXPECT_THAT(text, HasSubstr("padded to 16"));
  EXPECT_THAT(text, HasSubstr("not naive: it is expected to take"));
}

TEST(SparseAttentionPlanTest, SchedulesUnlessQueriesAreManyOrMaximaWanted) {
  EXPECT_TRUE(make_sparse_plan(h200(), flash(64)).plan.has_schedule);
  EXPECT_EQ(make_sparse_plan(h200(), flash(64)).plan.launches.size(), 2u);
  // Of few queries, each of many parts, another launch merges.
  EXPECT_EQ(make_sparse_plan(h200(), flash(64, 8)).plan.launches.size(), 3u);
  const SparseAttentionPlan many = make_sparse_plan(h200(), flash(64, 5000)).plan;
  EXPECT_FALSE(many.has_schedule);
  EXPECT_EQ(many.launches.size(), 1u);
  EXPECT_EQ(many.workspace_bytes, 0u);
  SparseAttentionProblem prefill = sparse_prefill_problem(40, 64, 4096, 512);
  EXPECT_TRUE(make_sparse_plan(h200(), prefill).plan.has_schedule);
  prefill.has_max_logits = true;
  const SparseAttentionPlan plan = make_sparse_plan(h200(), prefill).plan;
  EXPECT_FALSE(plan.has_schedule);
  EXPECT_EQ(plan.groups, 40);
}

TEST(SparseAttentionPlanTest, TakesTheKernelOfTheHeadsOnBlackwell) {
  for (const int capability : {100, 103}) {
    device::DeviceInfo device = b200();
    device.compute_capability = capability;
    for (const std::int64_t heads : {1, 8, 16}) {
      const SparseAttentionPlan plan = make_sparse_plan(device, flash(heads)).plan;
      EXPECT_EQ(plan.kernel, "few_heads") << heads;
    }
    for (const std::int64_t heads : {33, 64, 65, 128}) {
      for (const std::int64_t q_len : {1, 3}) {
        SparseAttentionProblem p = flash(heads);
        p.q_len = q_len;
        const SparseAttentionPlan plan = make_sparse_plan(device, p).plan;
        const bool has_unions = heads <= 64 && q_len > 1;
        EXPECT_EQ(plan.kernel, has_unions ? "pair_tiles" : "pair") << heads;
        EXPECT_EQ(plan.head_slots, has_unions ? 64 : 128);
        EXPECT_EQ(plan.groups, 74);
        EXPECT_EQ(plan.launches.size(), has_unions ? 4u : 3u);
        EXPECT_EQ(plan.launches.at(has_unions ? 2 : 1).cluster, 2u);
        EXPECT_THAT(candidates(plan), HasSubstr("wgmma: is for sm_90a"));
        EXPECT_THAT(candidates(plan), HasSubstr("latent: is for sm_90a"));
        EXPECT_THAT(candidates(plan), HasSubstr("pair_tiles"));
      }
    }
  }
  EXPECT_THAT(candidates(make_sparse_plan(h200(), flash(64)).plan),
              HasSubstr("pair: is for sm_100f"));
}

TEST(SparseAttentionPlanTest, SaysWhyItDoesNotUniteLists) {
  const auto reasons = [](const std::function<void(SparseAttentionProblem&)>& change) {
    SparseAttentionProblem p = flash(64);
    change(p);
    return candidates(make_sparse_plan(b200(), p).plan);
  };
  EXPECT_THAT(reasons([](auto& p) { p.heads = 65; }),
              HasSubstr("pair_tiles: is for at most 64 heads"));
  EXPECT_THAT(
      reasons([](auto& p) { p.q_len = 1; }),
      HasSubstr("pair_tiles: takes several queries of a sequence at a time, and there is one"));
  EXPECT_THAT(reasons([](auto& p) { p.heads = 20; }),
              HasSubstr("pair_tiles: pays if neighbouring queries share most entries"));
  EXPECT_THAT(reasons([](auto& p) { p.compressed.topk = 4097; }),
              HasSubstr("pair_tiles: unites lists of 2 queries with at most 8192 entries"));
}

TEST(SparseAttentionPlanTest, RefusesOtherDevicesWithReasons) {
  device::DeviceInfo a100 = h200();
  a100.compute_capability = 80;
  try {
    make_sparse_plan(a100, flash(64));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
    EXPECT_THAT(error.what(), HasSubstr("naive, few_heads, pair, pair_tiles: is for sm_100f"));
    EXPECT_THAT(error.what(), HasSubstr("wgmma, latent: is for sm_90a"));
    EXPECT_THAT(error.what(), HasSubstr("Hopper or Blackwell"));
  }
}

}  // namespace
}  // namespace tilewright::ops
