// Attention in e4m3: what a plan says of it, and results of K7 and K8 on every device.
#include "device/internal.h"
#include "ops/attention/fp8.h"
#include "ops/attention/plan.h"
#include "ops/attention/rates.h"
#include "tests/ops/attention_prepare_case.h"
#include "tests/ops/operator_test.h"

#include <gmock/gmock.h>

namespace tilewright::ops {
namespace {

using testing::HasSubstr;

const AttentionProblem kSmall = {
    .heads = 4, .kv_heads = 2, .q_len = 70, .kv_len = 150, .head_dim = 64, .has_lse = true};

AttentionProblem with(AttentionProblem p, auto change) {
  change(p);
  return p;
}

class AttentionFp8Test : public HopperTest<AttentionFp8Test> {
 protected:
  AttentionPlan plan(auto change) const { return plan_attention(*device_, with(kSmall, change)); }

  // Relative root mean square of the errors of a kernel that rounds operands of 16 bits.
  static double relative_rms(const AttentionProblem& problem,
                             const std::vector<std::int32_t>& cu_q = {},
                             const std::vector<std::int32_t>& cu_kv = {}) {
    const Attention attention(*device_, problem);
    const AttentionProblem p = attention.plan().problem;
    const std::int64_t q_rows = p.is_packed ? p.total_q : p.batch * p.q_len;
    const std::int64_t kv_rows = p.is_packed ? p.total_kv : p.batch * p.kv_len;
    std::vector<double> sinks;
    for (std::int64_t h = 0; p.has_sink && h < p.heads; ++h)
      sinks.push_back(2 + static_cast<double>(h));
    const device::Device& inner = opened(*device_);
    const FormatSpec& format = p.dtype == DType::kF16 ? kFp16 : kBf16;
    const auto draw = [&](std::uint64_t seed, std::int64_t count) {
      return kernels::draw_many(seed, count, kernels::Numbers::kUniform, format);
    };
    const std::int64_t kv_elems = kv_rows * p.kv_heads * p.head_dim;
    const auto q = draw(1, q_rows * p.heads * p.head_dim);
    const auto k = draw(2, kv_elems), v = draw(3, kv_elems);
    const auto upload = [&](const std::vector<double>& values) {
      return Buffer::from(inner, kernels::encode_all<std::uint16_t>(format, values));
    };
    const Buffer q16 = upload(q), k16 = upload(k), v16 = upload(v);
    const Buffer workspace(inner, attention.plan().workspace_bytes);
    const Buffer sink = Buffer::from(inner, kernels::to_floats(sinks)),
                 starts_q = Buffer::from(inner, cu_q), starts_kv = Buffer::from(inner, cu_kv);
    const kernels::Output<std::uint16_t> out(inner, q.size());
    const kernels::Output<float> lse(inner, q.size() / static_cast<std::size_t>(p.head_dim));
    attention.run({.q = kernels::pointer_to<const void>(q16),
                   .k = kernels::pointer_to<const void>(k16),
                   .v = kernels::pointer_to<const void>(v16),
                   .out = out.pointer(),
                   .lse = lse.pointer(),
                   .sink = kernels::pointer_to<const float>(sink),
                   .cu_q = kernels::pointer_to<const std::int32_t>(starts_q),
                   .cu_kv = kernels::pointer_to<const std::int32_t>(starts_kv),
                   .workspace = kernels::pointer_to<void>(workspace)});
    device_->synchronize();
    const auto exact = reference::attention({.batch = p.batch,
                                             .heads = p.heads,
                                             .kv_heads = p.kv_heads,
                                             .q_len = p.q_len,
                                             .kv_len = p.kv_len,
                                             .head_dim = p.head_dim,
                                             .v_head_dim = p.head_dim,
                                             .scale = p.scale,
                                             .softcap = p.softcap,
                                             .causal = p.causal,
                                             .window_left = p.window_left,
                                             .window_right = p.window_right,
                                             .sink = sinks,
                                             .cu_seqlens_q = cu_q,
                                             .cu_seqlens_kv = cu_kv},
                                            q, k, v);
    const auto got = out.read();
    double error = 0, all = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      const double difference = decode(format, got[i]) - exact.out[i];
      error += difference * difference;
      all += exact.out[i] * exact.out[i];
    }
    return std::sqrt(error / all);
  }
};
TILEWRIGHT_ON_EVERY_HOPPER(AttentionFp8Test);

TEST_P(AttentionFp8Test, AutoNeverRoundsOperandsOf16Bits) {
  const AttentionPlan chosen = plan([](auto&) {});
  EXPECT_THAT(chosen.kernel, testing::Not(testing::AnyOf("k7", "k8")));
  EXPECT_THAT(chosen.to_string(), HasSubstr("not k8: it would round to e4m3"));
  EXPECT_EQ(chosen.accumulation, Fp8Accumulation::kAuto);
}
TEST_P(AttentionFp8Test, AutoTakesK7ForE4m3AndSaysWhyOthersCannot) {
  const AttentionPlan chosen = plan([](auto& p) { p.dtype = DType::kF8_E4M3; });
  EXPECT_EQ(chosen.kernel, "k7_short");
  EXPECT_EQ(chosen.launches.size(), 1u);
  EXPECT_THAT(chosen.to_string(), HasSubstr("not k6: it does not support operands of e4m3"));
  EXPECT_EQ(chosen.bytes, 64.0 * (3 * 70 * 4 + 2 * 150 * 2) + 4 * 70 * 4);
}
TEST_P(AttentionFp8Test, AutoTakesTheFormOfK7ThatIsFasterAtALength) {
  const auto chosen = [&](std::int64_t head_dim, std::int64_t length, bool causal, auto... change) {
    return plan([&](auto& p) {
      p.dtype = DType::kF8_E4M3, p.fp8.v_layout = Fp8ValueLayout::kColumns;
      p.head_dim = head_dim, p.q_len = p.kv_len = length, p.causal = causal;
      p.heads = p.kv_heads = 2048 / head_dim, p.batch = 16384 / length;
      (change(p), ...);
    });
  };
  const AttentionPlan small = chosen(64, 512, false);
  EXPECT_EQ(small.kernel, "k7_short");
  EXPECT_EQ(small.launches.at(0).entry, "attention_k7_d64_short");
  EXPECT_EQ(small.tile_keys, 128);
  EXPECT_THAT(small.to_string(), HasSubstr("not k7: it is expected to take 1.1"));
  EXPECT_EQ(chosen(64, 4096, false).kernel, "k7");
  EXPECT_EQ(chosen(128, 512, true).kernel, "k7");
  const auto in_rows = [](auto& p) { p.fp8.v_layout = Fp8ValueLayout::kRows; };
  EXPECT_EQ(chosen(64, 512, true, in_rows).launches.at(0).entry, "attention_k7_d64_rows_short");
  EXPECT_EQ(chosen(128, 4096, true).kernel, "k7");
  EXPECT_EQ(chosen(256, 512, false).kernel, "k7") << "the only form";
  const AttentionPlan blocks =
      chosen(128, 512, false, [](auto& p) { p.fp8.scales = ScaleSharing::kBlock; });
  EXPECT_EQ(blocks.kernel, "k7");
  EXPECT_THAT(blocks.to_string(), HasSubstr("not k7_short: it has no form for head_dim 128"));
  const AttentionPlan two_levels =
      chosen(64, 512, false, [](auto& p) { p.fp8.accumulation = Fp8Accumulation::kTwoLevel; });
  EXPECT_EQ(two_levels.kernel, "k7");
  EXPECT_EQ(two_levels.accumulation, Fp8Accumulation::kTwoLevel);
}
TEST_P(AttentionFp8Test, TilesAreDrawnWhereTheLastOneHasFewerRows) {
  const auto workspace = [&](std::int64_t length) {
    return plan([&](auto& p) { p.dtype = DType::kF8_E4M3, p.kernel = "k7", p.q_len = length; })
        .workspace_bytes;
  };
  EXPECT_GT(workspace(1024), 0u);
  EXPECT_EQ(workspace(2 * 192), 0u);
  EXPECT_EQ(workspace(100), 0u) << "the only one of its head";
}
TEST_P(AttentionFp8Test, EveryFormOfK7HasRates) {
  for (const kernels::K7Variant& variant : kernels::kK7Variants) {
    const std::string_view form = variant.name;
    const std::string name =
        fmt::format("k7{}", form.substr(std::min(form.find('_'), form.size())));
    EXPECT_TRUE(std::ranges::any_of(kAttentionRates, [&](const AttentionRates& rates) {
      return rates.kernel == name && rates.head_dim == variant.head_dim;
    })) << variant.name;
  }
}
TEST_P(AttentionFp8Test, SumsGetASecondLevelWhereTheBoundSaysSo) {
  const auto accumulation = [&](std::int64_t kv_len, std::int64_t window) {
    return plan([&](auto& p) {
             p.dtype = DType::kF8_E4M3, p.kv_len = kv_len;
             if (window >= 0) p.window_left = window, p.causal = true;
           })
        .accumulation;
  };
  EXPECT_EQ(accumulation(4096, -1), Fp8Accumulation::kOneLevel);
  EXPECT_EQ(accumulation(4097, -1), Fp8Accumulation::kTwoLevel);
  EXPECT_EQ(accumulation(100000, 500), Fp8Accumulation::kOneLevel) << "few keys are seen";
  const AttentionPlan asked = plan([](auto& p) {
    p.dtype = DType::kF8_E4M3, p.kv_len = 100000;
    p.fp8.accumulation = Fp8Accumulation::kOneLevel;
  });
  EXPECT_EQ(asked.accumulation, Fp8Accumulation::kOneLevel);
  EXPECT_THAT(asked.accumulation_reason, HasSubstr("as asked for; 100000 keys lose at most 38 %"));
  EXPECT_EQ(asked.accumulation_keys, 0);
  const AttentionPlan two = plan([](auto& p) { p.dtype = DType::kF8_E4M3, p.kv_len = 100000; });
  EXPECT_GT(two.accumulation_keys, 0);
  EXPECT_LE(two.accumulation_keys, 256);
  EXPECT_EQ(two.accumulation_keys % two.tile_keys, 0);
}
TEST_P(AttentionFp8Test, K8PreparesAndThenAttends) {
  const AttentionPlan chosen = plan([](auto& p) { p.kernel = "k8"; });
  ASSERT_EQ(chosen.launches.size(), 2u);
  EXPECT_EQ(chosen.launches[0].entry, "attention_k8_prepare_bf16_d64");
  EXPECT_EQ(chosen.launches[1].entry, "attention_k7_d64_block");
  const AttentionPlan plain = plan([](auto& p) { p.kernel = "k7"; });
  ASSERT_EQ(plain.launches.size(), 3u) << "factors of heads need a pass before";
  EXPECT_EQ(plain.launches[2].entry, "attention_k7_d64");
  EXPECT_TRUE(plan([](auto& p) { p.kernel = "k8", p.q_len = 0; }).launches.empty());
}
TEST_P(AttentionFp8Test, SaysWhatItCannotDo) {
  const auto refused = [&](auto change, const char* part) {
    try {
      plan(change);
      ADD_FAILURE() << "nothing was thrown; expected " << part;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(part));
    }
  };
  refused([](auto& p) { p.dtype = DType::kF8_E4M3, p.kernel = "k8"; }, "operands of e4m3");
  refused([](auto& p) { p.dtype = DType::kF8_E4M3, p.head_dim = 272; }, "exists for head_dim 64");
  refused([](auto& p) { p.kernel = "k8", p.head_dim = 96; }, "rounds operands of head_dim 64");
  refused([](auto& p) { p.out_dtype = DType::kF16; }, "out_dtype = F16; expected dtype = BF16");
  refused([](auto& p) { p.dtype = DType::kF8_E4M3, p.out_dtype = DType::kF32; }, "out_dtype = F32");
  refused([](auto& p) { p.dtype = DType::kF8_E4M3, p.q_strides = {8, 8, 8}; }, "multiple of 16");
  refused(
      [](auto& p) {
        p.dtype = DType::kF8_E4M3, p.fp8.v_layout = Fp8ValueLayout::kColumns;
        p.v_strides = {64 * 2 * 144, 144, 64 * 144};
      },
      "its 160 columns");
}

