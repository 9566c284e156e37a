// Every operator that has several kernels: which one it takes, what it says of the others, and what
// it refuses. By arithmetic alone: no device is opened.
#include "base/error.h"
#include "device/kernel_registry.h"
#include "ops/attention/plan.h"
#include "ops/block_scaled_linear/plan.h"
#include "ops/decode/plan.h"
#include "ops/latent_attention/plan.h"
#include "ops/linear/plan.h"
#include "ops/moe/plan.h"
#include "ops/operator/choose.h"
#include "ops/sparse_attention/plan.h"
#include "tests/ops/gpu_infos.h"

#include <cmath>
#include <functional>
#include <ostream>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright::ops {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

// An operator, and a problem that some of its kernels cannot do.
struct Chooser {
  const char* name;
  device::DeviceInfo device;
  std::function<Plan(const device::DeviceInfo&, const std::string& kernel)> plan;
  std::string impossible, obstacle;  ///< one of them, and why; empty where all can
};

void PrintTo(const Chooser& chooser, std::ostream* os) {
  *os << chooser.name;
}

const AttentionProblem kAttention = {.batch = 2,
                                     .heads = 8,
                                     .kv_heads = 2,
                                     .q_len = 1000,
                                     .kv_len = 3000,
                                     .head_dim = 128,
                                     .softcap = 30};

Plan plan_of_attention(const device::DeviceInfo& device, const std::string& kernel) {
  AttentionProblem p = kAttention;
  p.kernel = kernel;
  return make_attention_plan(device, p);
}

Plan plan_of_plain_attention(const device::DeviceInfo& device, const std::string& kernel) {
  AttentionProblem p = kAttention;
  p.softcap = 0;
  p.kernel = kernel;
  return make_attention_plan(device, p);
}

Plan plan_of_fp8_attention(const device::DeviceInfo& device, const std::string& kernel) {
  AttentionProblem p = kAttention;
  p.dtype = DType::kF8_E4M3;
  p.kernel = kernel;
  return make_attention_plan(device, p);
}

Plan plan_of_decode(const device::DeviceInfo& device, const std::string& kernel) {
  return make_decode_plan(device, {.batch = 2,
                                   .heads = 32,
                                   .kv_heads = 8,
                                   .head_dim = 128,
                                   .page_size = 24,
                                   .num_pages = 100,
                                   .max_pages = 9,
                                   .kernel = kernel})
      .plan;
}

Plan plan_of_sparse(const device::DeviceInfo& device, const std::string& kernel) {
  return make_sparse_plan(device,
                          {.batch = 8,
                           .q_len = 2,
                           .heads = 64,
                           .window = {.cache = {.page_size = 64, .num_pages = 100}, .topk = 128},
                           .kernel = kernel})
      .plan;
}

Plan plan_of_latent(const device::DeviceInfo& device, const std::string& kernel) {
  LatentAttentionProblem p = mla_decode_problem(8, 2, 64, 100, 8);
  p.kernel = kernel;
  return make_latent_plan(device, p).plan;
}

Plan plan_of_linear(const device::DeviceInfo& device, const std::string& kernel) {
  return make_linear_plan(device, {NumberFormat::kNvfp4, LinearActivations::kBf16, 7168, 7168},
                          {.m = 8, .kernel = kernel});
}

Plan plan_of_fp8_linear(const device::DeviceInfo& device, const std::string& kernel) {
  return make_linear_plan(device, {NumberFormat::kFp8, LinearActivations::kFp8, 256, 256},
                          {.m = 200, .kernel = kernel});
}

Plan plan_of_moe(const device::DeviceInfo& device, const std::string& kernel) {
  return make_moe_plan(device,
                       {.format = NumberFormat::kMxfp4,
                        .activations = LinearActivations::kBf16,
                        .experts = 64,
                        .hidden = 1024,
                        .inter = 512},
                       {.tokens = 300, .topk = 6, .kernel = kernel})
      .plan;
}

Plan plan_of_bf16_linear(const device::DeviceInfo& device, const std::string& kernel) {
  return make_linear_plan(device, {NumberFormat::kBf16, LinearActivations::kBf16, 4096, 4096},
                          {.m = 300, .kernel = kernel});
}

Plan plan_of_block_scaled(const device::DeviceInfo& device, const std::string& kernel) {
  return make_block_scaled_plan(device, {NumberFormat::kNvfp4, 4096, 4096},
                                {.m = 512, .kernel = kernel});
}

