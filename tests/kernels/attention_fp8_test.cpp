// K7: e4m3 attention. Everything that K6 can do, both layouts of values, all kinds of scales, both
// kinds of sums; and what the tensor core's short accumulator makes of long rows.
#include "kernels/attention/k7/find_variant.h"
#include "tests/kernels/attention_fp8_check.h"

#include <limits>

namespace tilewright::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

const AttentionProblem kProblems[] = {
    {.q_len = 130, .kv_len = 300},
    {.q_len = 200, .kv_len = 330, .is_causal = true},
    {.q_len = 1, .kv_len = 1, .is_causal = true},
    {.q_len = 1, .kv_len = 400},
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

class AttentionFp8 : public Fp8AttentionTest {
 protected:
  void check_variants(int head_dim, Fp8Values values) {
    for (const K7Variant& variant : kK7Variants) {
      if (variant.head_dim == head_dim && variant.values == values) check_variant(variant);
    }
  }

 private:
  // All features in the variant that has least else to do, in turns with both kinds of scales and
  // results; of the others several tiles, several heads, sequences that end inside a tile.
  void check_variant(const K7Variant& variant) {
    if (variant.has_block_scales) {
      check_blocks(variant);
      return;
    }
    const bool is_all = variant.values == Fp8Values::kColumns && !variant.is_short;
    bool is_head = false;
    for (AttentionProblem p : kProblems) {
      if (!is_all && !p.is_packed() && p.gap == 0 && p.q_len != 130) continue;
      p.head_dim = variant.head_dim;
      check(variant, p, is_head ? Fp8ScaleKind::kHead : Fp8ScaleKind::kTensor,
            is_head ? kFp16 : kBf16);
      is_head = !is_head;
    }
  }
  void check_blocks(const K7Variant& variant) {
    const auto check_one = [&](AttentionProblem p, std::int32_t flush_tiles) {
      p.head_dim = variant.head_dim;
      check(variant, p, Fp8ScaleKind::kBlock, kBf16, flush_tiles);
    };
    check_one({.heads = 2, .kv_heads = 1, .q_len = 200, .kv_len = 330, .is_causal = true}, 2);
    check_one({.q_len = 70, .kv_len = 140, .is_causal = true, .softcap = 2}, 1);
    check_one({.q_lens = {5, 0, 130}, .kv_lens = {9, 3, 400}}, 2);
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

// One large product among the keys that come first (they are walked from the last one), then many
// small ones: 2^7 * 448 has its exponent at 2^15, so the tensor core cuts what follows to multiples
// of 2^2, and 2^7 * 2^-6 is less. One level loses all of them, 2047 / 64 of 480; two levels lose
// only those of the first flush.
TEST_P(AttentionFp8, SmallProductsBehindALargeOne) {
  constexpr int kKeys = 2048, kHeadDim = 64;
  // The first key of the last tile, which is walked first.
  const int keys = find_k7_variant(kHeadDim, Fp8Values::kColumns, false, Fp8Sums::kOneLevel)->keys;
  const int large = (kKeys - 1) / keys * keys;
  const AttentionProblem p = {.q_len = 3, .kv_len = kKeys, .head_dim = kHeadDim};
  std::vector<double> values(std::size_t{kKeys} * kHeadDim, 0x1p-6);
  for (int c = 0; c < kHeadDim; ++c) values[large * kHeadDim + c] = 448;
  const Fp8AttentionInputs in(p, values);
  const double exact = (448 + (kKeys - 1) / 64.0) / kKeys;
  const auto run = [&](Fp8Sums sums, std::int32_t flush_tiles) {
    const K7Variant* variant = find_k7_variant(kHeadDim, Fp8Values::kColumns, false, sums);
    return launch(device(), p, *variant, in, kBf16, flush_tiles).out;
  };
  // Rounded to bf16.
  for (const double x : run(Fp8Sums::kOneLevel, 1)) ASSERT_EQ(x, 448.0 / kKeys);
  for (const std::int32_t flush_tiles : {1, 4}) {
    const double lost = flush_tiles * 128 * 0x1p-6 / kKeys;  // at most
    for (const double x : run(Fp8Sums::kTwoLevel, flush_tiles)) {
      ASSERT_LE(x, exact * (1 + 0x1p-8));
      ASSERT_GE(x, exact * (1 - 0x1p-8) - lost);
    }
  }
}

}  // namespace
}  // namespace tilewright::kernels
