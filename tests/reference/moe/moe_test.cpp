#include "reference/moe/moe.h"

#include "reference/linear/linear.h"
#include "tests/reference/golden.h"
#include "tests/reference/inputs.h"

#include <cmath>

namespace tilewright::reference {
namespace {

using Doubles = std::vector<double>;
using Ints = std::vector<int32_t>;

constexpr int64_t kTokens = 3, kHidden = 5, kInter = 4, kExperts = 3;

MoeParams base(int64_t topk) {
  return {.tokens = kTokens,
          .hidden = kHidden,
          .inter = kInter,
          .experts = kExperts,
          .topk = topk,
          .activation = {.limit = 2}};
}

struct Mlp {
  explicit Mlp(uint64_t seed, int64_t experts = kExperts, int64_t inter = kInter)
      : gate(random_doubles(6 * seed, experts * inter * kHidden)),
        up(random_doubles(6 * seed + 1, experts * inter * kHidden)),
        down(random_doubles(6 * seed + 2, experts * kHidden * inter)),
        gate_bias(random_doubles(6 * seed + 3, experts * inter)),
        up_bias(random_doubles(6 * seed + 4, experts * inter)),
        down_bias(random_doubles(6 * seed + 5, experts * kHidden)) {}
  MlpWeights plain() const { return {gate, up, down}; }
  MlpWeights biased() const { return {gate, up, down, gate_bias, up_bias, down_bias}; }
  Doubles gate, up, down, gate_bias, up_bias, down_bias;
};

Doubles part(const Doubles& array, int64_t index, int64_t elems) {
  return {array.begin() + index * elems, array.begin() + (index + 1) * elems};
}

// Expert e of `mlp` on all tokens of x, biases included, as a dense SwiGLU MLP.
Doubles dense_mlp(const Doubles& x, const Mlp& mlp, int64_t e, const SwigluParams& activation) {
  const LinearShape in{kTokens, kInter, kHidden}, out{kTokens, kHidden, kInter};
  const auto gate =
      linear(in, x, part(mlp.gate, e, kInter * kHidden), part(mlp.gate_bias, e, kInter));
  const auto up = linear(in, x, part(mlp.up, e, kInter * kHidden), part(mlp.up_bias, e, kInter));
  return linear(out, swiglu(gate, up, activation), part(mlp.down, e, kInter * kHidden),
                part(mlp.down_bias, e, kHidden));
}

const Doubles kX = random_doubles(77, kTokens* kHidden);

TEST(Moe, ByHand) {
  // hidden = inter = 1, x = ln 3: gate 1 -> silu = 3/4 ln 3, up 2 -> 2 ln 3, down 3
  const double l = std::log(3);
  const MoeParams params{.tokens = 1, .hidden = 1, .inter = 1, .experts = 2, .topk = 1};
  const Doubles gate = {9, 1}, up = {9, 2}, down = {9, 3};
  expect_close(moe(params, Doubles{l}, Ints{1}, Doubles{0.5}, {gate, up, down}),
               Doubles{0.5 * 0.75 * l * 2 * l * 3});
}

TEST(Moe, OneExpertOfWeightOneIsTheDenseMlp) {
  const Mlp mlp(1);
  for (const auto place : {RouteWeightPlace::kBeforeDown, RouteWeightPlace::kAfterDown}) {
    MoeParams params = base(1);
    params.route_weight_place = place;
    const auto out = moe(params, kX, Ints{2, 2, 2}, Doubles(3, 1), mlp.biased());
    EXPECT_EQ(out, dense_mlp(kX, mlp, 2, params.activation));
  }
}

// hidden = inter = 1, g = 1: h = sigmoid(1) * u * r, and every rounding can be followed by hand.
TEST(Moe, Roundings) {
  MoeParams params{.tokens = 1, .hidden = 1, .inter = 1, .experts = 1, .topk = 1};
  const Doubles one = {1}, x = {1}, weight = {1.1};
  const double h = 1.1 / (1 + std::exp(-1.0));
  const MlpWeights w = {one, one, one};
  EXPECT_DOUBLE_EQ(moe(params, x, Ints{0}, weight, w)[0], h);
  params.rounding = {.h_bf16 = true};
  const double h_bf16 = std::nearbyint(h * 256) / 256;  // 0.5 <= h < 1
  EXPECT_EQ(moe(params, x, Ints{0}, weight, w)[0], h_bf16);
  params.rounding = {.y_bf16 = true};
  EXPECT_EQ(moe(params, x, Ints{0}, weight, w)[0], h_bf16);
  // A row of one element is its own scale: 448 * (x / 448) in f32.
  params.rounding = {.x_e4m3 = true, .h_e4m3 = true};
  EXPECT_NEAR(moe(params, x, Ints{0}, weight, w)[0], h, 1e-6);
  const Doubles two = {448, 17}, identity = {1, 0, 0, 1};
  params = {.tokens = 1, .hidden = 2, .inter = 2, .experts = 1, .topk = 1};
  params.rounding = {.x_e4m3 = true};
  const auto rounded = moe(params, two, Ints{0}, Doubles{1}, {identity, identity, identity});
  EXPECT_NEAR(rounded[1], 256, 1e-3) << "17 lies between 16 and 18, and 16 is even";
}

TEST(Moe, SharedExpertIsTheDenseMlpAddedOnce) {
  const Mlp routed(1), shared(2, 1);
  MoeParams params = base(2);
  const Ints ids = {0, 1, 2, 0, 1, 2};
  const Doubles weights = random_doubles(3, 6, 0, 1);
  const auto without = moe(params, kX, ids, weights, routed.plain());
  params.shared_inter = kInter;
  const auto with_shared = moe(params, kX, ids, weights, routed.plain(), shared.biased());
  Doubles expected = dense_mlp(kX, shared, 0, params.activation);
  for (size_t i = 0; i < expected.size(); ++i) expected[i] += without[i];
  expect_close(with_shared, expected);
}

TEST(Moe, OutputIsTheWeightedSumOfTheExperts) {
  const Mlp mlp(1);
  const Ints ids = {0, 1, 2, 0, 1, 2};
  const Doubles weights = random_doubles(3, 6, 0, 1);
  MoeParams params = base(2);
  params.route_weight_place = RouteWeightPlace::kAfterDown;
  Doubles expected(kTokens * kHidden, 0);
  for (int64_t slot = 0; slot < 6; ++slot) {
    const auto y = dense_mlp(kX, mlp, ids[slot], params.activation);
    for (int64_t c = slot / 2 * kHidden; c < (slot / 2 + 1) * kHidden; ++c) {
      expected[c] += weights[slot] * y[c];
    }
  }
  expect_close(moe(params, kX, ids, weights, mlp.biased()), expected);
}

TEST(Moe, PlaceOfTheWeightMattersOnlyForTheDownBias) {
  const Mlp mlp(1);
  const Ints ids = {0, 1, 2};
  const Doubles weights = {0.25, 0.5, 0.75};
  MoeParams before = base(1), after = base(1);
  after.route_weight_place = RouteWeightPlace::kAfterDown;
  expect_close(moe(before, kX, ids, weights, mlp.plain()),
               moe(after, kX, ids, weights, mlp.plain()));
  const auto a = moe(before, kX, ids, weights, mlp.biased());
  const auto b = moe(after, kX, ids, weights, mlp.biased());
  for (int64_t i = 0; i < kTokens * kHidden; ++i) {
    const int64_t t = i / kHidden;
    EXPECT_NEAR(a[i] - b[i], (1 - weights[t]) * mlp.down_bias[ids[t] * kHidden + i % kHidden],
                1e-13);
  }
}

// The clamp acts on the activations, before the routing weight enlarges or shrinks them.
TEST(Moe, ClampActsBeforeTheRoutingWeight) {
  MoeParams params{.tokens = 1, .hidden = 1, .inter = 1, .experts = 1, .topk = 1};
  params.activation.limit = 10;
  const Doubles one = {1};
  const auto out = moe(params, Doubles{100}, Ints{0}, Doubles{3}, {one, one, one});
  expect_close(out, Doubles{3 * (10 / (1 + std::exp(-10))) * 10});
}

TEST(Moe, DroppedSlotsAddNothing) {
  const Mlp mlp(1);
  const Doubles weights = random_doubles(3, 6, 0, 1);
  const auto dropped = moe(base(2), kX, Ints{0, -1, -1, 2, -1, -1}, weights, mlp.plain());
  const auto zeroed = moe(base(2), kX, Ints{0, 1, 1, 2, 1, 1},
                          Doubles{weights[0], 0, 0, weights[3], 0, 0}, mlp.plain());
  EXPECT_EQ(dropped, zeroed);
  for (int64_t c = 0; c < kHidden; ++c) EXPECT_EQ(dropped[2 * kHidden + c], 0);
}

TEST(Moe, OrderOfSlotsDoesNotMatter) {
  const Mlp mlp(1);
  const auto a = moe(base(2), kX, Ints{0, 1, 2, 0, 1, 2}, Doubles{1, 2, 3, 4, 5, 6}, mlp.plain());
  const auto b = moe(base(2), kX, Ints{1, 0, 0, 2, 2, 1}, Doubles{2, 1, 4, 3, 6, 5}, mlp.plain());
  expect_close(a, b);
}

TEST(Moe, BadArguments) {
  const Mlp mlp(1), shared(2, 1);
  const Ints ids = {0, 1, 2};
  const Doubles weights(3);
  const auto expect = [&](const MoeParams& params, const Ints& slots, const MlpWeights& routed,
                          const MlpWeights& one, const std::vector<std::string>& parts) {
    expect_invalid([&] { moe(params, kX, slots, weights, routed, one); }, parts);
  };
  expect(base(1), {0, 3, 2}, mlp.plain(), {}, {"moe: ids[1, 0] = 3; expected -1 (dropped) to 2"});
  expect(base(1), {0, -2, 2}, mlp.plain(), {}, {"moe: ids[1, 0] = -2"});
  expect(base(1), {0, 1}, mlp.plain(), {}, {"moe: ids has 2 elements; expected 3"});
  expect(
      base(1), ids, {mlp.up, mlp.up, {}}, {},
      {"moe (routed): down has 0 elements; expected 60 for [experts, hidden, inter] = [3, 5, 4]"});
  expect(base(1), ids, {mlp.up_bias, mlp.up, mlp.down}, {}, {"moe (routed): gate has 12 elements"});
  expect(base(1), ids, {mlp.up, mlp.up_bias, mlp.down}, {}, {"moe (routed): up has 12 elements"});
  MlpWeights biased = mlp.biased();
  biased.down_bias = biased.up_bias;
  expect(base(1), ids, biased, {}, {"moe (routed): down_bias has 12 elements; expected 15"});
  expect(base(1), ids, mlp.plain(), shared.plain(),
         {"moe (shared): gate has 20 elements; expected 0"});
  expect(base(1), ids, mlp.plain(), {.down_bias = shared.down_bias},
         {"moe (shared): down_bias has 5 elements; expected 0"});
  MoeParams params = base(1);
  params.shared_inter = kInter;
  expect(params, ids, mlp.plain(), {}, {"moe (shared): gate has 0 elements; expected 20"});
  params = base(1);
  params.hidden = kHidden + 1;
  expect(params, ids, mlp.plain(), {}, {"moe: x has 15 elements; expected 18"});
  expect_invalid([&] { moe(base(1), kX, ids, Doubles(4), mlp.plain()); },
                 {"moe: weights has 4 elements; expected 3 for [tokens, topk] = [3, 1]"});
}

}  // namespace
}  // namespace tilewright::reference