// Roundings of at most 2^-4 are 0.026 in the mean square: of weights and of values; q and k,
// uniform in (-2, 2), move scores of deviation 1.3 by 1.3 * 0.026 * sqrt(2) = 0.05: all, 0.062.
// A key at the wrong place, or a block with another's factor, is an error of the order of 1.
TEST_P(AttentionFp8Test, K7AndK8OfOperandsOf16Bits) {
  for (const char* const kernel : {"k7", "k8"}) {
    for (const std::int64_t head_dim : {64, 128, 256}) {
      for (const bool causal : {false, true}) {
        SCOPED_TRACE(fmt::format("{}, head_dim {}, causal {}", kernel, head_dim, causal));
        EXPECT_LE(relative_rms(with(kSmall,
                                    [&](auto& p) {
                                      p.head_dim = head_dim, p.causal = causal, p.q_len = 130;
                                      p.kernel = kernel;
                                    })),
                  0.08);
      }
    }
  }
}
TEST_P(AttentionFp8Test, EveryOptionOfK7AndK8) {
  for (const char* const kernel : {"k7", "k8"}) {
    SCOPED_TRACE(kernel);
    const auto check = [&](auto change) {
      const AttentionProblem p = with(kSmall, [&](auto& problem) {
        problem.kernel = kernel;
        change(problem);
      });
      EXPECT_LE(relative_rms(p), 0.08) << p.window_left << ", " << p.softcap;
    };
    check([](auto& p) { p.window_left = 20, p.causal = true; });
    check([](auto& p) { p.window_left = 30, p.window_right = 9, p.heads = 2; });
    check([](auto& p) { p.softcap = 1; });
    check([](auto& p) { p.has_sink = true, p.softcap = 3, p.batch = 2; });
    AttentionCase several = packed(
        with(kSmall, [&](auto& p) { p.kernel = kernel, p.causal = true, p.has_sink = true; }),
        {70, 0, 5, 130}, {70, 20, 150, 140});
    EXPECT_LE(
        relative_rms(several.problem, running_sums(several.q_lens), running_sums(several.kv_lens)),
        0.08);
  }
}
TEST_P(AttentionFp8Test, Float16AndTwoLevels) {
  EXPECT_LE(relative_rms(with(kSmall,
                              [](auto& p) {
                                p.dtype = DType::kF16, p.kernel = "k8";
                                p.fp8.accumulation = Fp8Accumulation::kTwoLevel;
                              })),
            0.08);
}

}  // namespace
}  // namespace tilewright::ops
