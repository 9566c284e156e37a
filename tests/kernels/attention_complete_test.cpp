// The rungs that can do everything: what the first ones can, and packed sequences, softcap and
// sink.
#include "kernels/attention/forward/k6_forward.h"
#include "kernels/attention/k5_warp_specialized.h"
#include "kernels/attention/k6_1_persistent.h"
#include "kernels/attention/k6_2_turns.h"
#include "kernels/attention/k6_3_overlap.h"
#include "tests/kernels/attention_check.h"

#include <limits>

namespace tilewright::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr AttentionArithmetic kTensorCores = {.has_tensor_scores = true, .has_tensor_values = true};

const AttentionProblem kProblems[] = {
    {.q_len = 130, .kv_len = 300},
    {.q_len = 200, .kv_len = 330, .is_causal = true},
    {.q_len = 1, .kv_len = 1, .is_causal = true},
    {.q_len = 1, .kv_len = 500},
    {.q_len = 5, .kv_len = 0},
    {.q_len = 0, .kv_len = 7},
    {.q_len = 150, .kv_len = 61, .is_causal = true},
    {.batch = 2, .heads = 4, .kv_heads = 2, .q_len = 19, .kv_len = 75, .is_causal = true, .gap = 8},
    {.heads = 3,
     .q_len = 66,
     .kv_len = 20,
     .scale = 0.5,
     .has_lse = false,
     .is_heads_first = true,
     .gap = 16},
    {.q_len = 200, .kv_len = 260, .window_left = 20, .window_right = 3},
    {.q_len = 70, .kv_len = 300, .is_causal = true, .softcap = 2},
    {.heads = 4,
     .kv_heads = 1,
     .q_len = 33,
     .kv_len = 150,
     .is_causal = true,
     .sink = {0.5f, kInfinity, -kInfinity, 20}},
    // The first 20 rows see no key: nothing but the sink.
    {.heads = 4,
     .kv_heads = 1,
     .q_len = 50,
     .kv_len = 30,
     .is_causal = true,
     .sink = {0.5f, kInfinity, -kInfinity, 20}},
    {.heads = 2, .is_causal = true, .q_lens = {5, 0, 130, 1, 17}, .kv_lens = {9, 3, 200, 1, 10}},
    {.q_lens = {70, 3}, .kv_lens = {0, 150}, .window_left = 40},
};

class AttentionComplete : public AttentionTest {
 protected:
  void check_all(int head_dim, const AttentionKernelUnderTest& kernel) {
    for (AttentionProblem p : kProblems) {
      p.head_dim = head_dim;
      check(kernel, p, kBf16);
    }
    check(kernel, {.q_len = 70, .kv_len = 150, .head_dim = head_dim, .is_causal = true}, kFp16);
  }
  /// Of a variant: several tiles, several heads, sequences that end inside a tile.
  void check_some(int head_dim, const AttentionKernelUnderTest& kernel) {
    check(kernel, {.q_len = 130, .kv_len = 300, .head_dim = head_dim}, kBf16);
    check(kernel,
          {.heads = 2, .q_len = 200, .kv_len = 330, .head_dim = head_dim, .is_causal = true},
          kBf16);
    check(kernel, {.head_dim = head_dim, .q_lens = {5, 0, 130}, .kv_lens = {9, 3, 200}}, kBf16);
  }
};
TILEWRIGHT_ON_EVERY_DEVICE(AttentionComplete);

TEST_P(AttentionComplete, K5WarpSpecialized) {
  for (const int head_dim : {64, 128, 256}) {
    check_all(head_dim, {.stem = "attention_k5",
                         .tile = k5_tile,
                         .maps = AttentionMaps::kSwizzled,
                         .arithmetic = kTensorCores});
  }
}

class AttentionCompleteSteps : public AttentionComplete {
 protected:
  void check_step(const char* stem, AttentionTile (*tile)(int)) {
    for (const int head_dim : {64, 128}) {
      check_all(head_dim, {.stem = stem,
                           .tile = tile,
                           .maps = AttentionMaps::kSwizzled,
                           .arithmetic = kTensorCores});
    }
  }
};
TILEWRIGHT_ON_EVERY_DEVICE(AttentionCompleteSteps);

TEST_P(AttentionCompleteSteps, K61Persistent) {
  check_step("attention_k6_1", k6_1_tile);
}
TEST_P(AttentionCompleteSteps, K62Turns) {
  check_step("attention_k6_2", k6_2_tile);
}
TEST_P(AttentionCompleteSteps, K63Overlap) {
  check_step("attention_k6_3", k6_3_tile);
}

AttentionKernelUnderTest kernel_of(const K6Variant& variant) {
  const std::string name = variant.name;  // d128_long
  return {.stem = "attention_k6",
          .tile = [variant](int) { return variant.tile(); },
          .maps = AttentionMaps::kSwizzled,
          .arithmetic = kTensorCores,
          .ending = name.substr(std::min(name.find('_'), name.size()))};
}

#ifdef __SANITIZE_ADDRESS__
// What a sanitizer can find is in the simulator, which is the same code for every variant.
constexpr bool kHasVariants = false;
#else
constexpr bool kHasVariants = true;
#endif

class AttentionCompleteK6 : public AttentionComplete {
 protected:
  void check_head_dim(int head_dim) {
    for (const K6Variant& variant : kK6Variants) {
      const AttentionKernelUnderTest kernel = kernel_of(variant);
      if (variant.head_dim != head_dim) continue;
      if (kernel.ending.empty()) {
        check_all(head_dim, kernel);
      } else if (kHasVariants) {
        check_some(head_dim, kernel);
      }
    }
  }
};
TILEWRIGHT_ON_EVERY_DEVICE(AttentionCompleteK6);

TEST_P(AttentionCompleteK6, HeadDim64) {
  check_head_dim(64);
}
TEST_P(AttentionCompleteK6, HeadDim96) {
  check_head_dim(96);
}
TEST_P(AttentionCompleteK6, HeadDim128) {
  check_head_dim(128);
}
TEST_P(AttentionCompleteK6, HeadDim256) {
  check_head_dim(256);
}

}  // namespace
}  // namespace tilewright::kernels
