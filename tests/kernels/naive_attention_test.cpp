// Naive attention over packed sequences against the float64 reference.
#include "kernels/probe/naive_attention.h"

#include "reference/attention/attention.h"
#include "reference/error_bound.h"
#include "tests/kernels/kernel_test.h"

#include <cmath>
#include <numeric>

namespace tilewright::kernels {
namespace {

struct Sequences {
  std::vector<int> q_lens, kv_lens;
  int heads = 4, kv_heads = 2, head_dim = 24;
  bool is_causal = false;
};

std::vector<std::int32_t> running_sums(const std::vector<int>& lengths) {
  std::vector<std::int32_t> sums = {0};
  for (const int length : lengths) sums.push_back(sums.back() + length);
  return sums;
}

struct Inputs {
  std::vector<double> q, k, v;
  std::vector<std::int32_t> cu_q, cu_kv;
};

Inputs draw_inputs(const Sequences& s, const FormatSpec& format) {
  Inputs in;
  in.cu_q = running_sums(s.q_lens);
  in.cu_kv = running_sums(s.kv_lens);
  const std::int64_t q_elems = std::int64_t{in.cu_q.back()} * s.heads * s.head_dim;
  const std::int64_t kv_elems = std::int64_t{in.cu_kv.back()} * s.kv_heads * s.head_dim;
  in.q = draw_many(1, q_elems, Numbers::kUniform, format);
  in.k = draw_many(2, kv_elems, Numbers::kUniform, format);
  in.v = draw_many(3, kv_elems, Numbers::kUniform, format);
  return in;
}

Buffer upload(const Device& device, const FormatSpec& format, const std::vector<double>& values) {
  if (format == kFp32) return Buffer::from(device, to_floats(values));
  return Buffer::from(device, encode_all<std::uint16_t>(format, values));
}

/// Bound on the error of out: every score, as the exponential sees it, is off by at most d, and the
/// weighted sum by rounding.
///   s    head_dim fused steps and the product with the scale: (1 + u)^(head_dim + 1)
///   max  subtracted: u |s - max|; times log2 e, itself rounded: 2 u more; |s - max| <= 2 S
///   exp  ex2.approx: 2^-22 relative; exp2f scales its argument by powers of two only
/// with S = max |scale| sum |q k|. A common factor of numerator and denominator cancels but for
/// their own sums: kv_len additions each, the division, and kv_len products.
double error_bound(int head_dim, int kv_len, double score_magnitude, double out_magnitude) {
  constexpr double u = reference::kRoundoffFp32;
  const double s = score_magnitude;
  const double score_error = std::expm1((head_dim + 2) * std::log1p(u)) * s;
  const double d = score_error + 3 * u * 2 * (s + score_error) + 0x1p-22;
  const double sums = std::expm1((2 * kv_len + 4) * std::log1p(u));
  const double underflow = kv_len * 0x1p-126;  // probabilities that the exponential flushes
  return (std::expm1(2 * d) * (1 + sums) + sums) * out_magnitude + underflow * 4;
}

class NaiveAttention : public KernelTest {
 protected:
  static std::vector<float> attend(const Device& device, const Sequences& s, const Inputs& in,
                                   const FormatSpec& format) {
    const std::int32_t total_q = in.cu_q.back();
    const int max_kv =
        s.kv_lens.empty() ? 0 : *std::max_element(s.kv_lens.begin(), s.kv_lens.end());
    const Buffer q = upload(device, format, in.q), k = upload(device, format, in.k);
    const Buffer v = upload(device, format, in.v);
    const Buffer cu_q = Buffer::from(device, in.cu_q), cu_kv = Buffer::from(device, in.cu_kv);
    const Output<float> scores(device, static_cast<std::size_t>(s.heads) * total_q * max_kv);
    const Output<float> out(device, in.q.size());
    const NaiveAttentionParams params = {pointer_to<const void>(q),
                                         pointer_to<const void>(k),
                                         pointer_to<const void>(v),
                                         scores.pointer(),
                                         out.pointer(),
                                         pointer_to<const std::int32_t>(cu_q),
                                         pointer_to<const std::int32_t>(cu_kv),
                                         static_cast<std::int32_t>(s.q_lens.size()),
                                         s.heads,
                                         s.kv_heads,
                                         s.head_dim,
                                         max_kv,
                                         static_cast<float>(1 / std::sqrt(s.head_dim)),
                                         s.is_causal ? 1 : 0};
    if (total_q > 0) launch(device, params, total_q, format == kFp32 ? "_f32" : "_bf16");
    scores.read();  // for its margin
    return out.read();
  }

