// What `tilewright attention` and `tilewright ladder` call correct. No device is opened.
#include "formats/minifloat.h"
#include "ops/attention/plan.h"
#include "ops/attention/prepare.h"
#include "reference/attention/attention.h"
#include "reference/attention/prepare.h"
#include "tests/ops/gpu_infos.h"
#include "verify/attention/check.h"
#include "verify/attention/fp8_check.h"
#include "verify/attention/input.h"

#include <array>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace tilewright::cli {
namespace {

constexpr std::int64_t kAllRows = std::numeric_limits<std::int64_t>::max();

AttentionData draw(const AttentionProblem& problem) {
  const AttentionProblem& p = problem;
  AttentionInput input;
  input.drawn = "normal";
  input.shape = {p.batch, p.heads, p.kv_heads, p.q_len, p.kv_len, p.head_dim};
  AttentionData data = load_attention(input);
  data.problem = problem;
  return data;
}

const AttentionProblem kProblem = {.dtype = DType::kBF16,
                                   .batch = 1,
                                   .heads = 2,
                                   .kv_heads = 1,
                                   .q_len = 64,
                                   .kv_len = 300,
                                   .head_dim = 64,
                                   .has_lse = true};

class Fp8Check : public testing::TestWithParam<const char*> {
 protected:
  Fp8Check() : data_(draw(kProblem)) {
    data_.problem.kernel = GetParam();
    plan_ = ops::make_attention_plan(ops::h200(), data_.problem);
    data_.problem = plan_.problem;
    exact_ = exact_rows(data_, kAllRows, 1);
    rows_ = exact_fp8_rows(data_, *fp8_computation(data_, plan_, false), exact_);
    out_.resize(data_.q.size());
    lse_.resize(exact_.size());
    for (const ExactRow& row : rows_) {
      for (std::size_t c = 0; c < row.out.size(); ++c) set(row, c, row.out[c]);
      lse_at(row) = static_cast<float>(row.lse);
    }
  }

  void set(const ExactRow& row, std::size_t column, double value) {
    const auto head = static_cast<std::size_t>(row.row * kProblem.heads + row.head);
    out_[head * row.out.size() + column] = static_cast<std::uint16_t>(encode(kBf16, value));
  }
  float& lse_at(const ExactRow& row) {
    return lse_[static_cast<std::size_t>(row.head * kProblem.q_len + row.row)];
  }
  AttentionErrors check() const { return check_attention(data_, plan_, exact_, out_, lse_); }

