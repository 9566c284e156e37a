// The attention operator on e4m3 operands, every kind of factor and layout of values: each element
// against the float64 result of the codes.
#include "tilewright/attention.h"

#include "device/internal.h"
#include "reference/attention/attention.h"
#include "reference/attention/fp8_bound.h"
#include "reference/attention/prepare.h"
#include "reference/error_bound.h"
#include "tests/kernels/kernel_test.h"
#include "tests/ops/operator_test.h"

#include <cmath>

namespace tilewright::ops {
namespace {

using device::Buffer;

// 140 keys have two blocks of keys, and end within a tile of every kernel.
const AttentionProblem kSmall = {.dtype = DType::kF8_E4M3,
                                 .batch = 2,
                                 .heads = 2,
                                 .kv_heads = 1,
                                 .q_len = 9,
                                 .kv_len = 140,
                                 .head_dim = 64,
                                 .causal = true,
                                 .has_lse = true};

AttentionProblem with(AttentionProblem p, auto change) {
  change(p);
  return p;
}

// First rows of packed sequences, of queries and of keys; none if they are not packed.
struct Starts {
  std::vector<std::int32_t> q, kv;
};

// Rows of a sequence in q, or in k and v.
struct Rows {
  std::int64_t first = 0, count = 0;
};
Rows rows_of(const std::vector<std::int32_t>& starts, std::int64_t length, std::int64_t b) {
  if (starts.empty()) return {b * length, length};
  const auto at = static_cast<std::size_t>(b);
  return {starts[at], starts[at + 1] - starts[at]};
}

// One of q, k, v: magnitudes grow from row to row, so that factors differ.
struct Operand {
  reference::AttentionPrepareParams params;
  reference::Fp8Operand rounded;
  std::vector<double> stored, numbers;  ///< codes as numbers, and times their factors

  Operand(const AttentionProblem& p, const Starts& starts, int i) {
    params.cu_seqlens = i == 0 ? starts.q : starts.kv;
    params.batch = p.batch;
    params.heads = i == 0 ? p.heads : p.kv_heads;
    params.kv_heads = p.kv_heads;
    params.rows = i == 0 ? p.q_len : p.kv_len;
    params.head_dim = p.head_dim;
    params.scales = p.fp8.scales;
    params.block_rows = i == 0 ? 64 : 128;
    params.has_pow2_scales = i == 2;
    kernels::Random random(static_cast<std::uint64_t>(i) + 3);
    std::vector<float> x;
    const std::int64_t total = p.is_packed ? params.cu_seqlens.back() : params.batch * params.rows;
    for (std::int64_t row = 0; row < total; ++row)
      for (std::int64_t c = 0; c < params.heads * params.head_dim; ++c)
        x.push_back(
            static_cast<float>(random.uniform(-2, 2) * (1 + 0.01 * static_cast<double>(row))));
    rounded = reference::prepare_attention_operand(params, x);
    numbers = reference::dequantize_attention_operand(params, rounded);
    for (const std::uint8_t code : rounded.codes) stored.push_back(decode(kE4m3, code));
  }
  double factor(std::int64_t batch, std::int64_t row, std::int64_t head) const {
    return reference::attention_descale(params, rounded, batch, row, head);
  }
};

class AttentionE4m3Test : public ChipTest<AttentionE4m3Test> {
 protected:
  static void check(const AttentionProblem& problem, const Starts& starts = {}) {
    const Attention attention(*device_, problem);
    const AttentionProblem& p = attention.plan().problem;
    SCOPED_TRACE(attention.plan().to_string());
    const Operand q(p, starts, 0), k(p, starts, 1), v(p, starts, 2);
    const device::Device& inner = opened(*device_);
    const auto upload = [&](const auto& x) { return Buffer::from(inner, x); };
    const Buffer q8 = upload(q.rounded.codes), k8 = upload(k.rounded.codes);
    const Buffer v8 = upload(p.fp8.v_layout == Fp8ValueLayout::kColumns
                                 ? reference::transpose_values(v.params, v.rounded.codes)
                                 : v.rounded.codes);
    const Buffer q_scales = upload(q.rounded.descale), k_scales = upload(k.rounded.descale);
    const Buffer v_scales = upload(v.rounded.descale), v_largest = upload(v.rounded.descale_max);
    Buffer workspace(inner, attention.plan().workspace_bytes);
    workspace.poison();
    const Buffer sink = upload(kernels::to_floats(sinks(p))), cu_q = upload(starts.q),
                 cu_kv = upload(starts.kv);
    const kernels::Output<std::uint16_t> out(inner, q.stored.size());
    const kernels::Output<float> lse(inner, q.stored.size() / static_cast<std::size_t>(p.head_dim));
    attention.run({.q = kernels::pointer_to<const void>(q8),
                   .k = kernels::pointer_to<const void>(k8),
                   .v = kernels::pointer_to<const void>(v8),
                   .out = out.pointer(),
                   .lse = lse.pointer(),
                   .sink = kernels::pointer_to<const float>(sink),
                   .cu_q = kernels::pointer_to<const std::int32_t>(cu_q),
                   .cu_kv = kernels::pointer_to<const std::int32_t>(cu_kv),
                   .workspace = kernels::pointer_to<void>(workspace),
                   .q_descale = kernels::pointer_to<const float>(q_scales),
                   .k_descale = kernels::pointer_to<const float>(k_scales),
                   .v_descale = kernels::pointer_to<const float>(v_scales),
                   .v_descale_max = kernels::pointer_to<const float>(v_largest)});
    device_->synchronize();
    compare(attention.plan(), starts, q, k, v, out.read(), lse.read());
  }

