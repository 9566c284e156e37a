// What a plan says, and what it refuses, by arithmetic alone: no device is opened.
#include "base/file.h"
#include "device/kernel_registry.h"
#include "ops/attention/plan.h"
#include "ops/attention/problem.h"
#include "tests/ops/gpu_infos.h"
#include "tests/reference/inputs.h"

#include <functional>
#include <nlohmann/json.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright::ops {
namespace {

using reference::expect_invalid;
using testing::HasSubstr;

const AttentionProblem kGood = {.batch = 2,
                                .heads = 8,
                                .kv_heads = 2,
                                .q_len = 1000,
                                .kv_len = 3000,
                                .head_dim = 128,
                                .causal = true};

AttentionProblem with(AttentionProblem p, auto change) {
  change(p);
  return p;
}

class AttentionPlanTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (device::kernel_images().empty()) GTEST_SKIP() << "built without kernels";
  }
};

TEST(AttentionProblemTest, NamesFieldValueAndRule) {
  using Change = std::function<void(AttentionProblem&)>;
  const std::vector<std::pair<Change, std::vector<std::string>>> cases = {
      {[](auto& p) { p.dtype = DType::kF32; }, {"dtype = F32", "BF16, F16 or F8_E4M3"}},
      {[](auto& p) { p.dtype = DType::kF8_E4M3, p.fp8.scales = ScaleSharing::kRow; },
       {"fp8.scales = row", "expected tensor, head or block"}},
      {[](auto& p) { p.batch = -1; }, {"batch = -1", "0 to"}},
      {[](auto& p) { p.heads = 0; }, {"heads = 0", "1 to"}},
      {[](auto& p) { p.kv_heads = 3; }, {"heads = 8", "kv_heads = 3"}},
      {[](auto& p) { p.q_len = std::int64_t{1} << 40; }, {"q_len = 1099511627776", "536870912"}},
      {[](auto& p) { p.kv_len = -5; }, {"kv_len = -5"}},
      {[](auto& p) { p.head_dim = 100; }, {"head_dim = 100", "multiple of 8", "Pad"}},
      {[](auto& p) { p.scale = -1; }, {"scale = -1", "> 0"}},
      {[](auto& p) { p.scale = NAN; }, {"scale = nan"}},
      {[](auto& p) { p.softcap = -2; }, {"softcap = -2"}},
      // Kernels have them in fp32.
      {[](auto& p) { p.scale = 1e-50; }, {"scale = 1e-50", "fp32 holds as a normal number"}},
      {[](auto& p) { p.scale = 3e38; }, {"scale = 3e+38", "fp32 holds"}},
      {[](auto& p) { p.softcap = 1e-320; }, {"softcap = ", "fp32 holds as normal numbers"}},
      {[](auto& p) { p.softcap = 1e-30, p.scale = 1e20; },
       {"softcap = 1e-30", "with scale = 1e+20"}},
      {[](auto& p) { p.softcap = 4097; }, {"softcap = 4097", "at most 4096", "0 for no cap"}},
      {[](auto& p) { p.softcap = 1e300; }, {"softcap = 1e+300", "at most 4096"}},
      {[](auto& p) { p.window_left = -2; }, {"window_left = -2", "-1 for all"}},
      {[](auto& p) { p.window_right = -7; }, {"window_right = -7"}},
      {[](auto& p) { p.total_q = 5; }, {"total_q = 5", "2000", "is_packed"}},
      {[](auto& p) { p.total_kv = 5; }, {"total_kv = 5", "6000"}},
      {[](auto& p) { p.is_packed = true, p.total_q = 999; },
       {"q_len = 1000", "at most total_q = 999"}},
      {[](auto& p) { p.is_packed = true, p.total_q = 2001, p.total_kv = 3000; },
       {"total_q = 2001", "batch = 2"}},
      {[](auto& p) { p.is_packed = true, p.total_q = 2000, p.total_kv = 6001; },
       {"total_kv = 6001", "kv_len = 3000"}},
      {[](auto& p) {
         p.q_strides = {0, 1028, 128};
       },
       {"q_strides.row = 1028", "multiple of 8"}},
      {[](auto& p) {
         p.k_strides = {8, -256, 128};
       },
       {"k_strides.row = -256"}},
      {[](auto& p) {
         p.out_strides = {1024000, 1024, 64};
       },
       {"out_strides.head = 64", "at least head_dim = 128"}},
      {[](auto& p) {
         p.v_strides = {std::int64_t{1} << 61, 256, 128};
       },
       {"v_strides = 2305843009213693952, 256, 128", "2^60 elements"}},
      {[](auto& p) { p.batch = p.heads = p.kv_heads = 1 << 30, p.q_len = 1 << 20; },
       {"batch = 1073741824", "q has at most 2^60 elements", "Lower"}}};
  for (const auto& [change, parts] : cases) {
    expect_invalid([&, &wish = change] { complete(with(kGood, wish)); }, parts);
  }
}

