// What a decode plan says, and what it refuses, by arithmetic alone: no device is opened.
#include "base/error.h"
#include "device/kernel_registry.h"
#include "kernels/attention/decode/shape.h"
#include "kernels/attention_sm100/decode/tensor_decode.h"
#include "ops/decode/plan.h"
#include "ops/decode/problem.h"
#include "tests/ops/gpu_infos.h"
#include "tests/reference/inputs.h"

#include <cmath>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright::ops {
namespace {

using reference::expect_invalid;
using testing::HasSubstr;

using Change = std::function<void(AttentionDecodeProblem&)>;

const AttentionDecodeProblem kGood = {
    .batch = 2, .heads = 32, .kv_heads = 8, .head_dim = 128, .max_len = 3000};

AttentionDecodeProblem with(AttentionDecodeProblem p, const Change& change) {
  change(p);
  return p;
}
void to_pages(AttentionDecodeProblem& p) {
  p.max_len = 0, p.page_size = 64, p.num_pages = 100, p.max_pages = 50;
}
device::DeviceInfo hopper() {
  device::DeviceInfo info = h200();
  info.has_clusters = true;
  return info;
}
AttentionDecodePlan plan_of(const AttentionDecodeProblem& p) {
  return make_decode_plan(hopper(), p).plan;
}

TEST(AttentionDecodeProblemTest, FillsInDefaults) {
  const AttentionDecodeProblem p = complete(kGood);
  EXPECT_DOUBLE_EQ(*p.scale, 1 / std::sqrt(128.0));
  EXPECT_EQ(p.q_strides.batch, 32 * 128);
  EXPECT_EQ(p.new_k_strides.row, 8 * 128);
  EXPECT_EQ(p.cache_strides.batch, 3000 * 8 * 128);
  EXPECT_EQ(p.cache_strides.head, 128);
  const AttentionDecodeProblem paged = complete(with(kGood, to_pages));
  EXPECT_EQ(paged.table_stride, 50);
  EXPECT_EQ(paged.cache_strides.batch, 64 * 8 * 128);
  EXPECT_EQ(decode_capacity(paged), 3200);
}

class AttentionDecodePlanTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (device::kernel_images().empty()) GTEST_SKIP() << "built without kernels";
  }
};

TEST_F(AttentionDecodePlanTest, ReadsTheSameEveryTime) {
  const AttentionDecodePlan plan = plan_of(kGood);
  EXPECT_EQ(plan.to_string(), plan_of(kGood).to_string());
  EXPECT_THAT(plan.to_string(),
              HasSubstr("batch 2, q_len 1, heads 32/8, head_dim 128, bf16; 3000 keys of bf16"));
  EXPECT_THAT(plan.to_string(), HasSubstr("decode_bf16_d128_r16"));
  EXPECT_EQ(plan.kernel, "r16");
  EXPECT_EQ(plan.passes, 1);
  EXPECT_EQ(plan.bytes, 2.0 * (3000 * 8 * 128 * 2 * 2 + 32 * 128 * 2 * 2));
  EXPECT_EQ(plan.flops, 2.0 * 3000 * 32 * 128 * 4);
}

// As many CTAs as fit at once or fewer, in whole clusters.
TEST_F(AttentionDecodePlanTest, FillsTheDeviceWithWholeClusters) {
  for (const std::int64_t batch : {1, 2, 3, 8, 33, 200}) {
    for (const std::int64_t keys : {0, 1, 200, 4096, 100000}) {
      for (const std::int64_t splits : {0, 1, 5}) {
        const AttentionDecodePlan plan = plan_of(with(kGood, [&](AttentionDecodeProblem& p) {
          p.batch = batch, p.max_len = keys, p.splits = splits;
        }));
        SCOPED_TRACE(plan.to_string());
        EXPECT_GE(plan.groups, 1);
        EXPECT_LE(plan.groups * plan.cluster, 2 * 132);
        EXPECT_EQ(plan.launches.back().grid[0],
                  static_cast<std::uint32_t>(plan.groups * plan.cluster));
        if (splits > 0) {
          EXPECT_EQ(plan.cluster, 1);
        }
        if (splits == 1) {
          EXPECT_EQ(plan.workspace_bytes, 0u);
        }
      }
    }
  }
}