  static void launch(const Device& device, const NaiveAttentionParams& params, std::int32_t total_q,
                     const std::string& type) {
    const auto queries = static_cast<std::uint32_t>(total_q);
    const auto heads = static_cast<std::uint32_t>(params.heads);
    if (params.max_kv_len > 0) {
      run_kernel(
          device, "naive_attention_scores" + type,
          {.grid = {ceil_div(params.max_kv_len, kNaiveAttentionScoresThreads), queries, heads},
           .block = {kNaiveAttentionScoresThreads}},
          params);
    }
    run_kernel(device, "naive_attention_softmax",
               {.grid = {ceil_div(total_q, kNaiveAttentionSoftmaxWarps), heads},
                .block = {kNaiveAttentionSoftmaxWarps * 32}},
               params);
    run_kernel(device, "naive_attention_output" + type,
               {.grid = {ceil_div(params.head_dim, kNaiveAttentionOutputThreads), queries, heads},
                .block = {kNaiveAttentionOutputThreads}},
               params);
  }

  void check(const Sequences& s, const FormatSpec& format) {
    const Inputs in = draw_inputs(s, format);
    const std::vector<float> out = attend(device(), s, in, format);
    const reference::AttentionResult expected =
        reference::attention({.batch = static_cast<std::int64_t>(s.q_lens.size()),
                              .heads = s.heads,
                              .kv_heads = s.kv_heads,
                              .head_dim = s.head_dim,
                              .v_head_dim = s.head_dim,
                              .scale = static_cast<float>(1 / std::sqrt(s.head_dim)),
                              .causal = s.is_causal,
                              .cu_seqlens_q = in.cu_q,
                              .cu_seqlens_kv = in.cu_kv,
                              .magnitudes = true},
                             in.q, in.k, in.v);
    const std::size_t total_q = static_cast<std::size_t>(in.cu_q.back());
    const int max_kv =
        s.kv_lens.empty() ? 0 : *std::max_element(s.kv_lens.begin(), s.kv_lens.end());
    ASSERT_EQ(out.size(), expected.out.size());
    for (std::size_t i = 0; i < out.size(); ++i) {
      const std::size_t head = i / s.head_dim % s.heads, query = i / s.head_dim / s.heads;
      const double bound =
          error_bound(s.head_dim, max_kv, expected.score_magnitude[head * total_q + query],
                      expected.out_magnitude[i]);
      ASSERT_LE(std::abs(out[i] - expected.out[i]), bound)
          << "query " << query << ", head " << head << ", dimension " << i % s.head_dim;
    }
  }

  void check_both_types(const Sequences& s) {
    check(s, kFp32);
    check(s, kBf16);
  }
};
TILEWRIGHT_ON_EVERY_DEVICE(NaiveAttention);

TEST_P(NaiveAttention, FullOverRaggedSequences) {
  check_both_types({.q_lens = {5, 1, 17, 3}, .kv_lens = {5, 70, 33, 1}});
}
TEST_P(NaiveAttention, CausalOverRaggedSequences) {
  check_both_types({.q_lens = {5, 1, 17, 33}, .kv_lens = {9, 65, 17, 33}, .is_causal = true});
}
// The first queries of the second sequence stand before its first key.
TEST_P(NaiveAttention, QueriesThatSeeNothingGiveZeros) {
  check_both_types({.q_lens = {2, 7}, .kv_lens = {4, 3}, .is_causal = true});
}
TEST_P(NaiveAttention, EmptySequences) {
  check_both_types({.q_lens = {0, 3, 0, 2, 0}, .kv_lens = {4, 0, 0, 6, 2}});
  check_both_types({.q_lens = {0}, .kv_lens = {8}});
}
TEST_P(NaiveAttention, OneToken) {
  check_both_types({.q_lens = {1}, .kv_lens = {1}, .heads = 1, .kv_heads = 1, .head_dim = 1});
}
TEST_P(NaiveAttention, WideHeads) {
  check_both_types({.q_lens = {2, 3},
                    .kv_lens = {130, 40},
                    .heads = 3,
                    .kv_heads = 1,
                    .head_dim = 128,
                    .is_causal = true});
}

}  // namespace
}  // namespace tilewright::kernels