TEST(AttentionProblemTest, FillsInDefaults) {
  const AttentionProblem p = complete(kGood);
  EXPECT_DOUBLE_EQ(*p.scale, 1 / std::sqrt(128.0));
  EXPECT_EQ(p.total_q, 2000);
  EXPECT_EQ(p.total_kv, 6000);
  EXPECT_EQ(p.q_strides.batch, 1000 * 8 * 128);
  EXPECT_EQ(p.k_strides.row, 2 * 128);
  EXPECT_EQ(p.out_strides.head, 128);
  const AttentionProblem one = complete(with(kGood, [](auto& x) {
    x.kv_heads = 1, x.k_strides = {3000 * 136, 136, 5};
  }));
  EXPECT_EQ(one.k_strides.head, 128) << "the stride of a dimension of 1 does not matter";
}

TEST(AttentionProblemTest, CountsVisibleScoresExactly) {
  const auto count = [](const AttentionProblem& p, std::int64_t q_len, std::int64_t kv_len) {
    double visible = 0;
    for (std::int64_t i = 0; i < q_len; ++i) {
      for (std::int64_t j = 0; j < kv_len; ++j) {
        const std::int64_t x = i + kv_len - q_len;
        visible += !(p.causal && j > x) && !(p.window_left >= 0 && x - j > p.window_left) &&
                   !(p.window_right >= 0 && j - x > p.window_right) &&
                   !(p.chunk > 0 && (x < 0 || x / p.chunk != j / p.chunk));
      }
    }
    return visible;
  };
  for (const std::int64_t q_len : {0, 1, 5, 8}) {
    for (const std::int64_t kv_len : {0, 1, 3, 8, 13}) {
      for (std::int64_t left = -1; left < 15; ++left) {
        for (std::int64_t right = -1; right < 15; ++right) {
          AttentionProblem p = {.window_left = left, .window_right = right};
          for (const bool causal : {false, true}) {
            p.causal = causal;
            for (const std::int64_t chunk : {0, 1, 4, 6, 13}) {
              p.chunk = chunk;
              ASSERT_EQ(count_visible_scores(p, q_len, kv_len), count(p, q_len, kv_len))
                  << q_len << " " << kv_len << " " << left << " " << right << " " << causal << " "
                  << chunk;
            }
          }
        }
      }
    }
  }
}

TEST_F(AttentionPlanTest, IsTheSameEveryTimeAndReadsWell) {
  const AttentionPlan plan = make_attention_plan(h200(), kGood);
  EXPECT_EQ(plan.to_string(), make_attention_plan(h200(), kGood).to_string());
  EXPECT_THAT(plan.to_string(), HasSubstr("bf16, batch 2, heads 8/2, queries 1000, keys "
                                          "3000, head_dim 128, causal"));
  EXPECT_THAT(plan.to_string(), HasSubstr("attention_k6_bf16_d128"));
  EXPECT_THAT(plan.kernel, testing::StartsWith("k6"));
  EXPECT_EQ(plan.workspace_bytes, 256u);
  EXPECT_EQ(plan.flops, 4.0 * 128 * 2 * 8 * (3000.0 * 1000 - 1000 * 999 / 2));
  EXPECT_EQ(plan.bytes, 2.0 * 128 * (2 * 2000 * 8 + 2 * 6000 * 2));
}

TEST_F(AttentionPlanTest, EveryCandidateIsChosenPossibleOrExplained) {
  for (const std::int64_t head_dim : {64, 128, 256}) {
    const AttentionPlan plan =
        make_attention_plan(h200(), with(kGood, [&](auto& p) { p.head_dim = head_dim; }));
    EXPECT_EQ(plan.candidates.size(), hopper_attention_kernels().size());
    for (const Candidate& candidate : plan.candidates) {
      EXPECT_EQ(candidate.reason.empty(), candidate.name == plan.kernel) << candidate.name;
    }
  }
}

