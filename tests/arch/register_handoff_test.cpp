// From accumulator to operand through registers: which instructions need nothing, a renumbering, or
// an exchange.

#include "layout/register_handoff.h"

#include "arch/fragments/mma_sync.h"
#include "arch/fragments/wgmma.h"
#include "base/error.h"
#include "layout/parse.h"

#include <numeric>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright::arch {
namespace {

using testing::HasSubstr;

TEST(RegisterHandoff, Bf16WgmmaIsReadAsItIs) {
  for (const int n : {16, 64, 128, 176, 256}) {
    const RegisterHandoff handoff = analyze_register_handoff(wgmma_c(n), kWgmmaA16, 64, n, 16);
    EXPECT_EQ(handoff.verdict, RegisterVerdict::kAsIs) << n;
    EXPECT_TRUE(handoff.moves.empty());
    std::vector<int> in_order(static_cast<std::size_t>(n / 2));
    std::iota(in_order.begin(), in_order.end(), 0);
    EXPECT_EQ(handoff.source_value, in_order);
  }
  const RegisterHandoff warp = analyze_register_handoff(
      "((4,8),(2,2,2)):((32,1),(16,8,128))"_layout, kMmaM16N8K16.a_tv, 16, 16, 16);
  EXPECT_EQ(warp.verdict, RegisterVerdict::kAsIs) << "two n-tiles of m16n8 side by side";
}

// slot 4q + 2h + c stands for key 8h + 2q + c.
TEST(RegisterHandoff, Fp8WgmmaNeedsTheSixteenKeyPermutation) {
  const RegisterHandoff handoff = analyze_register_handoff(wgmma_c(128), kWgmmaA8, 64, 128, 32);
  ASSERT_EQ(handoff.verdict, RegisterVerdict::kPermuteKeys);
  EXPECT_EQ(handoff.key_period, 16);
  for (int slot = 0; slot < 128; ++slot) {
    const int q = slot % 16 / 4, h = slot % 4 / 2, c = slot % 2;
    EXPECT_EQ(handoff.key_of_slot[static_cast<std::size_t>(slot)],
              slot / 16 * 16 + 8 * h + 2 * q + c);
  }
  // The eight values of two neighbouring n8 columns fill two registers: d0 d1 d4 d5 | d2 d3 d6 d7.
  EXPECT_EQ(std::vector<int>(handoff.source_value.begin(), handoff.source_value.begin() + 8),
            (std::vector<int>{0, 1, 4, 5, 2, 3, 6, 7}));
  EXPECT_EQ(handoff.exchange_group, 4) << "without it, quads would have to exchange";
  EXPECT_EQ(handoff.moves.size(), 128u * 64 * 3 / 4);
  EXPECT_THAT(handoff.explain(), HasSubstr("0 1 8 9 2 3 10 11 4 5 12 13 6 7 14 15"));
}

// Whatever the verdict, following it gives every thread the operand elements it needs.
void expect_sound(const Layout& c, const Layout& a, int m, int n, int k) {
  const RegisterHandoff handoff = analyze_register_handoff(c, a, m, n, k);
  const auto step_values = static_cast<int>(size(a, 1));
  std::set<std::pair<int, int>> moved;
  for (const Move& move : handoff.moves) moved.emplace(move.thread, move.value);
  for (int t = 0; t < size(a, 0); ++t) {
    for (int v = 0; v < handoff.consumer_values; ++v) {
      const auto at = static_cast<int>(a(t, v % step_values));
      const int row = at % m, slot = at / m + v / step_values * k;
      if (!handoff.source_value.empty()) {
        const int key = handoff.key_of_slot[static_cast<std::size_t>(slot)];
        EXPECT_EQ(c(t, handoff.source_value[static_cast<std::size_t>(v)]), row + m * key);
      }
      if (moved.contains({t, v})) continue;
      // Not moved: some register of the thread holds the element under its own key.
      bool held = false;
      for (int r = 0; r < handoff.producer_values; ++r) held |= c(t, r) == row + m * slot;
      EXPECT_TRUE(held) << t << "," << v;
    }
  }
  for (const Move& move : handoff.moves) {
    const auto at = static_cast<int>(a(move.thread, move.value % step_values));
    EXPECT_EQ(c(move.from_thread, move.from_value),
              at % m + m * (at / m + move.value / step_values * k));
    EXPECT_EQ(move.thread / handoff.exchange_group, move.from_thread / handoff.exchange_group);
  }
}

TEST(RegisterHandoff, EveryVerdictIsSound) {
  expect_sound(wgmma_c(64), kWgmmaA16, 64, 64, 16);
  expect_sound(wgmma_c(64), kWgmmaA8, 64, 64, 32);
  expect_sound(wgmma_c(64), kWgmmaATf32, 64, 64, 8);
  const Layout c_two = "((4,8),(2,2,4)):((32,1),(16,8,128))"_layout;
  expect_sound(c_two, kMmaM16N8K32.a_tv, 16, 32, 32);
  expect_sound("((8,4),4):((1,32),8)"_layout, "((8,4),4):((1,32),8)"_layout, 8, 16, 16);
}

TEST(RegisterHandoff, NeighbourRowsMustBeExchanged) {
  // The accumulator's rows belong to other threads than the operand's: no order of keys can help.
  const Layout c = "((4,8),2):((8,1),32)"_layout;  // thread -> row t/4
  const Layout a = "((8,4),2):((1,8),32)"_layout;  // thread -> row t%8
  const RegisterHandoff handoff = analyze_register_handoff(c, a, 8, 8, 8);
  EXPECT_EQ(handoff.verdict, RegisterVerdict::kExchange);
  EXPECT_EQ(handoff.exchange_group, 32);
  EXPECT_FALSE(handoff.moves.empty());
  EXPECT_THAT(handoff.explain(), HasSubstr("no order of the keys avoids it"));
  expect_sound(c, a, 8, 8, 8);
}

TEST(RegisterHandoff, RenamedRegistersAreFree) {
  const Layout c = "((4,8),(2,2)):((16,1),(64,8))"_layout,
               a = "((4,8),(2,2)):((16,1),(8,64))"_layout;
  const RegisterHandoff handoff = analyze_register_handoff(c, a, 8, 16, 16);
  EXPECT_EQ(handoff.verdict, RegisterVerdict::kReorder);
  EXPECT_EQ(handoff.source_value, (std::vector<int>{0, 2, 1, 3}));
}

TEST(RegisterHandoff, WhatDoesNotFitIsRefused) {
  EXPECT_THROW(analyze_register_handoff(wgmma_c(64), kMmaM16N8K16.a_tv, 64, 64, 16), Error);
  EXPECT_THROW(analyze_register_handoff(wgmma_c(72), kWgmmaA16, 64, 72, 16), Error);
  EXPECT_THROW(analyze_register_handoff(wgmma_c(64), kWgmmaA16, 16, 64, 16), Error);
}

}  // namespace
}  // namespace tilewright::arch