  AttentionData data_;
  AttentionPlan plan_;
  std::vector<ExactRow> exact_, rows_;  // of 16 bits, of the codes
  std::vector<std::uint16_t> out_;
  std::vector<float> lse_;
};

TEST_P(Fp8Check, ResultsOfTheCodesAreCorrectAndOffThoseOf16Bits) {
  const AttentionErrors errors = check();
  EXPECT_TRUE(errors.is_ok());
  EXPECT_LT(errors.worst, 0.2) << "only the result is rounded";
  EXPECT_GT(errors.relative_rms, 0.01) << "what rounding the operands costs";
  EXPECT_LT(errors.relative_rms, 0.1);
}

TEST_P(Fp8Check, OneWrongElementIsFoundWhateverTheMeanSays) {
  const double before = check().relative_rms;
  const ExactRow& row = rows_[77];
  set(row, 5, row.out[5] + 1.1 * row.out_bound[5]);
  const AttentionErrors errors = check();
  EXPECT_NEAR(errors.relative_rms, before, 0.1 * before);
  EXPECT_GT(errors.worst, 1);
  EXPECT_LT(errors.worst, 1.2);
  EXPECT_FALSE(errors.is_ok());
}

TEST_P(Fp8Check, OneWrongLseIsFound) {
  lse_at(rows_[9]) += static_cast<float>(1.1 * rows_[9].lse_bound);
  const AttentionErrors errors = check();
  EXPECT_LT(errors.worst, 1);
  EXPECT_GT(errors.worst_lse, 1);
  EXPECT_FALSE(errors.is_ok());
}

INSTANTIATE_TEST_SUITE_P(Kernels, Fp8Check, testing::Values("k7", "k8"),
                         [](const auto& kernel) { return std::string(kernel.param); });

// Rows are computed part by part; here the same from whole tensors.
struct Rounding {
  ScaleSharing scales;
  bool is_rotated, is_packed;
};

// Queries, keys or values (i = 0, 1, 2), rounded as a whole.
std::vector<double> rounded(const Rounding& how, const Fp8Computation& computation,
                            const AttentionData& data, const std::vector<std::uint16_t>& codes,
                            int i) {
  const AttentionProblem& p = data.problem;
  const std::vector<float> signs = attention_signs(computation.prepare.sign_seed, p.head_dim);
  const reference::AttentionPrepareParams params = {
      .batch = p.batch,
      .heads = i == 0 ? p.heads : p.kv_heads,
      .kv_heads = p.kv_heads,
      .rows = i == 0 ? p.q_len : p.kv_len,
      .head_dim = p.head_dim,
      .cu_seqlens = i == 0 ? data.cu_q : data.cu_kv,
      .scales = how.scales,
      .block_rows = i == 0 ? 64 : 128,
      .has_pow2_scales = i == 2 && how.scales == ScaleSharing::kBlock,
      .is_rotated = how.is_rotated && i < 2,
      .signs = signs};
  const std::int64_t rows =
      params.cu_seqlens.empty() ? p.batch * params.rows : params.cu_seqlens.back();
  std::vector<float> x;
  for (const std::uint16_t code :
       std::span(codes).first(static_cast<std::size_t>(rows * params.heads * p.head_dim)))
    x.push_back(static_cast<float>(decode(kBf16, code)));
  return reference::dequantize_attention_operand(params,
                                                 reference::prepare_attention_operand(params, x));
}

class Fp8Rows : public testing::TestWithParam<Rounding> {};

TEST_P(Fp8Rows, AreAttentionOfTheWholeTensorsRounded) {
  const auto [scales, is_rotated, is_packed] = GetParam();
  AttentionProblem p = kProblem;
  p.batch = 2, p.heads = 4, p.kv_heads = 2, p.q_len = 70, p.kv_len = 150, p.causal = true;
  AttentionData data = draw(p);
  if (is_packed) {
    p.is_packed = true, p.total_q = 100, p.total_kv = 210;
    data.cu_q = {0, 70, 100}, data.cu_kv = {0, 60, 210};
  }
  // A factor is that of the largest element: one more in every head.
  for (auto* const codes : {&data.q, &data.k, &data.v})
    for (std::size_t i = 0; i < codes->size(); i += 1001)
      (*codes)[i] = static_cast<std::uint16_t>(encode(kBf16, 4 + 1e-3 * static_cast<double>(i)));
  data.problem = ops::make_attention_plan(ops::h200(), p).problem;
  const Fp8Computation computation = {
      .prepare = ops::make_attention_prepare_plan(
                     ops::h200(), prepare_problem(data.problem, {.scales = scales}, is_rotated))
                     .problem,
      .tile_keys = 128};
  const auto q = rounded(GetParam(), computation, data, data.q, 0);
  const auto k = rounded(GetParam(), computation, data, data.k, 1);
  const auto v = rounded(GetParam(), computation, data, data.v, 2);
  const std::vector<ExactRow> rows =
      exact_fp8_rows(data, computation, exact_rows(data, kAllRows, 1));
  ASSERT_EQ(rows.size(), static_cast<std::size_t>(p.heads * (is_packed ? 100 : 140)));
  for (const ExactRow& row : rows) {
    const AttentionSequence sequence = find_sequence(data, row.batch);
    const auto q_row = is_packed ? row.first + row.row : row.batch * p.q_len + row.row;
    const auto kv_first = is_packed ? sequence.kv_first : row.batch * p.kv_len;
    const auto q_begin = static_cast<std::size_t>((q_row * p.heads + row.head) * p.head_dim);
    std::vector<double> keys, values;
    for (std::int64_t j = 0; j < visible_keys(data, row).count(); ++j) {
      const auto begin =
          static_cast<std::size_t>(((kv_first + j) * p.kv_heads + row.head / 2) * p.head_dim);
      for (std::size_t c = begin; c < begin + static_cast<std::size_t>(p.head_dim); ++c)
        keys.push_back(k[c]), values.push_back(v[c]);
    }
    const reference::AttentionResult exact =
        attend_query(data, row, std::span(q).subspan(q_begin, 64), keys, values);
    for (std::size_t c = 0; c < exact.out.size(); ++c)
      ASSERT_NEAR(row.out[c], exact.out[c], 1e-9)
          << row.batch << " " << row.head << " " << row.row << " " << c;
  }
}

std::string name_of(const Rounding& r) {
  return to_string(r.scales) + std::string(r.is_rotated ? "Rotated" : "") +
         (r.is_packed ? "Packed" : "");
}

INSTANTIATE_TEST_SUITE_P(Roundings, Fp8Rows,
                         testing::Values(Rounding{ScaleSharing::kTensor, false, false},
                                         Rounding{ScaleSharing::kTensor, true, true},
                                         Rounding{ScaleSharing::kHead, true, false},
                                         Rounding{ScaleSharing::kHead, false, true},
                                         Rounding{ScaleSharing::kBlock, true, false},
                                         Rounding{ScaleSharing::kBlock, false, true}),
                         [](const auto& rounding) { return name_of(rounding.param); });

}  // namespace
}  // namespace tilewright::cli