// tools/sanitize.py and tools/make_attention_readme.py go by that list.
TEST(AttentionRungs, TheListOfTheScriptsIsThatOfTheOperator) {
  const MappedFile file(TILEWRIGHT_SOURCE_DIR "/tools/attention_rungs.json");
  const auto list = nlohmann::json::parse(file.text());
  std::vector<nlohmann::json> rungs;
  for (const AttentionKernel& kernel : hopper_attention_kernels()) {
    if (kernel.fp8 != AttentionFp8::kNone || kernel.has_pages) continue;
    std::vector<int> head_dims;
    for (const AttentionVariant& variant : kernel.variants)
      if (variant.value_dim == variant.head_dim) head_dims.push_back(variant.head_dim);
    rungs.push_back({{"kernel", kernel.name},
                     {"head_dims", head_dims},
                     {"has_everything", (kernel.features & kPackedSequences) != 0}});
  }
  ASSERT_EQ(list.size(), rungs.size());
  for (std::size_t i = 0; i < rungs.size(); ++i) {
    for (const auto& [key, value] : rungs[i].items())
      EXPECT_EQ(list[i].at(key), value) << rungs[i] << " is " << list[i] << " in the list";
  }
}

TEST_F(AttentionPlanTest, AStepTowardsK6IsTakenOnlyByName) {
  for (const char* const name : {"k6_1", "k6_2", "k6_3"}) {
    const AttentionPlan plan =
        make_attention_plan(h200(), with(kGood, [&](auto& p) { p.kernel = name; }));
    EXPECT_EQ(plan.kernel, name);
    EXPECT_THAT(make_attention_plan(h200(), kGood).to_string(),
                HasSubstr("not " + std::string(name) +
                          ": it is a step towards k6, to be read and measured"));
  }
}

TEST_F(AttentionPlanTest, ANamedKernelIsTakenOrRefusedWithTheReason) {
  EXPECT_EQ(make_attention_plan(h200(), with(kGood, [](auto& p) { p.kernel = "k6"; })).kernel,
            "k6");
  expect_invalid([] { make_attention_plan(h200(), with(kGood, [](auto& p) { p.kernel = "k9"; })); },
                 {"no kernel \"k9\"", "auto", "k6"});
}

TEST_F(AttentionPlanTest, SaysWhyNothingFits) {
  const auto message = [](const device::DeviceInfo& device, const AttentionProblem& p) {
    try {
      make_attention_plan(device, p);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
      return std::string(error.what());
    }
    return std::string("nothing was thrown");
  };
  EXPECT_THAT(message(h200(), with(kGood, [](auto& p) { p.head_dim = 264; })),
              HasSubstr("k6, k6_pages: exists for head_dim 64, 96, 128, 192, 256"));
  device::DeviceInfo a100 = h200();
  a100.name = "NVIDIA A100";
  a100.compute_capability = 80;
  EXPECT_THAT(message(a100, kGood),
              HasSubstr("k8: is for sm_90a; NVIDIA A100 has compute capability 8.0"));
  EXPECT_THAT(message(a100, with(kGood, [](auto& p) { p.kernel = "k6"; })),
              HasSubstr("kernel k6 is for sm_90a"));
}

TEST_F(AttentionPlanTest, UnevenTilesAreDrawnInSections) {
  EXPECT_EQ(attention_section_heads(h200(), with(kGood, [](auto& p) { p.causal = false; })), 1);
  // 3000 * 128 * 4 bytes of keys and values, shared by 4 heads: 384 kB a pair, and 31 MB of cache.
  EXPECT_EQ(attention_section_heads(h200(), complete(kGood)), 16) << "no more than there are pairs";
  EXPECT_EQ(attention_section_heads(h200(), with(kGood, [](auto& p) { p.kv_len = 60000; })), 4);
  EXPECT_EQ(
      make_attention_plan(h200(), with(kGood, [](auto& p) { p.causal = false; })).workspace_bytes,
      0u);
}

TEST_F(AttentionPlanTest, NothingToDoLaunchesNothing) {
  const AttentionPlan plan = make_attention_plan(h200(), with(kGood, [](auto& p) { p.q_len = 0; }));
  EXPECT_TRUE(plan.launches.empty());
  EXPECT_EQ(plan.workspace_bytes, 0u);
  EXPECT_EQ(plan.flops, 0);
}

}  // namespace
}  // namespace tilewright::ops