std::vector<Chooser> choosers() {
  return {
      {"attention", h200(), plan_of_attention, "k2", "does not support a softcap"},
      {"attention_fp8", h200(), plan_of_fp8_attention, "k6", "does not support operands of e4m3"},
      {"attention_b200", b200(), plan_of_plain_attention, "sm100_f",
       "exists for head_dim 256, 512"},
      {"decode", h200(), plan_of_decode, "r16_tma", "copies 16 keys at a time, and pages have 24"},
      {"sparse_attention", h200(), plan_of_sparse, "few_heads", "is for at most 32 heads"},
      {"sparse_attention_b200", b200(), plan_of_sparse, "few_heads", "is for at most 32 heads"},
      {"latent_attention", h200(), plan_of_latent, "pair",
       "is for sm_100f; NVIDIA H200 has compute capability 9.0"},
      {"latent_attention_b200", b200(), plan_of_latent, "wgmma",
       "is for sm_90a; NVIDIA B200 has compute capability 10.0"},
      {"linear", h200(), plan_of_linear, "wide_e4m3_fp4_t128",
       "reads weights that were prepared for fp8 activations"},
      {"linear_fp8", h200(), plan_of_fp8_linear, "direct", "is for NVFP4 and MXFP4 weights"},
      {"linear_b200", b200(), plan_of_bf16_linear, "band",
       "reads packed weights; on Blackwell bf16 ones are kept as rows"},
      {"moe", h200(), plan_of_moe, "wide8", "needs weights prepared for fp8 activations"},
      {"block_scaled_linear", b200(), plan_of_block_scaled, "", ""},
  };
}

std::string names(const Plan& plan, bool possible_only) {
  std::string text;
  for (const Candidate& c : plan.candidates) {
    if (c.is_possible || !possible_only) text += (text.empty() ? "" : ", ") + c.name;
  }
  return text;
}

class KernelChoice : public ::testing::TestWithParam<Chooser> {
 protected:
  void SetUp() override {
    if (device::kernel_images().empty()) GTEST_SKIP() << "built without kernels";
  }
  static Plan plan(const std::string& kernel = "auto") {
    return GetParam().plan(GetParam().device, kernel);
  }
  static std::string refusal(const device::DeviceInfo& device, const std::string& kernel,
                             ErrorKind kind) {
    try {
      GetParam().plan(device, kernel);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), kind) << error.what();
      return error.what();
    }
    return "accepted";
  }
};

TEST_P(KernelChoice, AutoTakesTheFastestAndSaysWhyNotTheOthers) {
  const Plan p = plan();
  const auto chosen = std::ranges::find(p.candidates, p.kernel, &Candidate::name);
  ASSERT_NE(chosen, p.candidates.end());
  EXPECT_TRUE(chosen->is_automatic);
  std::set<std::string> seen;
  for (const Candidate& c : p.candidates) {
    SCOPED_TRACE(c.name + ": " + c.reason);
    EXPECT_TRUE(seen.insert(c.name).second);
    EXPECT_EQ(c.reason.empty(), c.name == p.kernel);
    EXPECT_TRUE(c.is_possible || !c.is_automatic);
    if (!c.is_possible) {
      EXPECT_EQ(c.cost_us, 0);
      EXPECT_THAT(c.reason, Not(HasSubstr("expected to take")));
    }
    if (!c.is_automatic || c.name == p.kernel || !std::isfinite(c.cost_us)) continue;
    EXPECT_GE(c.cost_us * 1.001, chosen->cost_us);
    const std::string ratio = fmt::format("{:.2f}", c.cost_us / chosen->cost_us);
    EXPECT_THAT(c.reason,
                HasSubstr(ratio == "1.00" ? "is expected to take as long"
                                          : "is expected to take " + ratio + " times as long"));
  }
}

TEST_P(KernelChoice, AnImpossibleOneHasItsObstacleAsReason) {
  if (GetParam().impossible.empty()) {
    EXPECT_TRUE(std::ranges::all_of(plan().candidates, &Candidate::is_possible));
    return;
  }
  for (const std::string& kernel : {std::string("auto"), plan().kernel}) {
    const Plan p = plan(kernel);
    const auto at = std::ranges::find(p.candidates, GetParam().impossible, &Candidate::name);
    ASSERT_NE(at, p.candidates.end());
    EXPECT_FALSE(at->is_possible);
    EXPECT_EQ(at->reason, GetParam().obstacle) << "kernel " << kernel;
  }
}

TEST_P(KernelChoice, OneThatIsNamedIsTaken) {
  for (const Candidate& wanted : plan().candidates) {
    if (!wanted.is_possible) continue;
    const Plan p = plan(wanted.name);
    EXPECT_EQ(p.kernel, wanted.name);
    for (const Candidate& c : p.candidates) {
      if (!c.is_possible || c.name == p.kernel) continue;
      EXPECT_EQ(c.reason, "was not asked for") << c.name;
    }
  }
}

TEST_P(KernelChoice, AnUnknownNameListsAll) {
  EXPECT_THAT(refusal(GetParam().device, "fastest", ErrorKind::kInvalidArgument),
              AllOf(HasSubstr("there is no kernel \"fastest\"; expected one of auto, "),
                    HasSubstr(names(plan(), false))));
}