 private:
  static void compare(const AttentionPlan& plan, const Starts& starts, const Operand& q,
                      const Operand& k, const Operand& v, const std::vector<std::uint16_t>& out,
                      const std::vector<float>& lse) {
    const AttentionProblem& p = plan.problem;
    const reference::AttentionResult exact = reference::attention({.batch = p.batch,
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
                                                                   .sink = sinks(p),
                                                                   .cu_seqlens_q = starts.q,
                                                                   .cu_seqlens_kv = starts.kv,
                                                                   .magnitudes = true},
                                                                  q.numbers, k.numbers, v.numbers);
    for (std::int64_t b = 0; b < p.batch; ++b) {
      const Rows rows = rows_of(starts.q, p.q_len, b);
      for (std::int64_t i = 0; i < rows.count * p.heads; ++i)
        compare_row(plan, starts, q, k, v, exact, {b, i / p.heads, i % p.heads}, out, lse);
    }
  }

  struct Place {
    std::int64_t batch, row, head;
  };

  static void compare_row(const AttentionPlan& plan, const Starts& starts, const Operand& q,
                          const Operand& k, const Operand& v,
                          const reference::AttentionResult& exact, const Place& at,
                          const std::vector<std::uint16_t>& out, const std::vector<float>& lse) {
    const AttentionProblem& p = plan.problem;
    const FormatSpec& format = p.out_dtype == DType::kF16 ? kFp16 : kBf16;
    const Rows queries = rows_of(starts.q, p.q_len, at.batch),
               keys = rows_of(starts.kv, p.kv_len, at.batch);
    const auto line =
        static_cast<std::size_t>(p.is_packed ? at.head * p.total_q + queries.first + at.row
                                             : (at.batch * p.heads + at.head) * p.q_len + at.row);
    const auto first =
        static_cast<std::size_t>(((queries.first + at.row) * p.heads + at.head) * p.head_dim);
    const reference::AttentionFp8Losses losses =
        losses_of(plan, starts, q, k, v, exact.lse[line], at);
    const reference::AttentionFp8Row bound = {
        .num_keys = keys.count,
        .num_tiles = keys.count / plan.tile_keys + 2,
        .score_magnitude = exact.score_magnitude[line],
        .score_loss = losses.score,
        .sink = p.has_sink ? 1.0 : 0.0,
        .softcap = p.softcap,
        .top_share = std::exp(exact.row_max[line] - exact.lse[line]),
        .value_max = 8,  // of numbers up to 2 * 3.8, with factors of powers of two
        .out_roundoff = std::ldexp(1, -format.mantissa_bits - 1),
        .out_subnormal = format == kFp16 ? 0x1p-24 : 0};
    for (std::size_t c = 0; c < losses.values.size(); ++c) {
      const double got = decode(format, out[first + c]), want = exact.out[first + c];
      ASSERT_LE(std::abs(got - want),
                reference::attention_fp8_out_bound(bound, losses.values[c], want,
                                                   exact.out_magnitude[first + c]))
          << "batch " << at.batch << ", row " << at.row << ", head " << at.head << ", dim " << c
          << ": " << got << " for " << want;
    }
    ASSERT_NEAR(lse[line], exact.lse[line],
                reference::attention_fp8_lse_bound(bound, exact.lse[line]));
  }

