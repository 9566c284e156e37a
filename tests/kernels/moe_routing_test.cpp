// Routing, permutation and combination of a Mixture-of-Experts layer.
#include "formats/block_scale.h"
#include "formats/packed_matrix.h"
#include "kernels/moe/combine.h"
#include "kernels/moe/permute.h"
#include "kernels/moe/route.h"
#include "kernels/moe/scatter.h"
#include "reference/moe/router.h"
#include "tests/kernels/kernel_test.h"

#include <cmath>
#include <set>

namespace tilewright::kernels {
namespace {

struct RouteCase {
  std::int64_t tokens, experts, topk;
  bool is_softmax = false, is_normalized = true, has_bias = false;
};

class MoeRouteKernel : public ChipKernelTest {
 protected:
  struct Result {
    std::vector<std::int32_t> ids;
    std::vector<float> weights;
  };

  Result run(const RouteCase& c, const std::vector<float>& logits, const std::vector<float>& bias,
             const std::vector<std::int32_t>& token_ids = {},
             const std::vector<std::int32_t>& table = {}) {
    const auto slots = static_cast<std::size_t>(c.tokens * c.topk);
    const Buffer logits_in = Buffer::from(device(), logits), bias_in = Buffer::from(device(), bias);
    const Buffer tokens_in = Buffer::from(device(), token_ids);
    const Buffer table_in = Buffer::from(device(), table);
    const Output<std::int32_t> ids(device(), slots);
    const Output<float> weights(device(), slots);
    MoeRouteOwnParams params = {};
    params.logits = pointer_to<const float>(logits_in);
    if (!bias.empty()) params.bias = pointer_to<const float>(bias_in);
    if (!table.empty()) params.table = pointer_to<const std::int32_t>(table_in);
    params.token_ids = pointer_to<const std::int32_t>(tokens_in);
    params.ids = ids.pointer();
    params.weights = weights.pointer();
    params.logits_stride = c.experts;
    params.tokens = static_cast<std::int32_t>(c.tokens);
    params.experts = static_cast<std::int32_t>(c.experts);
    params.own = params.experts;
    params.topk = static_cast<std::int32_t>(c.topk);
    params.vocab = static_cast<std::int32_t>(table.size() / static_cast<std::size_t>(c.topk));
    params.scale = 1.5f;
    params.is_normalized = c.is_normalized;
    params.is_softmax = c.is_softmax;
    run_kernel(device(), "moe_route",
               {.grid = {ceil_div(c.tokens, kMoeRouteTokens)}, .block = {kMoeRouteThreads}},
               params);
    return {ids.read(), weights.read()};
  }

  static std::vector<float> draw_floats(std::uint64_t seed, std::int64_t count, double reach) {
    std::vector<float> values;
    for (const double x : reference::random_doubles(seed, count, -reach, reach))
      values.push_back(static_cast<float>(x));
    return values;
  }

  static reference::RouterParams params_of(const RouteCase& c) {
    return {.tokens = c.tokens,
            .experts = c.experts,
            .topk = c.topk,
            .score = c.is_softmax ? reference::RouterScore::kSoftmax
                                  : reference::RouterScore::kSqrtSoftplus,
            .normalize = c.is_normalized,
            .scale = 1.5};
  }

  static std::vector<double> to_doubles(const std::vector<float>& values) {
    return {values.begin(), values.end()};
  }

  static void expect_close(const Result& result, const reference::Routing& exact) {
    EXPECT_EQ(result.ids, exact.ids);
    for (std::size_t i = 0; i < exact.weights.size(); ++i)
      ASSERT_NEAR(result.weights[i], exact.weights[i], 4e-6 * exact.weights[i]) << i;
  }