// Fewer would cut tiles, and parts of tiles are merged in global memory.
TEST_F(AttentionDecodePlanTest, AShortTileHasAClusterOfItsOwn) {
  for (const std::int64_t keys : {256, 1024}) {
    const AttentionDecodePlan plan =
        plan_of(with(kGood, [&](AttentionDecodeProblem& p) { p.batch = 1, p.max_len = keys; }));
    SCOPED_TRACE(plan.to_string());
    EXPECT_GT(plan.cluster, 1);
    EXPECT_EQ(plan.groups, 8) << "heads of keys";
  }
}

TEST_F(AttentionDecodePlanTest, BoxesNeedPagesThatHoldThem) {
  const auto of = [](std::int64_t page, auto change) {
    return with(kGood, [&](AttentionDecodeProblem& p) {
      p.kernel = "r16_tma", p.max_len = 0, p.page_size = page, p.num_pages = 100, p.max_pages = 9;
      change(p);
    });
  };
  EXPECT_EQ(plan_of(of(16, [](auto&) {})).kernel, "r16_tma");
  EXPECT_THAT(plan_of(of(48, [](auto&) {})).to_string(), HasSubstr("decode_bf16_d128_r16_tma"));
  const auto refusal = [](const AttentionDecodeProblem& p) -> std::string {
    try {
      plan_of(p);
    } catch (const Error& e) {
      return e.what();
    }
    return "none";
  };
  EXPECT_THAT(refusal(of(24, [](auto&) {})),
              HasSubstr("r16_tma copies 16 keys at a time, and pages have 24"));
  EXPECT_THAT(refusal(of(16, [](auto& p) { p.num_pages = 0; })),
              HasSubstr("needs a cache with room for a key"));
  // Nobody has to ask: what can do it does, and of pages whichever is faster.
  const auto chosen = [&](std::int64_t page, std::int64_t pages) {
    return plan_of(of(page, [&](auto& p) { p.kernel = "auto", p.num_pages = p.max_pages = pages; }))
        .kernel;
  };
  EXPECT_EQ(chosen(24, 9), "r16");
  EXPECT_EQ(chosen(16, 9), "r16_tma");
  EXPECT_EQ(chosen(16, 100000), "r16");
}

