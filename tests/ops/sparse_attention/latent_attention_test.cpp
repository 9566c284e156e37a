// Latent attention on every device against the float64 reference, under all checks of the
// simulator: pages and none, every form of kernel, ragged lengths, split sequences.
#include "ops/latent_attention/plan.h"
#include "tests/ops/gpu_infos.h"
#include "tests/ops/operator_test.h"
#include "tests/ops/sparse_attention/latent_case.h"

namespace tilewright::ops {
namespace {

class LatentAttentionTest : public ChipTest<LatentAttentionTest> {
 protected:
  /// With every kernel of the device that takes it.
  static void check(LatentCase c) {
    const LatentAttentionPlan plan = plan_latent_attention(*device_, c.problem);
    for (const Candidate& candidate : plan.candidates) {
      if (!candidate.is_possible) continue;
      c.problem.kernel = candidate.name;
      LatentRun run(*device_, c);
      SCOPED_TRACE(run.plan().to_string());
      run.check();
    }
  }
  static LatentCase mla(std::int64_t q_len, std::int64_t heads,
                        const std::vector<std::int32_t>& lengths) {
    const auto batch = std::ssize(lengths);
    LatentCase c = {.problem = mla_decode_problem(batch, q_len, heads, 4 * batch + 1, 4),
                    .lengths = lengths,
                    .is_mla = true};
    c.problem.has_lse = true;
    return c;
  }
  /// k and v in tensors of their own.
  static LatentCase apart(std::int64_t q_len, std::int64_t heads, std::int64_t kv_heads,
                          const std::vector<std::int32_t>& lengths) {
    return {.problem = {.batch = std::ssize(lengths),
                        .q_len = q_len,
                        .heads = heads,
                        .kv_heads = kv_heads,
                        .max_len = 140,
                        .has_lse = true},
            .lengths = lengths};
  }
};
TILEWRIGHT_ON_EVERY_CHIP(LatentAttentionTest);

TEST_P(LatentAttentionTest, RowsOf576) {
  check(mla(1, 64, {70, 129}));
  check(mla(1, 128, {150}));
  check(mla(1, 16, {1, 64, 0}));
  check(mla(1, 20, {65}));
}
// Queries of a sequence see one key less each; a tile has rows of several of them, and of none.
TEST_P(LatentAttentionTest, SeveralQueries) {
  check(mla(2, 40, {3, 130}));
  LatentCase c = mla(3, 128, {2});  // four CTAs a tile, and a second tile
  c.problem.positive_empty_lse = c.problem.has_sink = true;
  check(c);
}
// Each kernel of a CTA and of a pair; pages of a sequence that end anywhere.
TEST_P(LatentAttentionTest, EveryFormAndType) {
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    for (const std::int64_t dims : {256, 512}) {
      for (const bool has_qv : {true, false}) {
        for (LatentCase c : {apart(2, 6, 2, {0, 5}), apart(1, 66, 1, {70})}) {
          c.problem.dtype = dtype;
          c.problem.value_dim = dims;
          c.problem.has_qv = has_qv;
          c.problem.has_sink = has_qv;
          check(c);
        }
      }
    }
  }
}
TEST_P(LatentAttentionTest, PagesOfEverySize) {
  for (const std::int64_t page : {8, 16, 32, 128}) {
    LatentCase c = apart(1, page == 16 ? 66 : 5, 1, {130, 9});
    LatentAttentionProblem& p = c.problem;
    p.max_len = 0;
    p.page_size = page;
    p.num_pages = 30;
    p.max_pages = 144 / page + 1;
    p.table_stride = p.max_pages + 3;
    p.has_qv = page != 32;
    p.value_dim = page < 32 ? 256 : 512;
    c.lacks_page = true;
    check(c);
  }
}
TEST_P(LatentAttentionTest, StridesLengthsAndGraphs) {
  LatentCase c = apart(2, 6, 2, {-3, 1 << 30});
  LatentAttentionProblem& p = c.problem;
  p.causal = false;
  p.scale = 0.03;
  p.max_len = 67;
  // Heads outside, queries inside; gaps everywhere.
  p.q_strides = {2 * 6 * 72, 72, 2 * 72};
  p.qv_strides = {2 * 6 * 520, 520, 2 * 520};
  p.out_strides = {2 * 6 * 528, 6 * 528, 528};
  p.lse_strides = {12, 6, 1};
  p.k_strides = {67 * 2 * 80 + 8, 80, 67 * 80};
  p.v_strides = {67 * 2 * 536, 2 * 536, 536};
  c.has_graph = true;
  check(c);
}
// Forms beside DeepSeek-V3's: a tile of several queries, a sequence in parts that are merged.
TEST_P(LatentAttentionTest, OtherFormsInParts) {
  for (const auto& [dims, has_qv] : {std::pair{256, true}, {256, false}, {512, false}}) {
    LatentCase c = apart(2, 40, 1, {131, 3});
    LatentAttentionProblem& p = c.problem;
    p.value_dim = dims;
    p.has_qv = has_qv;
    p.has_sink = true;
    const std::int64_t row = dims + 64;
    p.k_strides = p.v_strides = {140 * row, row, row};
    p.q_strides = p.qv_strides = {2 * 40 * row, 40 * row, row};
    check(c);
  }
}
TEST_P(LatentAttentionTest, NothingToDo) {
  const LatentAttentionPlan plan =
      plan_latent_attention(*device_, {.batch = 0, .heads = 4, .max_len = 10});
  EXPECT_TRUE(plan.launches.empty());
  EXPECT_EQ(plan.workspace_bytes, 0u);
  check(apart(1, 3, 1, {0, 0}));
}
// So many tiles that groups take whole ones; and long sequences, split.
TEST_P(LatentAttentionTest, Large) {
  if (is_simulator()) GTEST_SKIP() << "too large for the simulator";
  std::vector<std::int32_t> lengths;
  for (int i = 0; i < 4500; ++i) lengths.push_back(i * 37 % 70);
  check(mla(1, 9, lengths));  // so many that there is no schedule
  LatentCase c = mla(2, 16, {20000, 130, 7000});
  c.problem.max_pages = 320;
  c.problem.num_pages = 500;
  check(c);
}

void expect_refused(const LatentAttentionProblem& problem, const std::string& text) {
  try {
    complete(problem);
    ADD_FAILURE() << "not refused: " << text;
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
  }
}
TEST(LatentAttentionProblem, WhatMakesNoSenseIsRefused) {
  const LatentAttentionProblem right = {.heads = 4, .max_len = 10};
  const auto with = [&](auto change) {
    LatentAttentionProblem p = right;
    change(p);
    return p;
  };
  EXPECT_EQ(complete(right).scale, std::pow(576.0, -0.5));
  EXPECT_EQ(complete(with([](auto& p) { p.has_qv = false; })).scale, 0.125);
  expect_refused(with([](auto& p) { p.value_dim = 128; }), "value_dim = 128");
  expect_refused(with([](auto& p) { p.dtype = DType::kF32; }), "dtype = F32");
  expect_refused(with([](auto& p) { p.kv_heads = 3; }), "a multiple of kv_heads = 3");
  expect_refused(with([](auto& p) { p.page_size = 24, p.max_len = 0; }), "page_size = 24");
  expect_refused(with([](auto& p) { p.page_size = 64; }), "max_len = 10");
  expect_refused(with([](auto& p) { p.num_pages = 2; }), "num_pages = 2");
  expect_refused(with([](auto& p) { p.heads = 0; }), "heads = 0");
  expect_refused(with([](auto& p) { p.scale = -1; }), "scale = -1");
  expect_refused(with([](auto& p) { p.q_len = std::int64_t{1} << 30; }), "q_len = 1073741824");
  expect_refused(with([](auto& p) { p.v_strides.row = 515; }), "v_strides = 0, 515, 0");
  expect_refused(with([](auto& p) { p.batch = 1 << 20; }), "batch = 1048576");
}

TEST(LatentAttentionPlan, TakesTheKernelOfTheChip) {
  const auto planned = [](const device::DeviceInfo& device, auto change) {
    LatentAttentionProblem p = mla_decode_problem(64, 2, 64, 9000, 100);
    change(p);
    return make_latent_plan(device, p).plan;
  };
  const LatentAttentionPlan pair = planned(b200(), [](auto&) {});
  EXPECT_EQ(pair.kernel, "pair");
  EXPECT_EQ(pair.tile_rows, 128);
  EXPECT_EQ(pair.groups, 74);
  EXPECT_EQ(pair.launches.at(1).entry, "latent_tensor_pair_bf16_v512_qv");
  EXPECT_EQ(pair.launches.at(1).cluster, 2u);
  EXPECT_EQ(planned(h200(), [](auto&) {}).kernel, "wgmma");
}

// No form is left with scalar products where keys are many.
TEST(LatentAttentionPlan, EveryFormHasTensorCores) {
  const auto attends = [](const device::DeviceInfo& device, DType dtype, std::int64_t value_dim,
                          bool has_qv) {
    const LatentAttentionProblem p = {.dtype = dtype,
                                      .batch = 8,
                                      .heads = 16,
                                      .value_dim = value_dim,
                                      .has_qv = has_qv,
                                      .max_len = 8192};
    return make_latent_plan(device, p).plan.launches.at(1).entry;
  };
  for (const std::int64_t dims : {256, 512}) {
    for (const bool has_qv : {true, false}) {
      const std::string form = fmt::format("v{}{}", dims, has_qv ? "_qv" : "");
      EXPECT_EQ(attends(h200(), DType::kBF16, dims, has_qv), "latent_bf16_" + form);
      EXPECT_EQ(attends(b200(), DType::kBF16, dims, has_qv), "latent_tensor_pair_bf16_" + form);
      EXPECT_EQ(attends(b200(), DType::kF16, dims, has_qv), "latent_tensor_pair_f16_" + form);
    }
  }
}

}  // namespace
}  // namespace tilewright::ops