TEST_P(KernelChoice, ANamedImpossibleOneListsThePossible) {
  const Plan p = plan();
  for (const Candidate& c : p.candidates) {
    if (c.is_possible) continue;
    EXPECT_THAT(refusal(GetParam().device, c.name, ErrorKind::kUnsupported),
                HasSubstr(fmt::format(": kernel {} {}. Possible here: {}.", c.name, c.reason,
                                      names(p, true))));
  }
}

TEST_P(KernelChoice, ImpossibleEverywhereGivesAllReasons) {
  device::DeviceInfo older = GetParam().device;
  older.name = "NVIDIA A100";
  older.compute_capability = 80;
  const Plan p = plan();
  const std::string text = refusal(older, "auto", ErrorKind::kUnsupported);
  EXPECT_THAT(text, HasSubstr("no kernel does "));
  EXPECT_THAT(text, HasSubstr("on NVIDIA A100:"));
  const std::string lines = text.substr(text.find(':', text.find("A100")));
  for (const Candidate& c : p.candidates) {
    // Attention lists Hopper's where it has no kernels.
    if (c.name.starts_with("sm100")) continue;
    EXPECT_THAT(lines, ContainsRegex("[ \n]" + c.name + "[,:]"));
  }
  EXPECT_THAT(lines,
              ContainsRegex(
                  "is for sm_(90a|100f|90a and sm_100f); NVIDIA A100 has compute capability 8.0"));
  EXPECT_THAT(refusal(older, p.kernel, ErrorKind::kUnsupported), HasSubstr("Possible here: none."));
}

TEST_P(KernelChoice, TheSummaryHasTheBestThree) {
  const Plan p = plan();
  const auto lines = [](const std::string& text) {
    std::vector<std::string> others;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = text.find('\n', at);
      const std::string line = text.substr(at, end - at);
      if (line.starts_with("not ") || line.find(" more: ") != std::string::npos)
        others.push_back(line);
      at = end + 1;
    }
    return others;
  };
  const std::vector<std::string> all = lines(p.to_string()), few = lines(p.summary("--all"));
  ASSERT_EQ(all.size(), p.candidates.size() - 1);
  const std::size_t shown = std::min<std::size_t>(all.size(), 3);
  ASSERT_EQ(few.size(), shown + (all.size() > 3));
  for (std::size_t i = 0; i < shown; ++i) EXPECT_EQ(few[i], all[i]);
  if (all.size() > 3) {
    EXPECT_EQ(few.back(), fmt::format("{} more: --all", all.size() - 3));
  }
  // What auto would take comes first, the fastest before all others.
  const Candidate* best = nullptr;
  for (const Candidate& c : p.candidates) {
    if (!c.is_automatic || c.name == p.kernel) continue;
    if (best == nullptr || c.cost_us < best->cost_us) best = &c;
  }
  if (best != nullptr) {
    EXPECT_EQ(all.at(0), fmt::format("not {}: it {}", best->name, best->reason));
  }
}

INSTANTIATE_TEST_SUITE_P(Operators, KernelChoice, ::testing::ValuesIn(choosers()),
                         [](const auto& one) { return std::string(one.param.name); });

// The rules themselves, where no operator has the case.
TEST(Choose, EqualCostsAreToldApartByWhatL2ReadsOut) {
  const std::vector<Option> options = {{"a", "", 10.0, "", 300},
                                       {"b", "", 10.005, "", 200},
                                       {"c", "", 9.0, "is a study", 100},
                                       {"d", "cannot", 0, "", 0}};
  Plan plan;
  const Request request = {"test", "auto", "a GPU", "work", "Take another."};
  EXPECT_EQ(choose(plan, request, options), 1u);
  EXPECT_EQ(plan.kernel, "b");
  EXPECT_EQ(plan.candidates[0].reason,
            "is expected to take as long, and L2 reads out 1.50 times as much");
  EXPECT_EQ(plan.candidates[2].reason, "is a study");
  EXPECT_FALSE(plan.candidates[2].is_automatic);
  EXPECT_EQ(plan.candidates[3].reason, "cannot");
}

TEST(Choose, NothingIsSaidInNumbersOfWhatWasNeverMeasured) {
  const double never = std::numeric_limits<double>::infinity();
  Plan plan;
  const Request request = {"test", "auto", "a GPU", "work", "Take another."};
  choose(plan, request, std::vector<Option>{{"a", "", never, "", 0}, {"b", "", 5, "", 0}});
  EXPECT_EQ(plan.kernel, "b");
  EXPECT_EQ(plan.candidates[0].reason, "has no measured rate here");
  EXPECT_THROW(choose(plan, request, std::vector<Option>{{"a", "", 1, "is a study", 0}}), Error);
}

}  // namespace
}  // namespace tilewright::ops