  // Scores of 0.5 and more that lie 2^-11 and more apart keep their order in f32.
  void check(const RouteCase& c) {
    SCOPED_TRACE(fmt::format("{} tokens, {} of {} experts, softmax {}, normalized {}, bias {}",
                             c.tokens, c.topk, c.experts, c.is_softmax, c.is_normalized,
                             c.has_bias));
    const auto logits = draw_floats(7, c.tokens * c.experts, 6);
    std::vector<float> bias;
    if (c.has_bias) bias = draw_floats(8, c.experts, 0.2);
    expect_close(run(c, logits, bias),
                 reference::route_by_score(params_of(c), to_doubles(logits), to_doubles(bias)));
  }
};
TILEWRIGHT_ON_EVERY_CHIP_OF_KERNELS(MoeRouteKernel);

TEST_P(MoeRouteKernel, SoftmaxAndSqrtSoftplus) {
  for (const bool is_softmax : {false, true}) {
    for (const bool is_normalized : {false, true}) {
      for (const bool has_bias : {false, true}) {
        check({5, 33, 3, is_softmax, is_normalized, has_bias});
      }
    }
  }
  check({9, 256, 8, true, true, false});
  check({3, 384, 6, false, true, true});
  check({2, 8, 8, false, true, true});
  check({1, 16, 16, true, false, false});
}

TEST_P(MoeRouteKernel, TiesGoToTheLowerExpertAndNanIsLast) {
  const RouteCase c = {.tokens = 4, .experts = 40, .topk = 3};
  std::vector<float> logits(4 * 40, 1.0f);
  logits[40 + 35] = logits[40 + 3] = 2;  // token 1
  logits[80] = logits[82] = NAN;         // token 2
  for (int e = 0; e < 40; ++e) logits[120 + e] = e == 7 ? -1e30f : -INFINITY;
  const Result result = run(c, logits, {});
  EXPECT_EQ(result.ids, (std::vector<std::int32_t>{0, 1, 2, 3, 35, 0, 1, 3, 4, 7, 0, 1}));
  for (std::size_t i = 0; i < 9; ++i) EXPECT_NEAR(result.weights[i], 0.5, 0.15) << i;
  for (std::size_t i = 9; i < 12; ++i) EXPECT_EQ(result.weights[i], 0) << "the sum is 0";
  const Result zeros = run(c, std::vector<float>(160, -0.0f), std::vector<float>(40, 0.0f));
  EXPECT_EQ(zeros.ids, (std::vector<std::int32_t>{0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2}));
}

TEST_P(MoeRouteKernel, LargeLogitsNeitherOverflowNorVanish) {
  const RouteCase c = {.tokens = 1, .experts = 8, .topk = 2};
  for (const float z : {100.0f, 3000.0f, -60.0f, -80.0f}) {
    std::vector<float> logits(8, z - 1);
    logits[5] = z;
    expect_close(run(c, logits, {}), reference::route_by_score(params_of(c), to_doubles(logits)));
  }
}

TEST_P(MoeRouteKernel, HashTable) {
  const RouteCase c = {.tokens = 5, .experts = 8, .topk = 2};
  const auto logits = draw_floats(3, 40, 4);
  const std::vector<std::int32_t> table = {0, 1, 6, 7, 3, 2};
  const std::vector<std::int32_t> tokens = {2, 0, 1, 1, 2};
  expect_close(run(c, logits, {}, tokens, table),
               reference::route_by_hash(params_of(c), to_doubles(logits), tokens, table));
}

TEST_P(MoeRouteKernel, HashTableWithoutAnAnswer) {
  const RouteCase c = {.tokens = 3, .experts = 4, .topk = 2};
  const Result result = run(c, std::vector<float>(12, 1.0f), {}, {3, -1, 0}, {1, 4, 2, 3, 0, 1});
  EXPECT_EQ(result.ids, (std::vector<std::int32_t>{-2, -2, -2, -2, 1, -2}));
  EXPECT_EQ(result.weights, (std::vector<float>{0, 0, 0, 0, 1.5f, 0}));
}

class MoePermuteKernel : public ChipKernelTest {
 protected:
  struct Case {
    std::int64_t tokens, topk, experts;
    bool has_shared = false;
    std::uint32_t ctas = 1;
  };
  struct Result {
    std::vector<std::int32_t> offsets, slot_row, row_token;
    std::vector<float> row_weight;
    MoeStatus status = {0, 0, kMoeNone, kMoeNone};
  };

