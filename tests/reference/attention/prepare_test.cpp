#include "reference/attention/prepare.h"

#include "formats/minifloat.h"
#include "reference/rotation/hadamard.h"
#include "reference/rotation/rope.h"
#include "tests/reference/inputs.h"

#include <algorithm>
#include <cmath>

namespace tilewright::reference {
namespace {

std::vector<float> draw(std::uint64_t seed, std::int64_t count) {
  const auto values = random_doubles(seed, count);
  return {values.begin(), values.end()};
}
std::vector<double> widen(const std::vector<float>& x) {
  return {x.begin(), x.end()};
}

AttentionPrepareParams params(std::int64_t head_dim) {
  AttentionPrepareParams p;
  p.batch = 2;
  p.heads = 4;
  p.kv_heads = 2;
  p.rows = 5;
  p.head_dim = head_dim;
  return p;
}

// Codes differ from the exact numbers by at most 2^-4 of themselves, or half the smallest step,
// 2^-10 of the factor; fp32 in between, log2(head_dim) + 4 roundings of at most the largest sum,
// adds less than a hundredth of that.
void expect_close(const AttentionPrepareParams& p, const std::vector<float>& x,
                  const std::vector<double>& exact) {
  const Fp8Operand operand = prepare_attention_operand(p, x);
  const auto got = dequantize_attention_operand(p, operand);
  double largest = 0;
  for (const float descale : operand.descale) largest = std::max(largest, double(descale));
  for (std::size_t i = 0; i < exact.size(); ++i) {
    ASSERT_LE(std::abs(got[i] - exact[i]),
              1.01 * std::max(0x1p-4 * std::abs(exact[i]), 0x1p-10 * largest))
        << i;
  }
}

TEST(AttentionPrepareReference, RoundsWithEveryKindOfScale) {
  for (const auto scales : {ScaleSharing::kTensor, ScaleSharing::kHead, ScaleSharing::kBlock}) {
    AttentionPrepareParams p = params(16);
    p.scales = scales;
    p.block_rows = 2;
    const auto x = draw(1, 2 * 5 * 4 * 16);
    expect_close(p, x, widen(x));
    const std::size_t count = scales == ScaleSharing::kTensor ? 1
                              : scales == ScaleSharing::kHead ? 2 * 2
                                                              : 2 * 4 * 3;
    EXPECT_EQ(prepare_attention_operand(p, x).descale.size(), count);
  }
}

TEST(AttentionPrepareReference, APartWithTheAmaxOfAllHasTheSameCodes) {
  AttentionPrepareParams p = params(16);
  p.batch = 1;
  auto x = draw(2, 5 * 4 * 16);
  x.back() = -9;
  const Fp8Operand whole = prepare_attention_operand(p, x);
  const std::vector<float> amax = attention_amax(p, x);
  EXPECT_EQ(amax, std::vector<float>{9});
  p.rows = 2;
  p.least_amax = amax[0];
  const Fp8Operand part = prepare_attention_operand(p, std::span(x).first(2 * 4 * 16));
  EXPECT_EQ(part.descale, whole.descale);
  EXPECT_TRUE(std::ranges::equal(part.codes, std::span(whole.codes).first(part.codes.size())));

  p.least_amax = std::nanf("");  // one elsewhere spoils all
  EXPECT_TRUE(std::isnan(attention_amax(p, std::span(x).first(2 * 4 * 16))[0]));
}

TEST(AttentionPrepareReference, RotatesAsTheFloat64Hadamard) {
  AttentionPrepareParams p = params(64);
  std::vector<float> signs;
  for (int i = 0; i < 64; ++i) signs.push_back(i * 7 % 3 == 0 ? -1.0f : 1.0f);
  p.is_rotated = true;
  p.signs = signs;
  const auto x = draw(2, 2 * 5 * 4 * 64);
  expect_close(p, x, hadamard({.rows = 40, .dim = 64, .scale = 0.125}, widen(x), widen(signs)));
}

TEST(AttentionPrepareReference, TurnsNeighboursAsTheFloat64Rope) {
  AttentionPrepareParams p = params(16);
  std::vector<std::int32_t> positions;
  for (int i = 0; i < 10; ++i) positions.push_back(i * 3 % 7);
  const auto frequencies = rope_frequencies(16, 100);
  std::vector<float> angles;
  for (int at = 0; at < 7; ++at) {
    for (const double f : frequencies) angles.push_back(static_cast<float>(std::cos(at * f)));
    for (const double f : frequencies) angles.push_back(static_cast<float>(std::sin(at * f)));
  }
  p.rope = RopePairing::kInterleaved;
  p.rotary_dim = 16;
  p.angles = angles;
  p.positions = positions;
  const auto x = draw(3, 2 * 5 * 4 * 16);
  const RopeParams exact = {.tokens = 10, .heads = 4, .head_dim = 16, .rotary_dim = 16};
  expect_close(p, x, rope(exact, widen(x), positions, frequencies));
  // Halves are neighbours in another order.
  std::vector<float> halves(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) halves[i / 16 * 16 + i % 2 * 8 + i % 16 / 2] = x[i];
  const auto pairs = prepare_attention_operand(p, x);
  p.rope = RopePairing::kHalves;
  const auto split = prepare_attention_operand(p, halves);
  for (std::size_t i = 0; i < x.size(); ++i)
    EXPECT_EQ(split.codes[i / 16 * 16 + i % 2 * 8 + i % 16 / 2], pairs.codes[i]);
}

TEST(AttentionPrepareReference, OneNanSpoilsWhatSharesItsFactor) {
  AttentionPrepareParams p = params(16);
  p.scales = ScaleSharing::kBlock;
  p.block_rows = 2;
  auto x = draw(4, 2 * 5 * 4 * 16);
  x[20] = NAN;  // batch 0, row 0, head 1
  const Fp8Operand operand = prepare_attention_operand(p, x);
  for (std::size_t i = 0; i < operand.descale.size(); ++i)
    EXPECT_EQ(std::isnan(operand.descale[i]), i == 3) << i;
  EXPECT_TRUE(std::isnan(operand.descale_max[0]));
  EXPECT_FALSE(std::isnan(operand.descale_max[1]));
}

TEST(AttentionPrepareReference, PermutesKeysInGroupsOf16) {
  AttentionPrepareParams p = params(1);
  p.batch = p.heads = p.kv_heads = 1;
  p.rows = 18;
  std::vector<std::uint8_t> codes;
  for (std::uint8_t i = 0; i < 18; ++i) codes.push_back(static_cast<std::uint8_t>(i + 1));
  const std::vector<std::uint8_t> expected = {1,  2, 9, 10, 3,  4,  11, 12, 5, 6, 13,
                                              14, 7, 8, 15, 16, 17, 18, 0,  0, 0, 0,
                                              0,  0, 0, 0,  0,  0,  0,  0,  0, 0};
  EXPECT_EQ(transpose_values(p, codes), expected);
  const std::vector<std::int32_t> cu = {0, 1, 18};
  p.batch = 2;
  p.cu_seqlens = cu;
  const auto packed = transpose_values(p, codes);
  EXPECT_EQ(packed.size(), 32u + 16 * 3);
  EXPECT_EQ(packed[0], 1);
  EXPECT_EQ(packed[32], 2) << "cu = 1 rounded up to 16, and 16 more";
}

TEST(AttentionPrepareReference, SaysWhatIsWrong) {
  AttentionPrepareParams p = params(24);
  expect_invalid([&] { prepare_attention_operand(p, draw(5, 7)); },
                 {"x", "[rows, heads, head_dim]"});
  p.is_rotated = true;
  const std::vector<float> signs(24, 1.0f);
  p.signs = signs;
  expect_invalid([&] { prepare_attention_operand(p, draw(5, 2 * 5 * 4 * 24)); },
                 {"head_dim = 24", "power of two"});
}

}  // namespace
}  // namespace tilewright::reference
