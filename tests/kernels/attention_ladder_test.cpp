// The first rungs of the attention ladder against the float64 reference.
#include "kernels/attention/k1_naive.h"
#include "kernels/attention/k2_online_softmax.h"
#include "kernels/attention/k3_tma.h"
#include "kernels/attention/k4_1_wgmma_qk.h"
#include "kernels/attention/k4_2_wgmma.h"
#include "tests/kernels/attention_check.h"

namespace tilewright::kernels {
namespace {

/// Lengths that no tile divides, that are shorter than one, and none at all. 0 queries: no launch.
constexpr struct {
  int q_len, kv_len;
} kLengths[] = {{64, 128}, {70, 130}, {1, 1},    {1, 200}, {33, 64},
                {5, 0},    {0, 7},    {130, 61}, {3, 500}};

class AttentionLadder : public AttentionTest {
 protected:
  /// Everything that all rungs can do, in both types in turn.
  template <class Check>
  void check_rung(int head_dim, Check&& check_one) {
    bool is_fp16 = head_dim == 64;
    const auto check_next = [&](const AttentionProblem& p) {
      check_one(p, is_fp16 ? kFp16 : kBf16);
      is_fp16 = !is_fp16;
    };
    for (const auto& [q_len, kv_len] : kLengths) {
      for (const bool is_causal : {false, true}) {
        check_next(
            {.q_len = q_len, .kv_len = kv_len, .head_dim = head_dim, .is_causal = is_causal});
      }
    }
    check_next({.batch = 2,
                .heads = 4,
                .kv_heads = 2,
                .q_len = 19,
                .kv_len = 75,
                .head_dim = head_dim,
                .is_causal = true,
                .gap = 8});
    check_next({.batch = 2,
                .heads = 3,
                .kv_heads = 1,
                .q_len = 66,
                .kv_len = 20,
                .head_dim = head_dim,
                .scale = 0.5,
                .has_lse = false,
                .is_heads_first = true,
                .gap = 16});
    check_next(
        {.q_len = 70, .kv_len = 140, .head_dim = head_dim, .window_left = 20, .window_right = 3});
  }
  void check_fused_rung(int head_dim, const AttentionKernelUnderTest& kernel) {
    check_rung(head_dim, [&](const AttentionProblem& p, const FormatSpec& format) {
      check(kernel, p, format);
    });
  }

  static void launch_naive(const Device& device, const std::string& type_and_dim,
                           const AttentionParams& params) {
    const auto launch = [&](const std::string& entry, const K1Launch& shape) {
      const auto extent = [](std::int32_t n) { return static_cast<std::uint32_t>(n); };
      const auto& grid = shape.grid;
      if (grid[0] == 0 || grid[1] == 0 || grid[2] == 0) return;
      run_kernel(device, "attention_k1_" + entry,
                 {.grid = {extent(grid[0]), extent(grid[1]), extent(grid[2])},
                  .block = {extent(shape.block[0]), extent(shape.block[1])}},
                 params);
    };
    launch("scores" + type_and_dim, k1_scores_launch(params));
    launch("softmax", k1_softmax_launch(params));
    launch("output" + type_and_dim, k1_output_launch(params));
  }
};
TILEWRIGHT_ON_EVERY_DEVICE(AttentionLadder);

TEST_P(AttentionLadder, K1Naive) {
  for (const int head_dim : {64, 128}) {
    check_rung(head_dim, [&](const AttentionProblem& p, const FormatSpec& format) {
      check({.stem = "attention_k1", .tile = k1_tile}, launch_naive, p, format);
    });
  }
}

TEST_P(AttentionLadder, K2OnlineSoftmax) {
  for (const int head_dim : {64, 128})
    check_fused_rung(head_dim, {.stem = "attention_k2", .tile = k2_tile});
}

TEST_P(AttentionLadder, K31TmaOneStage) {
  for (const int head_dim : {64, 128}) {
    check_fused_rung(head_dim,
                     {.stem = "attention_k3_1", .tile = k3_1_tile, .maps = AttentionMaps::kPlain});
  }
}
TEST_P(AttentionLadder, K32TmaTwoStages) {
  for (const int head_dim : {64, 128}) {
    check_fused_rung(head_dim,
                     {.stem = "attention_k3_2", .tile = k3_2_tile, .maps = AttentionMaps::kPlain});
  }
}
TEST_P(AttentionLadder, K33TmaFiveStages) {
  for (const int head_dim : {64, 128}) {
    check_fused_rung(head_dim,
                     {.stem = "attention_k3_3", .tile = k3_3_tile, .maps = AttentionMaps::kPlain});
  }
}

TEST_P(AttentionLadder, K41WgmmaQk) {
  for (const int head_dim : {64, 128}) {
    check_fused_rung(head_dim, {.stem = "attention_k4_1",
                                .tile = k4_1_tile,
                                .maps = AttentionMaps::kSwizzled,
                                .arithmetic = {.has_tensor_scores = true}});
  }
}

TEST_P(AttentionLadder, K42Wgmma) {
  for (const int head_dim : {64, 128, 256}) {
    check_fused_rung(head_dim,
                     {.stem = "attention_k4_2",
                      .tile = k4_2_tile,
                      .maps = AttentionMaps::kSwizzled,
                      .arithmetic = {.has_tensor_scores = true, .has_tensor_values = true}});
  }
}

}  // namespace
}  // namespace tilewright::kernels