  Result run(const Case& c, const std::vector<std::int32_t>& ids) {
    const auto slots = static_cast<std::size_t>(c.tokens * c.topk);
    const std::size_t rows = slots + static_cast<std::size_t>(c.has_shared ? c.tokens : 0);
    const auto offset_count = static_cast<std::size_t>(c.experts + c.has_shared + 1);
    const Buffer ids_in = Buffer::from(device(), ids);
    const Buffer weights_in = Buffer::from(device(), weights_of(slots));
    const Output<std::int32_t> offsets(device(), offset_count), slot_row(device(), slots);
    const Output<std::int32_t> row_token(device(), rows);
    const Output<float> row_weight(device(), rows);
    const Output<MoeStatus> status(device(), 1);
    run_kernel(
        device(), "moe_permute",
        {.grid = {c.ctas},
         .block = {kMoePermuteThreads},
         .cluster = device::Dim3{c.ctas},
         .dynamic_shared_bytes = kMoePermuteSharedBytes},
        MoePermuteParams{pointer_to<const std::int32_t>(ids_in),
                         pointer_to<const float>(weights_in), offsets.pointer(), slot_row.pointer(),
                         row_token.pointer(), row_weight.pointer(), status.pointer(),
                         static_cast<std::int32_t>(c.tokens), static_cast<std::int32_t>(c.topk),
                         static_cast<std::int32_t>(c.experts), c.has_shared});
    return {offsets.read(), slot_row.read(), row_token.read(), row_weight.read(), status.read()[0]};
  }

  static std::vector<float> weights_of(std::size_t slots) {
    std::vector<float> weights;
    for (std::size_t i = 0; i < slots; ++i) weights.push_back(0.5f + static_cast<float>(i));
    return weights;
  }

  static Result expected_of(const Case& c, const std::vector<std::int32_t>& ids) {
    const std::size_t slots = ids.size();
    Result out;
    out.slot_row.assign(slots, -1);
    const std::size_t rows = slots + static_cast<std::size_t>(c.has_shared ? c.tokens : 0);
    std::int32_t row = 0;
    const auto add_row = [&](std::size_t token, float weight) {
      out.row_token.push_back(static_cast<std::int32_t>(token));
      out.row_weight.push_back(weight);
      ++row;
    };
    out.offsets = {0};
    const auto topk = static_cast<std::size_t>(c.topk);
    for (std::int32_t e = 0; e < c.experts; ++e) {
      for (std::size_t s = 0; s < slots; ++s) {
        const auto begin = ids.begin() + static_cast<std::ptrdiff_t>(s - s % topk);
        if (ids[s] != e || std::find(begin, ids.begin() + static_cast<std::ptrdiff_t>(s), e) !=
                               ids.begin() + static_cast<std::ptrdiff_t>(s))
          continue;
        out.slot_row[s] = row;
        add_row(s / topk, weights_of(slots)[s]);
      }
      out.offsets.push_back(row);
    }
    if (c.has_shared) {
      for (std::int64_t t = 0; t < c.tokens; ++t) add_row(static_cast<std::size_t>(t), 1);
      out.offsets.push_back(row);
    }
    for (std::size_t s = 0; s < slots; ++s) {
      if (out.slot_row[s] >= 0 || ids[s] == -1) continue;
      const bool is_known = ids[s] >= 0 && ids[s] < c.experts;
      auto& count = is_known ? out.status.num_duplicated : out.status.num_out_of_range;
      auto& first = is_known ? out.status.first_duplicated : out.status.first_out_of_range;
      ++count;
      first = std::min(first, static_cast<std::uint32_t>(s));
    }
    out.row_token.resize(rows, -1);  // untouched
    out.row_weight.resize(rows, NAN);
    return out;
  }

  void check(const Case& c, const std::vector<std::int32_t>& ids) {
    SCOPED_TRACE(fmt::format("{} tokens, {} of {} experts, shared {}, {} CTAs", c.tokens, c.topk,
                             c.experts, c.has_shared, c.ctas));
    const Result result = run(c, ids), exact = expected_of(c, ids);
    EXPECT_EQ(result.offsets, exact.offsets);
    EXPECT_EQ(result.slot_row, exact.slot_row);
    EXPECT_EQ(result.row_token, exact.row_token);
    for (std::size_t i = 0; i < exact.row_weight.size(); ++i) {
      if (std::isnan(exact.row_weight[i])) {
        EXPECT_TRUE(std::isnan(result.row_weight[i])) << i;
      } else {
        EXPECT_EQ(result.row_weight[i], exact.row_weight[i]) << i;
      }
    }
    EXPECT_EQ(result.status.num_out_of_range, exact.status.num_out_of_range);
    EXPECT_EQ(result.status.num_duplicated, exact.status.num_duplicated);
    EXPECT_EQ(result.status.first_out_of_range, exact.status.first_out_of_range);
    EXPECT_EQ(result.status.first_duplicated, exact.status.first_duplicated);
  }