  static std::vector<double> sinks(const AttentionProblem& p) {
    std::vector<double> of_heads;
    for (std::int64_t h = 0; p.has_sink && h < p.heads; ++h)
      of_heads.push_back(1 - static_cast<double>(h));
    return of_heads;
  }

  static reference::AttentionFp8Losses losses_of(const AttentionPlan& plan, const Starts& starts,
                                                 const Operand& q, const Operand& k,
                                                 const Operand& v, double log_sum,
                                                 const Place& place) {
    const AttentionProblem& p = plan.problem;
    const auto [b, row, head] = place;
    const Rows queries = rows_of(starts.q, p.q_len, b), all_keys = rows_of(starts.kv, p.kv_len, b);
    const auto dims = static_cast<std::size_t>(p.head_dim);
    const std::int64_t diagonal = all_keys.count - queries.count + row;
    const std::int64_t end = p.causal ? diagonal + 1 : all_keys.count;
    const std::int64_t begin =
        p.window_left < 0 ? 0 : std::max<std::int64_t>(diagonal - p.window_left, 0);
    const std::int64_t keys = end - begin;
    std::vector<double> codes, values, factors;
    for (std::int64_t key = begin; key < end; ++key) {
      const auto at = static_cast<std::size_t>((all_keys.first + key) * p.kv_heads +
                                               head / (p.heads / p.kv_heads)) *
                      dims;
      for (std::size_t c = 0; c < dims; ++c) {
        codes.push_back(k.stored[at + c]);
        values.push_back(v.numbers[at + c]);
      }
      factors.push_back(*p.scale * q.factor(b, row, head) *
                        k.factor(b, key, head / (p.heads / p.kv_heads)));
    }
    const auto at = static_cast<std::size_t>((queries.first + row) * p.heads + head) * dims;
    return reference::attention_fp8_losses(
        {.q = std::span(q.stored).subspan(at, dims),
         .k = codes,
         .factors = factors,
         .v = values,
         .softcap = p.softcap,
         .log_sum = p.has_sink ? std::log(std::exp(log_sum) +
                                          std::exp(sinks(p)[static_cast<std::size_t>(head)]))
                               : log_sum,
         .sum_keys = (keys / plan.tile_keys + 2) * plan.tile_keys,
         .adds_all = plan.accumulation == Fp8Accumulation::kOneLevel});
  }
};
TILEWRIGHT_ON_EVERY_CHIP(AttentionE4m3Test);

TEST_P(AttentionE4m3Test, EveryKindOfFactorAndLayout) {
  for (const auto scales : {ScaleSharing::kTensor, ScaleSharing::kHead, ScaleSharing::kBlock}) {
    for (const auto layout : {Fp8ValueLayout::kRows, Fp8ValueLayout::kColumns}) {
      if (is_blackwell() && layout == Fp8ValueLayout::kColumns) continue;
      for (const std::int64_t head_dim : {64, 128, 256})
        check(with(kSmall, [&](auto& p) {
          p.fp8.scales = scales, p.fp8.v_layout = layout, p.head_dim = head_dim;
        }));
    }
  }
}
// Multiples of 16 between those of kernels: every form of K7, clipped by the map of out or trimmed.
TEST_P(AttentionE4m3Test, HeadDimsBetweenThoseOfKernels) {
  const Starts starts = {{0, 9, 12, 12, 29}, {0, 140, 160, 165, 182}};
  for (const auto scales : {ScaleSharing::kHead, ScaleSharing::kBlock}) {
    for (const auto layout : {Fp8ValueLayout::kRows, Fp8ValueLayout::kColumns}) {
      if (is_blackwell() && layout == Fp8ValueLayout::kColumns) continue;
      for (const std::int64_t head_dim : {48, 80, 192}) {
        const AttentionProblem p = with(kSmall, [&](auto& x) {
          x.fp8.scales = scales, x.fp8.v_layout = layout, x.head_dim = head_dim;
        });
        check(p);
        check(with(p,
                   [&](auto& x) {
                     x.is_packed = true, x.batch = 4, x.out_dtype = DType::kF16;
                     x.q_len = 17, x.kv_len = 140, x.total_q = 29, x.total_kv = 182;
                   }),
              starts);
      }
    }
  }
}
TEST_P(AttentionE4m3Test, ColumnsAreOfHopperAlone) {
  if (!is_blackwell()) return;
  try {
    plan_attention(*device_,
                   with(kSmall, [](auto& p) { p.fp8.v_layout = Fp8ValueLayout::kColumns; }));
    ADD_FAILURE() << "not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
    EXPECT_NE(std::string(error.what()).find("sm100_h: reads values in rows"), std::string::npos)
        << error.what();
  }
}

std::vector<std::uint8_t> draw_rows(kernels::Random& random, std::int64_t rows) {
  std::vector<std::uint8_t> codes;
  for (std::int64_t i = 0; i < rows * 64; ++i)
    codes.push_back(static_cast<std::uint8_t>(encode(kE4m3, random.uniform(-2, 2))));
  return codes;
}

// Results of packed sequences are those of each alone, bit for bit, whatever lies behind it: here
// values that are NaN.
TEST_P(AttentionE4m3Test, PackedSequencesAreThoseAlone) {
  const std::vector<std::int32_t> q_lens = {30, 20, 9}, kv_lens = {140, 50, 40};
  kernels::Random random(1);
  const std::vector<std::uint8_t> q = draw_rows(random, 59 * 2), k = draw_rows(random, 230);
  std::vector<std::uint8_t> v = draw_rows(random, 230);
  std::fill(v.begin() + 140 * 64, v.begin() + 190 * 64, std::uint8_t{0x7f});
  const std::vector<float> scales = {0.5f, 0.25f, 1.0f};
  const auto run = [&](AttentionProblem p, std::size_t sequence, std::int64_t q_begin,
                       std::int64_t q_rows, std::int64_t kv_begin, std::int64_t kv_rows) {
    p.dtype = DType::kF8_E4M3, p.heads = 2, p.kv_heads = 1, p.head_dim = 64, p.causal = true;
    p.fp8.scales = ScaleSharing::kHead;
    const Attention attention(*device_, p);
    const device::Device& inner = opened(*device_);
    const auto upload = [&](const auto& x, std::int64_t begin, std::int64_t count) {
      return Buffer::from(inner, std::vector(x.begin() + begin, x.begin() + begin + count));
    };
    const Buffer q8 = upload(q, q_begin * 128, q_rows * 128);
    const Buffer k8 = upload(k, kv_begin * 64, kv_rows * 64);
    const Buffer v8 = upload(v, kv_begin * 64, kv_rows * 64);
    const auto first = static_cast<std::int64_t>(sequence);
    const Buffer s = upload(scales, first, p.is_packed ? 3 : 1);
    const Buffer cu_q = Buffer::from(inner, std::vector<std::int32_t>{0, 30, 50, 59});
    const Buffer cu_kv = Buffer::from(inner, std::vector<std::int32_t>{0, 140, 190, 230});
    Buffer workspace(inner, attention.plan().workspace_bytes);
    const kernels::Output<std::uint16_t> out(inner, static_cast<std::size_t>(q_rows * 128));
    attention.run({.q = kernels::pointer_to<const void>(q8),
                   .k = kernels::pointer_to<const void>(k8),
                   .v = kernels::pointer_to<const void>(v8),
                   .out = out.pointer(),
                   .cu_q = kernels::pointer_to<const std::int32_t>(cu_q),
                   .cu_kv = kernels::pointer_to<const std::int32_t>(cu_kv),
                   .workspace = kernels::pointer_to<void>(workspace),
                   .q_descale = kernels::pointer_to<const float>(s),
                   .k_descale = kernels::pointer_to<const float>(s),
                   .v_descale = kernels::pointer_to<const float>(s)});
    device_->synchronize();
    return out.read();
  };
  AttentionProblem all;
  all.is_packed = true, all.batch = 3, all.q_len = 30, all.kv_len = 140;
  all.total_q = 59, all.total_kv = 230;
  const std::vector<std::uint16_t> together = run(all, 0, 0, 59, 0, 230);
  std::int64_t q_begin = 0, kv_begin = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    AttentionProblem one;
    one.q_len = q_lens[i], one.kv_len = kv_lens[i];
    const auto alone = run(one, i, q_begin, q_lens[i], kv_begin, kv_lens[i]);
    const std::span got = std::span(together).subspan(static_cast<std::size_t>(q_begin * 128),
                                                      static_cast<std::size_t>(q_lens[i] * 128));
    EXPECT_TRUE(std::equal(alone.begin(), alone.end(), got.begin())) << "sequence " << i;
    if (i != 1) {
      EXPECT_TRUE(std::ranges::all_of(
          got, [](std::uint16_t x) { return std::isfinite(decode(kBf16, x)); }));
    }
    q_begin += q_lens[i], kv_begin += kv_lens[i];
  }
}
TEST_P(AttentionE4m3Test, Float16ResultsOfTwoLevels) {
  check(with(kSmall, [](auto& p) {
    p.out_dtype = DType::kF16, p.causal = false;
    p.fp8.scales = ScaleSharing::kBlock, p.fp8.accumulation = Fp8Accumulation::kTwoLevel;
  }));
}
TEST_P(AttentionE4m3Test, WindowSoftcapSinkAndGroups) {
  for (const auto scales : {ScaleSharing::kTensor, ScaleSharing::kBlock}) {
    const auto run = [&](auto change) {
      check(with(kSmall, [&](auto& p) {
        p.fp8.scales = scales;
        change(p);
      }));
    };
    run([](auto& p) { p.window_left = 30; });
    run([](auto& p) { p.softcap = 2; });
    run([](auto& p) { p.has_sink = true, p.heads = 4; });
    run([](auto& p) { p.q_len = 140, p.heads = 3; });  // two tiles of Blackwell's rows, and more
    run([](auto& p) { p.window_left = 50, p.softcap = 4, p.has_sink = true, p.causal = false; });
  }
}
// Codes that come packed: a sequence without queries, and one of as many queries as keys.
TEST_P(AttentionE4m3Test, PackedSequences) {
  const Starts starts = {{0, 9, 12, 12, 29}, {0, 140, 160, 165, 182}};
  for (const auto scales : {ScaleSharing::kTensor, ScaleSharing::kHead, ScaleSharing::kBlock}) {
    for (const auto layout : {Fp8ValueLayout::kRows, Fp8ValueLayout::kColumns}) {
      if (is_blackwell() && layout == Fp8ValueLayout::kColumns) continue;
      for (const bool is_causal : {true, false}) {
        check(with(kSmall,
                   [&](auto& p) {
                     p.is_packed = true, p.batch = 4, p.causal = is_causal;
                     p.q_len = 17, p.kv_len = 140, p.total_q = 29, p.total_kv = 182;
                     p.fp8.scales = scales, p.fp8.v_layout = layout;
                   }),
              starts);
      }
    }
  }
}
// The last of two tiles of a head has rows for one warpgroup: CTAs draw tiles from a counter, whose
// place in the workspace needs no preparation.
TEST_P(AttentionE4m3Test, TilesThatAreDrawn) {
  for (const std::int64_t head_dim : {64, 128, 256}) {
    const AttentionProblem p = with(kSmall, [&](auto& problem) {
      problem.batch = 1, problem.q_len = 200, problem.head_dim = head_dim, problem.causal = false;
      problem.kernel = is_blackwell() ? "sm100_h" : "k7";
    });
    if (!is_blackwell()) {
      EXPECT_GT(plan_attention(*device_, p).workspace_bytes, 0u);
    }
    check(p);
  }
}

}  // namespace
}  // namespace tilewright::ops
