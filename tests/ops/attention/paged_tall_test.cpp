// Attention over keys in pages by tiles of more rows, which plan() takes for many queries alone:
// here for few, under all checks of the simulator.
#include "ops/attention/kernels.h"
#include "ops/attention/plan.h"
#include "tests/ops/attention/paged_case.h"
#include "tests/ops/gpu_infos.h"

namespace tilewright::ops {
namespace {

constexpr const char* kEntry = "attention_k6_pages_bf16_d128";

class AttentionTallTest : public ChipTest<AttentionTallTest> {
 protected:
  void SetUp() override {
    ChipTest<AttentionTallTest>::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    if (is_blackwell()) GTEST_SKIP() << "Blackwell has no such form";
    forces_tall_tiles() = true;
  }
  void TearDown() override {
    forces_tall_tiles() = false;
    ChipTest<AttentionTallTest>::TearDown();
  }
  static void check(const PagedCase& c) { PagedRun(*device_, c).check(); }
};
TILEWRIGHT_ON_EVERY_CHIP(AttentionTallTest);

// Without pages in one piece by a thread, gathered, and in parts by warps. Rings go around, and the
// last tiles of 192 rows have 1, 64, 65, 128 and 129 of them.
TEST_P(AttentionTallTest, PagesOfAnySize) {
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    for (const std::int64_t page_size : {0, 1, 4, 7, 16, 64, 80, 128}) {
      SCOPED_TRACE(fmt::format("{} pages of {}", to_string(dtype), page_size));
      PagedCase c = mixed(page_size, 128);
      c.problem.dtype = dtype;
      c.problem.kv_len = 500;
      c.problem.heads = 1;
      c.q_rooms = {193, 1, 64, 65, 128, 129, 0, 400};
      c.kv_lengths = {500, 131, 64, 81, 160, 400, 20, 479};
      check(c);
    }
  }
}
TEST_P(AttentionTallTest, EveryOption) {
  for (const int option : {0, 1, 2, 3, 4}) {
    for (const std::int64_t page_size : {1, 16}) {
      SCOPED_TRACE(fmt::format("option {}, pages of {}", option, page_size));
      PagedCase c = mixed(page_size, option == 3 ? 104 : 128);
      AttentionProblem& p = c.problem;
      p.heads = 4, p.kv_heads = 2;
      p.causal = option != 0;
      if (option == 1) p.window_left = 33;
      if (option == 2) p.chunk = 48;
      if (option == 3) p.softcap = 5;
      p.has_sink = option == 4;
      check(c);
    }
  }
}

// As vLLM calls it: chunks of prompts over long keys.
AttentionProblem chunks(std::int64_t batch, std::int64_t queries, std::int64_t keys) {
  return {.batch = batch,
          .heads = 32,
          .kv_heads = 8,
          .q_len = queries,
          .kv_len = keys,
          .head_dim = 128,
          .causal = true,
          .is_packed = true,
          .total_q = batch * queries,
          .has_kv_lengths = true,
          .page_size = 16,
          .num_pages = batch * keys / 16,
          .max_pages = keys / 16};
}
TEST(AttentionTallPlan, IsForManyQueriesOverLongKeys) {
  const auto entry = [](const AttentionProblem& p) {
    return make_attention_plan(h200(), p).launches.at(0).entry;
  };
  const std::string tall = std::string(kEntry) + "_tall";
  EXPECT_EQ(entry(chunks(4, 2048, 8192)), tall);
  EXPECT_EQ(entry(chunks(4, 4096, 4096)), tall);
  EXPECT_EQ(entry(chunks(4, 512, 32768)), kEntry) << "the last round of tiles is longer";
  EXPECT_EQ(entry(chunks(4, 2048, 2048)), kEntry) << "few keys";
  AttentionProblem p = chunks(64, 2048, 8192);
  p.total_q = 2048 + 63;
  EXPECT_EQ(entry(p), kEntry) << "most sequences decode";
  p = chunks(32, 2048, 8192);
  p.total_q = 2 * 2048 + 30;
  EXPECT_EQ(entry(p), tall) << "two chunks beside 30 sequences that decode";
  p = chunks(44, 2048, 8192);
  p.total_q = 2 * 2048 + 42;
  EXPECT_EQ(entry(p), kEntry) << "fewer than two tiles for each sequence and key head";
  p = chunks(4, 2048, 8192);
  p.page_size = 1, p.num_pages *= 16, p.max_pages *= 16;
  EXPECT_EQ(entry(p), tall + "_rows");
  p.has_q_lengths = true;
  EXPECT_EQ(entry(p), std::string(kEntry) + "_rows") << "how many queries only the device knows";
  p = chunks(4, 2048, 8192);
  p.kv_dtype = DType::kF8_E4M3;
  EXPECT_EQ(entry(p), "attention_k6_pages_bf16_e4m3_d128");
}

}  // namespace
}  // namespace tilewright::ops