  static std::vector<std::int32_t> draw_ids(const Case& c, std::uint64_t seed) {
    Random random(seed);
    std::vector<std::int32_t> ids;
    for (std::int64_t t = 0; t < c.tokens; ++t) {
      std::set<std::int32_t> chosen;
      while (std::ssize(chosen) < c.topk) {
        const auto id =
            static_cast<std::int32_t>(random.bits() % static_cast<std::uint64_t>(c.experts));
        if (chosen.insert(id).second) ids.push_back(id);
      }
    }
    return ids;
  }
};
TILEWRIGHT_ON_EVERY_CHIP_OF_KERNELS(MoePermuteKernel);

TEST_P(MoePermuteKernel, RandomIds) {
  for (const Case& c : {Case{1, 2, 8}, Case{7, 8, 33}, Case{40, 6, 256, true}, Case{40, 1, 8},
                        Case{3, 16, 384}, Case{0, 4, 8, true}}) {
    check(c, draw_ids(c, 11));
  }
}
TEST_P(MoePermuteKernel, ClustersGiveTheSame) {
  for (const std::uint32_t ctas : {2u, 4u, 8u}) {
    const Case c = {300, 6, 33, true, ctas};
    check(c, draw_ids(c, 12));
  }
}
TEST_P(MoePermuteKernel, AllTokensOnOneExpert) {
  check({2100, 1, 8, false, 2}, std::vector<std::int32_t>(2100, 5));
}
TEST_P(MoePermuteKernel, DroppedWrongAndRepeatedIds) {
  check({4, 3, 8, true}, {-1, 2, 3, 2, 2, 2, 8, -2, 7, 1 << 30, 0, -1});
}

class MoeCombineKernel : public ChipKernelTest {
 protected:
  void check(std::int64_t tokens, std::int64_t hidden, std::int64_t topk, bool has_weights,
             bool has_shared, bool is_f32) {
    SCOPED_TRACE(fmt::format("{} tokens, hidden {}, topk {}", tokens, hidden, topk));
    const std::int64_t slots = tokens * topk;
    const std::int32_t shared_first = 3;
    const auto rows = draw_many(1, (slots + tokens + 3) * hidden, Numbers::kUniform, kBf16);
    const auto weights = draw_many(2, slots, Numbers::kUniform, kFp32);
    std::vector<std::int32_t> slot_row;
    for (std::int64_t s = 0; s < slots; ++s)
      slot_row.push_back(s % 5 == 3 ? -1 : static_cast<std::int32_t>((s * 7 + 2) % slots));
    const Buffer rows_in = Buffer::from(device(), encode_all<std::uint16_t>(kBf16, rows));
    const Buffer weights_in = Buffer::from(device(), to_floats(weights));
    const Buffer slots_in = Buffer::from(device(), slot_row);
    const Buffer first_in = Buffer::from(device(), std::vector<std::int32_t>{shared_first});
    const auto elems = static_cast<std::size_t>(tokens * hidden);
    const Output<std::uint16_t> bf16_out(device(), is_f32 ? 0 : elems);
    const Output<float> f32_out(device(), is_f32 ? elems : 0);
    MoeCombineParams params = {};
    params.rows = pointer_to<const std::uint16_t>(rows_in);
    params.slot_row = pointer_to<const std::int32_t>(slots_in);
    if (has_weights) params.weights = pointer_to<const float>(weights_in);
    if (has_shared) {
      params.shared_rows = params.rows;
      params.shared_first = pointer_to<const std::int32_t>(first_in);
    }
    params.out = is_f32 ? static_cast<void*>(f32_out.pointer()) : bf16_out.pointer();
    params.rows_stride = params.out_stride = hidden;
    params.tokens = static_cast<std::int32_t>(tokens);
    params.hidden = static_cast<std::int32_t>(hidden);
    params.topk = static_cast<std::int32_t>(topk);
    run_kernel(device(), is_f32 ? "moe_combine_f32" : "moe_combine_bf16",
               {.grid = {ceil_div(hidden, kMoeCombineColumns), static_cast<std::uint32_t>(tokens)},
                .block = {kMoeCombineThreads}},
               params);
    const auto bf16 = bf16_out.read();
    const auto f32 = f32_out.read();
    for (std::int64_t t = 0; t < tokens; ++t) {
      for (std::int64_t h = 0; h < hidden; ++h) {
        float sum = 0;  // in the order of the kernel: equal to the bit
        for (std::int64_t i = 0; i < topk; ++i) {
          const auto slot = static_cast<std::size_t>(t * topk + i);
          const std::int32_t row = slot_row[slot];
          if (row < 0) continue;
          const float weight = has_weights ? static_cast<float>(weights[slot]) : 1.0f;
          sum = std::fma(weight,
                         static_cast<float>(rows[static_cast<std::size_t>(row * hidden + h)]), sum);
        }
        if (has_shared)
          sum +=
              static_cast<float>(rows[static_cast<std::size_t>((shared_first + t) * hidden + h)]);
        const auto at = static_cast<std::size_t>(t * hidden + h);
        if (is_f32) {
          ASSERT_EQ(f32[at], sum) << "token " << t << ", column " << h;
        } else {
          ASSERT_EQ(bf16[at], encode(kBf16, sum)) << "token " << t << ", column " << h;
        }
      }
    }
  }
};
TILEWRIGHT_ON_EVERY_CHIP_OF_KERNELS(MoeCombineKernel);

TEST_P(MoeCombineKernel, WeightsAndSharedExpert) {
  check(7, 264, 2, true, true, false);
  check(7, 264, 2, false, false, true);
  check(3, 1040, 8, true, false, false);
  check(1, 8, 16, false, true, true);
  check(2, 16, 1, true, true, false);
}

class MoeScatterKernel : public ChipKernelTest {
 protected:
  static constexpr std::int64_t kTokens = 5, kTopk = 3, kRows = kTokens * (kTopk + 1);
  static constexpr std::int32_t kSharedFirst = kTokens * kTopk;

