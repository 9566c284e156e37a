#include "reference/sparse_attention/compressor.h"

#include "reference/model/rms_norm.h"
#include "reference/rotation/rope.h"
#include "tests/reference/golden.h"
#include "tests/reference/inputs.h"

#include <cmath>

namespace tilewright::reference {
namespace {

using Doubles = std::vector<double>;

TEST(Compressor, ByHandWithoutOverlap) {
  // ratio 2, one channel: scores ln 3 and 0 with ape (0, ln 2), so weights 3 and 2.
  const CompressorParams params{.ratio = 2, .dim = 1, .overlap = false};
  const Doubles values = {10, 20, 5}, gates = {std::log(3), 0, 7}, ape = {0, std::log(2)};
  expect_close(compressor_pool(params, values, gates, ape), Doubles{(3 * 10 + 2 * 20) / 5.0});
}

TEST(Compressor, ByHandWithOverlap) {
  // ratio 2, one channel in two halves (A, B), all scores 0: an entry is the mean of the A halves
  // of the group before and the B halves of its own; the first has only its own.
  const CompressorParams params{.ratio = 2, .dim = 1, .overlap = true};
  const Doubles values = {1, 10, 2, 20, 3, 30, 4, 40}, gates(8, 0), ape(4, 0);
  expect_close(compressor_pool(params, values, gates, ape),
               Doubles{(10 + 20) / 2.0, (1 + 2 + 30 + 40) / 4.0});
  Doubles swapped = values;  // the halves exchanged give something else
  for (size_t i = 0; i < swapped.size(); i += 2) std::swap(swapped[i], swapped[i + 1]);
  EXPECT_NE(compressor_pool(params, swapped, gates, ape),
            compressor_pool(params, values, gates, ape));
}

TEST(Compressor, ApeIsOfThePositionInTheGroupAndOfEveryChannel) {
  const CompressorParams params{.ratio = 4, .dim = 2, .overlap = true};
  const auto values = random_doubles(1, 8 * 4), gates = random_doubles(2, 8 * 4);
  const auto ape = random_doubles(3, 4 * 4);
  Doubles shifted = gates;
  for (size_t i = 0; i < shifted.size(); ++i) shifted[i] += ape[i % 16];
  expect_close(compressor_pool(params, values, gates, ape),
               compressor_pool(params, values, shifted, Doubles(16, 0)));
}

TEST(Compressor, SnapshotsTakeTokensBackAndResetForgets) {
  const CompressorParams params{.ratio = 4, .dim = 3, .overlap = true};
  const int64_t width = params.width();
  const auto values = random_doubles(1, 16 * width), gates = random_doubles(2, 16 * width);
  const auto ape = random_doubles(3, 4 * width);
  const auto expected = compressor_pool(params, values, gates, ape);
  CompressorState state(params);
  const auto push = [&](CompressorState& to, int64_t t, double noise) {
    Doubles v(values.begin() + t * width, values.begin() + (t + 1) * width);
    for (double& value : v) value += noise;
    return to.push(v, Doubles(gates.begin() + t * width, gates.begin() + (t + 1) * width), ape);
  };
  Doubles entries;
  for (int64_t t = 0; t < 16; ++t) {
    CompressorState draft = state;  // three guesses that are all rejected
    for (int64_t guess = t; guess < std::min<int64_t>(t + 3, 16); ++guess) push(draft, guess, 9);
    const auto entry = push(state, t, 0);
    EXPECT_EQ(entry.empty(), t % 4 != 3);
    entries.insert(entries.end(), entry.begin(), entry.end());
  }
  EXPECT_EQ(entries, expected);
  state.reset();
  EXPECT_EQ(state.num_tokens(), 0);
  entries.clear();
  for (int64_t t = 0; t < 4; ++t) entries = push(state, t, 0);
  EXPECT_EQ(entries, Doubles(expected.begin(), expected.begin() + 3))
      << "the first entry of a new sequence has no group before it";
}

// Without snapshots: the ring has three rows to spare. A state that begins late has no older ones.
TEST(Compressor, SpareRowsTakeTokensBack) {
  const CompressorParams params{.ratio = 4, .dim = 3, .overlap = true};
  const auto row = [](std::uint64_t seed) { return random_doubles(seed, 6); };
  const auto ape = random_doubles(3, 4 * 6);
  CompressorState straight(params), back(params, 3), late(params, 0, 8);
  for (std::uint64_t t = 0; t < 24; ++t) {
    for (std::uint64_t guess = 0; guess < 3; ++guess) back.push(row(900 + t), row(guess), ape);
    back.take_back(3);
    const Doubles expected = straight.push(row(t), row(50 + t), ape);
    EXPECT_EQ(back.push(row(t), row(50 + t), ape), expected);
    if (t < 8) continue;
    const Doubles of_late = late.push(row(t), row(50 + t), ape);
    if (t < 15) continue;
    EXPECT_EQ(of_late, expected);
  }
  expect_invalid([&] { back.take_back(4); }, {"take_back(4)", "0 to 1"});
}

TEST(Compressor, FinishNormsAndRotatesAtTheFirstTokenOfTheGroup) {
  const auto pooled = random_doubles(4, 2 * 8), weight = random_doubles(5, 8);
  const Doubles frequencies = {1, 0.1};
  const CompressorFinishParams params{.dim = 8, .ratio = 4, .first_entry = 3};
  const auto rows = compressor_finish(params, pooled, weight, frequencies);
  const auto normed = rms_norm({2, 8, 1e-6}, pooled, weight);
  const std::vector<int32_t> first = {12, 16}, last = {15, 19};
  const RopeParams rope_params{.tokens = 2, .heads = 1, .head_dim = 8, .rotary_dim = 4};
  EXPECT_EQ(rows, rope(rope_params, normed, first, frequencies));
  EXPECT_NE(rows, rope(rope_params, normed, last, frequencies));
}

TEST(Compressor, BadArguments) {
  expect_invalid([] { CompressorState state({.ratio = 0}); }, {"ratio = 0"});
  CompressorState state({.ratio = 2, .dim = 2, .overlap = false});
  const Doubles two(2), four(4);
  expect_invalid([&] { state.push(four, two, four); }, {"values has 4 elements", "[width]"});
  expect_invalid([&] { state.push(two, two, two); }, {"ape has 2 elements"});
}

}  // namespace
}  // namespace tilewright::reference
