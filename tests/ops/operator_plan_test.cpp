// What every operator says of a problem without running it: the same on a device that plans alone
// as on a simulated one, and all reasons where it cannot.
#include "tilewright/attention.h"
#include "tilewright/attention_decode.h"
#include "tilewright/attention_prepare.h"
#include "tilewright/block_scaled_linear.h"
#include "tilewright/compressor.h"
#include "tilewright/hyper_connection.h"
#include "tilewright/indexer.h"
#include "tilewright/indexer_logits.h"
#include "tilewright/kernels.h"
#include "tilewright/latent_attention.h"
#include "tilewright/linear.h"
#include "tilewright/moe.h"
#include "tilewright/peer_reduce.h"
#include "tilewright/quantize.h"
#include "tilewright/sample.h"
#include "tilewright/sparse_attention.h"

#include "base/error.h"
#include "device/internal.h"

#include <functional>
#include <ostream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright {
namespace {

using testing::ElementsAreArray;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// An operator: a problem that it can do, and one that is wrong in several ways.
struct Operator {
  const char* name;
  std::function<Plan(const Device&)> plan, wrong;
  std::vector<std::string> fields;  ///< what is wrong
  const char* chip = "h200";
};

void PrintTo(const Operator& op, std::ostream* os) {
  *os << op.name;
}

const AttentionProblem kAttention = {
    .batch = 2, .heads = 8, .kv_heads = 2, .q_len = 300, .kv_len = 500, .head_dim = 128};
const KvCacheLayout kPages = {.page_size = 64, .num_pages = 100};
const KvCacheLayout kNoPages = {.page_size = 0, .num_pages = 100};

Operator attention() {
  return {"attention",
          [](const Device& d) { return plan_attention(d, kAttention); },
          [](const Device& d) {
            AttentionProblem p = kAttention;
            p.kv_heads = 3, p.head_dim = 100, p.softcap = -1, p.window_left = -2, p.total_kv = 7;
            return plan_attention(d, p);
          },
          {"heads", "head_dim", "softcap", "window_left", "total_kv"}};
}

Operator attention_strides() {
  return {"attention_strides",
          [](const Device& d) {
            AttentionProblem p = kAttention;
            p.k_strides = {1 << 20, 512, 256};
            return plan_attention(d, p);
          },
          [](const Device& d) {
            AttentionProblem p = kAttention;
            p.q_strides = {1 << 20, 1028, 12};
            p.out_strides = {1 << 20, 1024, 64};
            return plan_attention(d, p);
          },
          {"q_strides.row", "q_strides.head", "out_strides.head"}};
}

Operator attention_prepare() {
  const AttentionPrepareProblem good = {
      .batch = 2, .heads = 8, .kv_heads = 2, .q_len = 50, .kv_len = 70, .head_dim = 128};
  return {"attention_prepare",
          [=](const Device& d) { return plan_attention_prepare(d, good); },
          [=](const Device& d) {
            AttentionPrepareProblem p = good;
            p.dtype = DType::kF8_E4M3, p.head_dim = 96, p.q_len = -1;
            p.scales = ScaleSharing::kRow;
            p.rope = RotaryPairs::kHalves;
            return plan_attention_prepare(d, p);
          },
          {"scales", "rope_positions", "dtype", "head_dim", "q_len"}};
}

Operator decode() {
  const AttentionDecodeProblem good = {
      .batch = 2, .heads = 32, .kv_heads = 8, .head_dim = 128, .max_len = 4096};
  return {"decode",
          [=](const Device& d) { return plan_attention_decode(d, good); },
          [=](const Device& d) {
            AttentionDecodeProblem p = good;
            p.q_len = 17, p.head_dim = 7, p.splits = -1, p.num_pages = 4;
            p.append.rotary = RotaryPairs::kHalves;
            p.cache_strides = {4, 4, 4};
            return plan_attention_decode(d, p);
          },
          {"q_len", "head_dim", "splits", "num_pages", "append.is_wanted", "append.rotary_dim",
           "append.max_position", "cache_strides"}};
}

Operator sparse_attention() {
  const SparseAttentionProblem good = {
      .batch = 8, .q_len = 2, .heads = 64, .window = {.cache = kPages, .topk = 128}};
  return {"sparse_attention",
          [=](const Device& d) { return plan_sparse_attention(d, good); },
          [=](const Device& d) {
            SparseAttentionProblem p = good;
            p.heads = 0, p.scale = -1, p.window.cache = kNoPages;
            p.compressed = {.cache = kPages, .topk = -1};
            return plan_sparse_attention(d, p);
          },
          {"heads", "scale", "window.cache.page_size", "compressed.topk"}};
}

Operator latent_attention() {
  const LatentAttentionProblem good = mla_decode_problem(8, 2, 64, 100, 8);
  return {"latent_attention",
          [=](const Device& d) { return plan_latent_attention(d, good); },
          [=](const Device& d) {
            LatentAttentionProblem p = good;
            p.heads = 0, p.value_dim = 100, p.scale = -1, p.page_size = 5;
            return plan_latent_attention(d, p);
          },
          {"heads", "value_dim", "scale", "page_size"}};
}

Operator linear() {
  const LinearWeightInfo weight = {NumberFormat::kNvfp4, LinearActivations::kBf16, 512, 512};
  return {"linear",
          [=](const Device& d) { return plan_linear(d, weight, {.m = 8}); },
          [=](const Device& d) {
            LinearWeightInfo w = weight;
            w.k = 100;
            return plan_linear(
                d, w,
                {.m = -1, .x_dtype = DType::kF8_E4M3, .activation_scales = ScaleSharing::kHead});
          },
          {"m", "activation_scales", "k", "x_dtype"}};
}

Operator block_scaled_linear() {
  const BlockScaledWeightInfo weight = {NumberFormat::kNvfp4, 512, 512};
  return {"block_scaled_linear",
          [=](const Device& d) { return plan_block_scaled_linear(d, weight, {.m = 8}); },
          [=](const Device& d) {
            const BlockScaledWeightInfo w = {NumberFormat::kBf16, 0, 512};
            return plan_block_scaled_linear(d, w, {.m = -1});
          },
          {"format", "n", "m"},
          "b200"};
}

Operator moe() {
  const MoeWeightsInfo weights = {
      NumberFormat::kMxfp4, LinearActivations::kBf16, 64, 1024, 512, false};
  return {"moe",
          [=](const Device& d) { return plan_moe(d, weights, {.tokens = 30, .topk = 6}); },
          [=](const Device& d) {
            MoeWeightsInfo w = weights;
            w.inter = 100;
            return plan_moe(d, w, {.tokens = -1, .topk = 65, .has_bias = true});
          },
          {"inter", "tokens", "topk", "has_bias"}};
}

Operator quantize() {
  return {"quantize",
          [](const Device& d) { return plan_quantize(d, {.rows = 100, .cols = 500}); },
          [](const Device& d) {
            return plan_quantize(d, {.scales = "best",
                                     .dtype = DType::kI8,
                                     .rows = 5,
                                     .cols = 40,
                                     .row_stride = 39,
                                     .has_operand_order = true});
          },
          {"dtype", "scales", "has_operand_order", "row_stride"}};
}

Operator indexer() {
  const IndexerProblem good = {.max_len = 1000, .keys = kPages};
  return {"indexer",
          [=](const Device& d) { return plan_indexer(d, good, 6, 3); },
          [=](const Device& d) {
            IndexerProblem p = good;
            p.heads = 65, p.topk = 0, p.max_len = 0, p.keys = kNoPages;
            return plan_indexer(d, p, -1, 3);
          },
          {"heads", "topk", "max_len", "keys.page_size", "tokens"}};
}

Operator indexer_logits() {
  const IndexerLogitsProblem good = {.max_len = 1000, .keys = kPages};
  return {"indexer_logits",
          [=](const Device& d) { return plan_indexer_logits(d, good, 6, 3); },
          [=](const Device& d) {
            IndexerLogitsProblem p = good;
            p.heads = 65, p.max_len = 0, p.is_compressed = true;
            return plan_indexer_logits(d, p, -1, 65536);
          },
          {"heads", "max_len", "is_compressed", "tokens", "batch"}};
}

Operator compressor() {
  const CompressorProblem good = {.cache = kPages, .state_slots = 4};
  return {"compressor",
          [=](const Device& d) { return plan_compressor(d, good, 3, 20); },
          [=](const Device& d) {
            CompressorProblem p = good;
            p.cache = kNoPages, p.state_slots = 0, p.ring = 2, p.eps = -1;
            return plan_compressor(d, p, 3, 20);
          },
          {"cache.page_size", "state_slots", "ring", "eps"}};
}

Operator kv_cache() {
  return {"kv_cache",
          [](const Device& d) {
            return plan_kv_cache(d, kPages,
                                 {.tokens = 5, .heads = 8, .list_len = 128, .read_rows = 40});
          },
          [](const Device& d) {
            return plan_kv_cache(d, kNoPages, {.tokens = -1, .heads = 8, .read_rows = -1});
          },
          {"page_size", "tokens", "read_rows"}};
}

Operator inverse_rope() {
  return {"inverse_rope",
          [](const Device& d) { return plan_inverse_rope(d, 100, 64, true); },
          [](const Device& d) { return plan_inverse_rope(d, -1, 1 << 21); },
          {"tokens", "heads"}};
}

Operator hyper_connection() {
  return {"hyper_connection",
          [](const Device& d) {
            return plan_hyper_connection(d, {.tokens = 9, .hidden = 128, .has_merge = true});
          },
          [](const Device& d) {
            return plan_hyper_connection(
                d, {.tokens = -1, .hidden = 100, .has_second = true, .eps = 0});
          },
          {"tokens", "hidden", "has_second", "eps"}};
}

Operator hyper_embedding() {
  return {"hyper_embedding",
          [](const Device& d) {
            return plan_hyper_embedding(d, {.tokens = 9, .hidden = 128, .vocab = 1000});
          },
          [](const Device& d) {
            return plan_hyper_embedding(d, {.hidden = 8, .stream_dtype = DType::kF16});
          },
          {"hidden", "stream_dtype", "vocab"}};
}

Operator rms_norm() {
  return {"rms_norm",
          [](const Device& d) { return plan_rms_norm(d, {.rows = 9, .cols = 128}); },
          [](const Device& d) {
            return plan_rms_norm(d, {.rows = -1, .cols = 64, .x_stride = 32, .eps = -1});
          },
          {"rows", "x_stride", "eps"}};
}

Operator peer_reduce() {
  return {"peer_reduce",
          [](const Device& d) { return plan_peer_reduce(d, {.count = 4096}); },
          [](const Device& d) { return plan_peer_reduce(d, {.ranks = 1, .count = 3}); },
          {"ranks", "count"}};
}

Operator peer_rows() {
  return {"peer_rows",
          [](const Device& d) {
            return plan_peer_rows(d, {.counts = {64, 128}, .most_bytes = 4096});
          },
          [](const Device& d) { return plan_peer_rows(d, {.counts = {3}, .most_bytes = 64}); },
          {"ranks", "counts"}};
}

Operator sample() {
  return {"sample",
          [](const Device& d) { return plan_sample(d, {.rows = 9, .vocab = 129280}); },
          [](const Device& d) { return plan_sample(d, {.rows = -1, .vocab = 10, .parts = 2}); },
          {"rows", "parts"}};
}

Operator gather_rows() {
  return {"gather_rows",
          [](const Device& d) { return plan_gather_rows(d, {.rows = 9, .x_rows = 9, .cols = 64}); },
          [](const Device& d) { return plan_gather_rows(d, {.rows = -1, .x_rows = 9, .cols = 4}); },
          {"rows", "cols"}};
}

std::vector<Operator> operators() {
  return {attention(),
          attention_strides(),
          attention_prepare(),
          decode(),
          sparse_attention(),
          latent_attention(),
          linear(),
          block_scaled_linear(),
          moe(),
          quantize(),
          indexer(),
          indexer_logits(),
          compressor(),
          kv_cache(),
          inverse_rope(),
          hyper_connection(),
          hyper_embedding(),
          rms_norm(),
          peer_reduce(),
          peer_rows(),
          sample(),
          gather_rows()};
}

class OperatorPlan : public ::testing::TestWithParam<Operator> {
 protected:
  void SetUp() override {
    if (embedded_kernels().empty()) GTEST_SKIP() << "built without kernels";
  }
  static Device device(const char* kind) {
    return Device::open(std::string(kind) + ":" + GetParam().chip);
  }
  static Refusal refusal(const std::function<void()>& plan) {
    try {
      plan();
    } catch (const Refusal& refused) {
      return refused;
    }
    return {ErrorKind::kInternal, "accepted", {}};
  }
};

TEST_P(OperatorPlan, IsTheSameWithoutADevice) {
  const Plan plan = GetParam().plan(device("plan"));
  // Reasons name the device, and a simulated one says that it is.
  std::string simulated = GetParam().plan(device("sim")).to_string();
  const std::string mark = " (simulated)";
  for (auto at = simulated.find(mark); at != std::string::npos; at = simulated.find(mark))
    simulated.erase(at, mark.size());
  EXPECT_EQ(plan.to_string(), simulated);
  EXPECT_THAT(plan.notes, Not(IsEmpty()));
  EXPECT_GT(plan.bytes, 0);
  ASSERT_THAT(plan.launches, Not(IsEmpty()));
  for (const Launch& launch : plan.launches) {
    SCOPED_TRACE(launch.entry);
    EXPECT_TRUE(std::ranges::any_of(embedded_kernels(), [&](const EmbeddedKernel& kernel) {
      return kernel.name == launch.entry;
    }));
    for (int i = 0; i < 3; ++i) EXPECT_GT(launch.grid[i] * launch.block[i], 0u);
    EXPECT_EQ(launch.grid[0] % launch.cluster, 0u);
  }
}

TEST_P(OperatorPlan, NamesEverythingThatIsWrong) {
  for (const char* kind : {"plan", "sim"}) {
    const Refusal refused = refusal([&] { GetParam().wrong(device(kind)); });
    EXPECT_EQ(refused.kind(), ErrorKind::kInvalidArgument) << refused.what();
    std::vector<std::string> fields;
    for (const Reason& reason : refused.reasons()) {
      fields.push_back(reason.field);
      EXPECT_THAT(reason.value, Not(IsEmpty())) << reason.field;
      EXPECT_THAT(reason.rule, Not(IsEmpty())) << reason.field;
      EXPECT_THAT(refused.what(), HasSubstr(to_string(reason)));
    }
    EXPECT_THAT(fields, ElementsAreArray(GetParam().fields)) << refused.what();
  }
}

TEST_P(OperatorPlan, HasKernelsOrReasonsOnEveryChip) {
  for (const char* spec : {"plan:h200", "plan:b200", "plan:b300"}) {
    const Device chip = Device::open(spec);
    const Refusal refused = refusal([&] {
      for (const Launch& launch : GetParam().plan(chip).launches)
        EXPECT_NO_THROW(find_kernel(launch.entry, kernel_target(chip))) << spec;
    });
    if (refused.what() == std::string("accepted")) continue;
    EXPECT_EQ(refused.kind(), ErrorKind::kUnsupported) << refused.what();
    ASSERT_THAT(refused.reasons(), Not(IsEmpty())) << refused.what();
    for (const Reason& reason : refused.reasons()) {
      EXPECT_TRUE(reason.field == "kernel" || reason.field == "device") << reason.field;
      EXPECT_THAT(reason.value, Not(IsEmpty()));
      EXPECT_THAT(reason.rule, Not(IsEmpty()));
      EXPECT_THAT(reason.fix, Not(IsEmpty()));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Operators, OperatorPlan, ::testing::ValuesIn(operators()),
                         [](const auto& one) { return std::string(one.param.name); });

std::string unsupported(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
    return error.what();
  }
  return "done";
}

TEST(PlanDevice, RefusesToDoAnything) {
  if (embedded_kernels().empty()) GTEST_SKIP() << "built without kernels";
  const Device device = Device::open("plan:h200");
  EXPECT_FALSE(device.can_run());
  EXPECT_FALSE(device.is_simulated());
  EXPECT_EQ(device.context(), nullptr);
  EXPECT_EQ(device.driver_function("cuInit"), nullptr);
  EXPECT_THAT(device.description(), HasSubstr("plan:h200 (NVIDIA H200): compute capability 9.0"));
  const auto refusal = HasSubstr("device plan:h200 plans and does nothing else");
  EXPECT_THAT(unsupported([&] { Attention(device, kAttention); }), refusal);
  EXPECT_THAT(unsupported([&] { KvCache(device, kPages); }), refusal);
  EXPECT_THAT(unsupported([&] { Indexer(device, {.max_len = 1, .keys = kPages}); }), refusal);
  EXPECT_THAT(unsupported([&] { IndexerLogits(device, {.max_len = 1}); }), refusal);
  EXPECT_THAT(unsupported([&] { RmsNorm(device, {.rows = 1, .cols = 64}); }), refusal);
  EXPECT_THAT(unsupported([&] { device.synchronize(); }), refusal);
}

// Plans go by these facts.
TEST(PlanDevice, HasTheFactsOfTheSimulatedOne) {
  for (const std::string chip : {"h200", "b200", "b300"}) {
    SCOPED_TRACE(chip);
    const Device planned = Device::open("plan:" + chip), simulated = Device::open("sim:" + chip);
    EXPECT_TRUE(simulated.can_run());
    const device::DeviceInfo& a = opened(planned).info();
    const device::DeviceInfo& b = opened(simulated).info();
    EXPECT_EQ(a.name + " (simulated)", b.name);
    EXPECT_EQ(a.compute_capability, b.compute_capability);
    EXPECT_EQ(a.num_sms, b.num_sms);
    EXPECT_EQ(a.memory_bytes, b.memory_bytes);
    EXPECT_EQ(a.l2_bytes, b.l2_bytes);
    EXPECT_EQ(a.shared_per_sm_bytes, b.shared_per_sm_bytes);
    EXPECT_EQ(a.shared_per_block_bytes, b.shared_per_block_bytes);
    EXPECT_EQ(a.shared_per_block_optin_bytes, b.shared_per_block_optin_bytes);
    EXPECT_EQ(a.shared_per_block_reserved_bytes, b.shared_per_block_reserved_bytes);
    EXPECT_EQ(a.registers_per_sm, b.registers_per_sm);
    EXPECT_EQ(a.threads_per_sm, b.threads_per_sm);
    EXPECT_EQ(a.clock_khz, b.clock_khz);
    EXPECT_EQ(a.memory_clock_khz, b.memory_clock_khz);
    EXPECT_EQ(a.memory_bus_bits, b.memory_bus_bits);
    EXPECT_EQ(a.has_clusters, b.has_clusters);
    EXPECT_EQ(a.has_tensor_maps, b.has_tensor_maps);
  }
}

}  // namespace
}  // namespace tilewright
