#include "model/checkpoint/memory.h"

#include "base/error.h"
#include "model/checkpoint/make_checkpoint.h"
#include "model/checkpoint/released.h"
#include "model/checkpoint/synthetic.h"
#include "model/kernel_runner/memory.h"
#include "tests/ops/operator_test.h"

#include <gmock/gmock.h>

namespace tilewright::model {
namespace {

using testing::HasSubstr;

MemoryRequest flash(const Share& share, std::int64_t context = 8192, std::int64_t sequences = 1) {
  return {.step = {.config = released_config("flash").value(),
                   .share = share,
                   .options = {.index = IndexFormat::kFp8, .max_tokens = context},
                   .sequences = sequences,
                   .tokens = 256},
          .has_drafts = true};
}

// Sums of the published sizes, by hand: 156.0 GB without draft layer; experts split, the rest
// everywhere.
TEST(Memory, WeightsOfFlashOnRanks) {
  const auto weights_gb = [](const Share& share, bool has_drafts = true) {
    MemoryRequest request = flash(share);
    request.has_drafts = has_drafts;
    return static_cast<double>(weight_memory(request).weights()) / 1e9;
  };
  // Fp32 scales of FP8 blocks and 32-bit tables for ue8m0 and 64 bits: less than 0.02 GB.
  EXPECT_NEAR(weights_gb({}, false), 156.02, 0.03);
  EXPECT_NEAR(weights_gb({Scheme::kExpertParallel, 0, 2}), 84.3, 0.1);
  EXPECT_NEAR(weights_gb({Scheme::kExpertParallel, 0, 4}), 46.6, 0.1);
  EXPECT_NEAR(weights_gb({Scheme::kExpertParallel, 0, 8}), 27.8, 0.1);
  // wq_a, wkv, compressors, indexers, routers, hyper-connections and the embedding stay whole.
  EXPECT_NEAR(weights_gb({Scheme::kTensorParallel, 0, 2}, false), 156.0 / 2 + 0.65 + 0.53, 0.3);
}

// 3850 bytes a token with FP8 rows and keys; 49 more since pages are whole multiples of 576 bytes:
// 21 layers with 64 bytes of padding for 64 entries of 4 tokens, 20 with 560 for 2 of 128. And what
// a sequence always has: 383 rows of the window in each layer, and states.
TEST(Memory, CachesOfFlash) {
  const auto caches = [](std::int64_t context) {
    return static_cast<double>(cache_memory(flash({}, context).step));
  };
  EXPECT_NEAR((caches(1 << 20) - caches(1 << 17)) / ((1 << 20) - (1 << 17)), 3899.25, 0.01);
  EXPECT_GT(caches(8192), 8192 * 3850 + 15e6);
  EXPECT_LT(caches(8192), 8192 * 3850 + 45e6);
}

class MemoryTest : public ChipTest<MemoryTest, false> {};
INSTANTIATE_TEST_SUITE_P(SimTest, MemoryTest, ::testing::Values("sim:h200"),
                         [](const auto&) { return "h200"; });

// To the byte what a runner holds.
TEST_P(MemoryTest, CachesAndExpertsAreThoseOfTheRunner) {
  const Config config = small_config("flash");
  for (const KvFormat kv : {KvFormat::kBf16, KvFormat::kFp8, KvFormat::kNvfp4}) {
    for (const IndexFormat index : {IndexFormat::kFp8, IndexFormat::kMxfp4}) {
      const std::int64_t pool = index == IndexFormat::kFp8 ? 0 : 1500;
      const StepShape shape = {
          .config = config,
          .options = {.kv = kv, .index = index, .max_tokens = 1000, .cache_tokens = pool},
          .sequences = 3,
          .tokens = 40};
      const KernelMemory memory(*device_, config, shape.options, 3, 40);
      std::int64_t bytes = 0;
      for (const LayerMemory& layer : memory.layers) {
        bytes += layer.window.count();
        for (const auto* array :
             {&layer.entries, &layer.state, &layer.index_keys, &layer.index_state})
          if (*array) bytes += (*array)->count();
      }
      EXPECT_EQ(cache_memory(shape), bytes);
    }
  }
  const auto weights = synthetic_weights({.config = config});
  const ModelArrays arrays(*device_, *weights);
  std::size_t experts = 0;
  for (const LayerArrays& layer : arrays.layers) experts += layer.experts.bytes();
  EXPECT_EQ(weight_memory({.step = {.config = config}}).experts,
            static_cast<std::int64_t>(experts));
}

TEST(Memory, WhatDoesNotFitIsToldWithWhatWould) {
  const Device device = Device::open("plan:h200");
  const auto available = static_cast<std::int64_t>(device.memory_bytes());
  const std::string one = memory_problem(device, flash({}), available);
  EXPECT_THAT(one, HasSubstr("GB of weights"));
  EXPECT_THAT(one, HasSubstr("GB on one rank; the device has 150.1 GB."));
  EXPECT_THAT(one, HasSubstr("What would fit: 2 ranks, expert parallel"));
  const Share half = {Scheme::kExpertParallel, 0, 2};
  EXPECT_EQ(memory_problem(device, flash(half, 131072, 64), available), "");
  const std::string many = memory_problem(device, flash(half, 131072, 512), available);
  EXPECT_THAT(many, HasSubstr("sequences of 131072 tokens; or 512 sequences of "));
  // What it names does fit, and one more does not.
  const MemoryFit fit = memory_fit(device, flash(half, 131072, 512), available);
  EXPECT_EQ(memory_problem(device, flash(half, 131072, fit.sequences), available), "");
  EXPECT_NE(memory_problem(device, flash(half, 131072, fit.sequences + 1), available), "");
  EXPECT_EQ(memory_problem(device, flash(half, fit.context, 512), available), "");
  EXPECT_NE(memory_problem(device, flash(half, fit.context + 1024, 512), available), "");
}

// A rank of those that divide the sequences has an idle one, which takes room and is not named.
TEST(Memory, TheIdleSequenceIsNotAmongThoseAskedFor) {
  const Device device = Device::open("plan:h200");
  const auto available = static_cast<std::int64_t>(device.memory_bytes());
  MemoryRequest request = flash({Scheme::kExpertParallel, 0, 2}, 131072, 513);
  const MemoryFit all = memory_fit(device, request, available);
  request.has_idle = true;
  const MemoryFit fit = memory_fit(device, request, available);
  EXPECT_EQ(fit.sequences, all.sequences - 1);
  EXPECT_EQ(fit.context, all.context);
  const std::string problem = memory_problem(device, request, available);
  EXPECT_THAT(problem, HasSubstr("of caches for 512 sequences of 131072 tokens"));
  EXPECT_THAT(problem,
              HasSubstr(fmt::format("What would fit: {} sequences of 131072 tokens; or 512 ",
                                    fit.sequences)));
}

// A pool of pages for all sequences is what there is less of, not context.
TEST(Memory, APoolThatDoesNotFitIsToldWithOneThatWould) {
  const Device device = Device::open("plan:h200");
  const auto available = static_cast<std::int64_t>(device.memory_bytes());
  MemoryRequest request = flash({Scheme::kExpertParallel, 0, 2}, 131072, 64);
  request.step.options.cache_tokens = std::int64_t{1} << 26;
  const std::string problem = memory_problem(device, request, available);
  EXPECT_THAT(problem, HasSubstr("of caches for 67108864 tokens of 64 sequences"));
  const MemoryFit fit = memory_fit(device, request, available);
  EXPECT_THAT(problem, HasSubstr(fmt::format("What would fit: {} tokens of 64 sequences",
                                             fit.cache_tokens)));
  ASSERT_GT(fit.cache_tokens, 131072);
  request.step.options.cache_tokens = fit.cache_tokens;
  EXPECT_EQ(memory_problem(device, request, available), "");
  request.step.options.cache_tokens += kCacheBlock;
  EXPECT_NE(memory_problem(device, request, available), "");
}

TEST(Memory, WhereNoOneChangeIsEnoughThatIsSaid) {
  const Device device = Device::open("plan:h200");
  const auto available = static_cast<std::int64_t>(device.memory_bytes());
  MemoryRequest request = flash({Scheme::kExpertParallel, 0, 2}, 1 << 20, 60000);
  request.step.options.cache_tokens = std::int64_t{1} << 38;
  EXPECT_THAT(memory_problem(device, request, available),
              HasSubstr("ask for fewer sequences and for fewer tokens"));
  EXPECT_THAT(memory_problem(device, flash({}), std::int64_t{1} << 30),
              HasSubstr("Take fewer layers, or a device with more memory"));
}

// Only what the runner takes can lack memory; of the rest the runner says what is wrong.
TEST(Memory, RoomIsForAllSequencesOfARunner) {
  const Device device = Device::open("plan:h200");
  const auto weights = synthetic_weights({.config = small_config("flash")});
  const auto error = [&](const RunnerOptions& options, std::int64_t sequences) -> std::string {
    try {
      require_memory(device, *weights, options, sequences);
    } catch (const Error& thrown) {
      return thrown.what();
    }
    return "";
  };
  const RunnerOptions options = {.max_tokens = 1 << 20};
  EXPECT_EQ(error(options, 1), "");
  EXPECT_THAT(error(options, 60000), HasSubstr("60000 sequences of 1048576 tokens"));
  EXPECT_EQ(error({.kv = std::nullopt, .max_tokens = 1 << 20}, 60000), "");
  EXPECT_EQ(error({.max_tokens = 1 << 20, .has_draft = true}, 60000), "");
  EXPECT_EQ(error(options, -1), "");
  EXPECT_THAT(error({.max_tokens = 4, .step_tokens = 0}, 1), HasSubstr("step_tokens = 0"));
}

// Every operator has a kernel at the widths of the released models, on every number of ranks.
class FullSizePlans : public testing::TestWithParam<std::tuple<const char*, const char*>> {};

TEST_P(FullSizePlans, EveryOperatorHasAKernel) {
  const auto& [spec, name] = GetParam();
  const Device device = Device::open(spec);
  const Config config = released_config(name).value();
  for (const Share& share :
       {Share{}, Share{Scheme::kTensorParallel, 0, 2}, Share{Scheme::kTensorParallel, 0, 8}}) {
    for (const std::int64_t tokens : {1, 64, 2048}) {
      for (const std::int64_t context : {8192, 1 << 20}) {
        SCOPED_TRACE(fmt::format("{} ranks, {} tokens, context {}", share.world, tokens, context));
        std::vector<NamedPlan> plans;
        EXPECT_NO_THROW(plans = plan_model(device, {.config = config,
                                                    .share = share,
                                                    .options = {.max_tokens = context},
                                                    .sequences = std::min<std::int64_t>(tokens, 64),
                                                    .tokens = tokens}));
        EXPECT_GE(plans.size(), 20u);
        for (const NamedPlan& named : plans)
          EXPECT_FALSE(named.plan.launches.empty()) << named.name;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Released, FullSizePlans,
                         testing::Combine(testing::Values("plan:h200", "plan:b200"),
                                          testing::Values("flash", "pro")));

}  // namespace
}  // namespace tilewright::model