  // Row of slot s; one slot has none, and one row gets nothing.
  static std::vector<std::int32_t> slot_rows() {
    std::vector<std::int32_t> rows;
    for (int s = 0; s < kTokens * kTopk; ++s) rows.push_back(s == 4 ? -1 : (s * 7 + 3) % 15);
    return rows;
  }
  // Token of each row; -1 where nothing is written.
  static std::vector<std::int64_t> row_tokens() {
    std::vector<std::int64_t> tokens(kRows, -1);
    const auto rows = slot_rows();
    for (std::size_t s = 0; s < rows.size(); ++s)
      if (rows[s] >= 0) tokens[static_cast<std::size_t>(rows[s])] = static_cast<int>(s) / kTopk;
    for (std::int64_t t = 0; t < kTokens; ++t)
      tokens[static_cast<std::size_t>(kSharedFirst + t)] = t;
    return tokens;
  }

  std::vector<std::uint16_t> draw_rows(std::int64_t hidden) const {
    return encode_all<std::uint16_t>(kBf16,
                                     draw_many(5, kTokens * hidden, Numbers::kUniform, kBf16));
  }

  // Calls launch(params) with the operands in place.
  template <class Launch>
  void with_operands(const std::vector<std::uint16_t>& x, std::int64_t hidden, Launch&& launch) {
    const Buffer x_in = Buffer::from(device(), x), slots_in = Buffer::from(device(), slot_rows());
    const Buffer first_in = Buffer::from(device(), std::vector<std::int32_t>{kSharedFirst});
    MoeScatterParams params = {};
    params.x = pointer_to<const std::uint16_t>(x_in);
    params.slot_row = pointer_to<const std::int32_t>(slots_in);
    params.shared_first = pointer_to<const std::int32_t>(first_in);
    params.x_stride = hidden;
    params.tokens = kTokens;
    params.hidden = static_cast<std::int32_t>(hidden);
    params.topk = kTopk;
    launch(params);
  }