TEST_F(AttentionDecodePlanTest, AnOlderOrNewerDeviceIsRefused) {
  expect_invalid([] { make_decode_plan(hopper(), with(kGood, [](auto& p) { p.kernel = "r8"; })); },
                 {"kernel \"r8\"", "auto, r16, r16_tma, r64, t16, t32, t64"});
  const auto refusal = [](const device::DeviceInfo& device, const AttentionDecodeProblem& p) {
    try {
      make_decode_plan(device, p);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  device::DeviceInfo older = hopper();
  older.name = "NVIDIA A100", older.compute_capability = 80;
  EXPECT_THAT(refusal(older, kGood), HasSubstr("NVIDIA A100 has compute capability 8.0"));
  EXPECT_THAT(refusal(b200(), with(kGood, [](auto& p) { p.kernel = "r16"; })),
              HasSubstr("r16 is for sm_90a; NVIDIA B200 has compute capability 10.0"));
  EXPECT_THAT(refusal(b200(), with(kGood, [](auto& p) { p.head_dim = 264; })),
              HasSubstr("t16, t64: exists for head_dim up to 256, not 264"));
  EXPECT_THAT(refusal(hopper(), with(kGood, [](auto& p) { p.head_dim = 264; })),
              HasSubstr("r64: exists for head_dim up to 256, not 264"));
  EXPECT_THAT(refusal(hopper(), with(kGood,
                                     [](auto& p) {
                                       to_pages(p);
                                       p.head_dim = 96, p.kernel = "r16_tma";
                                     })),
              HasSubstr("r16_tma exists for head_dim 64, 128 and 256, not 96"));
  EXPECT_THAT(
      refusal(hopper(), with(kGood, [](auto& p) { p.batch = 1 << 20, p.max_len = 1 << 30; })),
      HasSubstr("Run parts of the batch"));
}

// Tiles of 16 rows where they are enough; else as large as Tensor Memory allows, if keys are long.
TEST_F(AttentionDecodePlanTest, BlackwellTakesTilesThatHoldTheRows) {
  device::DeviceInfo info = b200();
  info.has_clusters = true;
  const auto of = [&](DType kv, std::int64_t heads, std::int64_t keys) {
    return make_decode_plan(info, with(kGood,
                                       [&](AttentionDecodeProblem& p) {
                                         p.kv_dtype = kv, p.heads = heads, p.kv_heads = 1,
                                         p.max_len = keys;
                                       }))
        .plan;
  };
  EXPECT_EQ(of(DType::kBF16, 16, 100000).kernel, "t16");
  EXPECT_EQ(of(DType::kBF16, 64, 100000).kernel, "t64");
  EXPECT_EQ(of(DType::kF8_E4M3, 16, 100000).kernel, "t16");
  EXPECT_EQ(of(DType::kF8_E4M3, 64, 100000).kernel, "t32");
  const AttentionDecodePlan plan = of(DType::kF8_E4M3, 64, 100000);
  EXPECT_EQ(plan.passes, 2);
  EXPECT_EQ(plan.cluster, 1);
  EXPECT_EQ(plan.launches.back().entry, "decode_tensor_e4m3_r32");
  EXPECT_LE(plan.groups, info.num_sms);
}

// Everything fits the shared memory of an SM, with at least two items on their way.
TEST_F(AttentionDecodePlanTest, SharedMemoryOfBlackwellKernels) {
  for (const bool is_codes : {false, true}) {
    for (const int rows : {16, is_codes ? 32 : 64}) {
      for (const int head_dim : {64, 128, 256}) {
        const kernels::TensorDecodeShape shape = {head_dim, is_codes, rows};
        EXPECT_GE(shape.stages(), 2);
        EXPECT_LE(shape.shared_bytes(), 227 * 1024);
        EXPECT_EQ(shape.query_bytes() % 1024, 0) << "boxes begin at multiples of the swizzle";
      }
    }
  }
}

// Rows count for what they are, and are multiplied, and kept between CTAs, as the entry has them.
TEST_F(AttentionDecodePlanTest, OtherHeadDimsTakeTheNextWidth) {
  for (const auto& [head_dim, width] :
       {std::pair{8, 64}, std::pair{56, 64}, std::pair{72, 96}, std::pair{96, 96},
        std::pair{104, 128}, std::pair{136, 192}, std::pair{192, 192}, std::pair{200, 256}}) {
    const auto plan = plan_of(with(kGood, [&](auto& p) { p.head_dim = head_dim, p.splits = 2; }));
    EXPECT_THAT(plan.launches.back().entry,
                HasSubstr(std::string("_d") + std::to_string(width) + "_r16_any"));
    EXPECT_EQ(plan.bytes, 2.0 * head_dim * (3000 * 8 * 2 * 2 + 32 * 2 * 2));
    EXPECT_GE(plan.workspace_bytes, 2u * 8 * 2 * 16 * static_cast<std::size_t>(width) * 4);
  }
  // Chunks bound what has to be read.
  const auto chunked = plan_of(with(kGood, [](auto& p) { p.chunk = 1024, p.q_len = 2; }));
  EXPECT_THAT(chunked.launches.back().entry, HasSubstr("decode_bf16_d128_r16_any"));
  EXPECT_EQ(chunked.bytes, 2.0 * 128 * ((3000 - 2048) * 8 * 2 * 2 + 2 * 32 * 2 * 2));
  EXPECT_EQ(chunked.flops, 2.0 * (951 + 952) * 32 * 128 * 4);
  for (const int rows : {16, 64}) {
    for (const auto kv : {kernels::DecodeKv::kBf16, kernels::DecodeKv::kE4m3}) {
      for (const int width : {64, 96, 128, 192, 256}) {
        const kernels::DecodeShape shape = kernels::decode_shape(kv, width, rows, true);
        EXPECT_LE(shape.shared_bytes(), kernels::decode_max_shared(shape.residents));
        EXPECT_GE(shape.stages, 2);
      }
    }
  }
}

TEST_F(AttentionDecodePlanTest, NothingToDoNeedsNothing) {
  for (const bool is_batch : {true, false}) {
    const AttentionDecodePlan plan =
        plan_of(with(kGood, [&](auto& p) { (is_batch ? p.batch : p.q_len) = 0; }));
    EXPECT_TRUE(plan.launches.empty());
    EXPECT_EQ(plan.workspace_bytes, 0u);
  }
}

}  // namespace
}  // namespace tilewright::ops
