// K7: e4m3 attention. Everything that K6 can do, both layouts of values, all kinds of scales, both
// kinds of sums; and what the tensor core's short accumulator makes of long rows.
#include "tests/kernels/attention_fp8_check.h"

#include <limits>

namespace tilewright::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

const AttentionProblem kProblems[] = {
    {.q_len = 130, .kv_len = 300},
    {.q_len = 200, .kv_len = 330, .is_causal = true},
    {.q_len = 1, .kv_len = 1, .is_causal = true},
    {.q_len = 1, .kv_len = 500},
    {.q_len = 5, .kv_len = 0},
    {.q_len = 0, .kv_len = 7},
    {.q_len = 150, .kv_len = 61, .is_causal = true},
    {.batch = 2,
     .heads = 4,
     .kv_heads = 2,
     .q_len = 19,
     .kv_len = 75,
     .is_causal = true,
     .gap = 16},
    {.heads = 3,
     .q_len = 66,
     .kv_len = 20,
     .scale = 0.3,
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
    {.heads = 2, .is_causal = true, .q_lens = {5, 0, 130, 1, 17}, .kv_lens = {9, 3, 200, 1, 10}},
    {.q_lens = {70, 3}, .kv_lens = {0, 150}, .window_left = 40},
};

class AttentionFp8 : public Fp8AttentionTest {
 protected:
  void check_variants(int head_dim, Fp8Values values) {
    for (const K7Variant& variant : kK7Variants) {
      if (variant.head_dim == head_dim && variant.values == values) check_variant(variant);
    }
  }

 private:
  // All features in the variant that has least else to do, with both kinds of scales that it reads;
  // of the others several tiles, several heads, sequences that end inside a tile.
  void check_variant(const K7Variant& variant) {
    if (!variant.has_block_scales) {
      bool is_head = false;
      for (AttentionProblem p : kProblems) {
        p.head_dim = variant.head_dim;
        check(variant, p, is_head ? Fp8ScaleKind::kHead : Fp8ScaleKind::kTensor,
              is_head ? kFp16 : kBf16);
        is_head = !is_head;
      }
      return;
    }
    const auto check_both = [&](AttentionProblem p, std::int32_t flush_tiles) {
      p.head_dim = variant.head_dim;
      check(variant, p, Fp8ScaleKind::kBlock, kBf16, flush_tiles);
    };
    check_both({.q_len = 130, .kv_len = 300}, 1);
    check_both({.heads = 2, .kv_heads = 1, .q_len = 200, .kv_len = 330, .is_causal = true}, 2);
    check_both({.q_len = 70, .kv_len = 140, .is_causal = true, .softcap = 2}, 1);
    check_both({.q_lens = {5, 0, 130}, .kv_lens = {9, 3, 200}}, 3);
    check(variant, {.q_len = 40, .kv_len = 150, .head_dim = variant.head_dim}, Fp8ScaleKind::kHead,
          kFp16);
  }
};
TILEWRIGHT_ON_EVERY_DEVICE(AttentionFp8);

TEST_P(AttentionFp8, HeadDim64Columns) {
  check_variants(64, Fp8Values::kColumns);
}
TEST_P(AttentionFp8, HeadDim64Rows) {
  check_variants(64, Fp8Values::kRows);
}
TEST_P(AttentionFp8, HeadDim128Columns) {
  check_variants(128, Fp8Values::kColumns);
}
TEST_P(AttentionFp8, HeadDim128Rows) {
  check_variants(128, Fp8Values::kRows);
}
TEST_P(AttentionFp8, HeadDim256Columns) {
  check_variants(256, Fp8Values::kColumns);
}
TEST_P(AttentionFp8, HeadDim256Rows) {
  check_variants(256, Fp8Values::kRows);
}

}  // namespace
}  // namespace tilewright::kernels