  void check_bf16(std::int64_t hidden) {
    const auto x = draw_rows(hidden);
    const Output<std::uint16_t> out(device(), static_cast<std::size_t>(kRows * hidden));
    with_operands(x, hidden, [&](MoeScatterParams& params) {
      params.out = out.pointer();
      params.out_stride_bytes = 2 * hidden;
      params.out_columns = static_cast<std::int32_t>(hidden);
      run_kernel(
          device(), "moe_scatter_bf16",
          {.grid = {ceil_div(hidden, kMoeScatterColumns), kTokens}, .block = {kMoeScatterThreads}},
          params);
    });
    const auto rows = out.read();
    const auto tokens = row_tokens();
    for (std::int64_t i = 0; i < kRows * hidden; ++i) {
      const std::int64_t token = tokens[static_cast<std::size_t>(i / hidden)];
      const std::uint16_t expected =
          token < 0 ? 0xffff : x[static_cast<std::size_t>(token * hidden + i % hidden)];
      ASSERT_EQ(rows[static_cast<std::size_t>(i)], expected) << "row " << i / hidden;
    }
  }

  // By the rule of the format: a row of it, whose block is 128 columns or all of them.
  void check_e4m3(std::int64_t hidden, bool has_row_scales, bool is_pow2) {
    SCOPED_TRACE(fmt::format("hidden {}, row scales {}, pow2 {}", hidden, has_row_scales, is_pow2));
    const std::int64_t columns = (hidden + 127) / 128 * 128, pitch = kRows;
    auto x = draw_rows(hidden);
    x[static_cast<std::size_t>(2 * hidden + 5)] = 0x7f80;  // token 2 has an infinity
    const Output<std::uint8_t> out(device(), static_cast<std::size_t>(kRows * columns));
    const std::int64_t blocks = has_row_scales ? 1 : columns / 128;
    const Output<float> scales(device(), static_cast<std::size_t>(blocks * pitch));
    with_operands(x, hidden, [&](MoeScatterParams& params) {
      params.out = out.pointer();
      params.scales = scales.pointer();
      params.scale_pitch = pitch;
      params.out_stride_bytes = columns;
      params.out_columns = static_cast<std::int32_t>(columns);
      params.is_pow2 = is_pow2;
      params.has_row_scales = has_row_scales;
      run_kernel(
          device(), "moe_scatter_e4m3",
          {.grid = {kTokens}, .block = {static_cast<std::uint32_t>(moe_scatter_threads(columns))}},
          params);
    });
    BlockFormat format = is_pow2 ? kFp8Block1x128Ue8m0 : kFp8Block1x128;
    if (has_row_scales) format.block_cols = static_cast<int>(columns);
    const auto codes = out.read();
    const auto scale = scales.read();
    const auto tokens = row_tokens();
    for (std::int64_t row = 0; row < kRows; ++row) {
      const std::int64_t token = tokens[static_cast<std::size_t>(row)];
      if (token < 0) continue;
      std::vector<float> values(static_cast<std::size_t>(columns), 0.0f);
      for (std::int64_t c = 0; c < hidden; ++c)
        values[static_cast<std::size_t>(c)] =
            static_cast<float>(decode(kBf16, x[static_cast<std::size_t>(token * hidden + c)]));
      const QuantizedTensor exact = quantize(format, values, 1, columns);
      for (std::int64_t c = 0; c < columns; ++c) {
        const std::int64_t place = c / 64 * 64 + operand_place(static_cast<int>(c % 64));
        ASSERT_EQ(codes[static_cast<std::size_t>(row * columns + place)],
                  exact.codes[static_cast<std::size_t>(c)])
            << "row " << row << ", column " << c;
      }
      for (std::int64_t b = 0; b < blocks; ++b) {
        const float found = scale[static_cast<std::size_t>(b * pitch + row)];
        const auto at = static_cast<std::size_t>(b);
        float expected;
        if (is_pow2) {
          expected = static_cast<float>(decode(kUe8m0, exact.scales[at]));
        } else {
          std::memcpy(&expected, &exact.scales[4 * at], 4);
        }
        ASSERT_TRUE(found == expected || (std::isnan(found) && std::isnan(expected)))
            << "row " << row << ", block " << b << ": " << found << " for " << expected;
      }
    }
  }
};
TILEWRIGHT_ON_EVERY_CHIP_OF_KERNELS(MoeScatterKernel);

TEST_P(MoeScatterKernel, Bf16) {
  check_bf16(16);
  check_bf16(2080);
}
TEST_P(MoeScatterKernel, E4m3) {
  for (const bool has_row_scales : {false, true}) {
    check_e4m3(208, has_row_scales, false);
    check_e4m3(2304, has_row_scales, false);
    check_e4m3(128, has_row_scales, true);
  }
}

}  // namespace
}  // namespace tilewright::kernels
