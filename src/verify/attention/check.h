// Results of attention against the float64 reference: some rows, or all.
#pragma once

#include "verify/attention/rows.h"

#include <nlohmann/json_fwd.hpp>

namespace tilewright::cli {

/// Rows of choose_rows(), exactly, with the bounds of kernels that compute in 16 bits
/// (reference/attention/bound.h). The strides of the problem must be set.
std::vector<ExactRow> exact_rows(const AttentionData& data, std::int64_t count, std::uint64_t seed);

/// How far a result is off. A bound is what no correct kernel exceeds.
struct AttentionErrors {
  std::int64_t rows = 0;
  double max_abs = 0;
  double relative_rms = 0;  ///< of the error, relative to the result
  double rmse = 0;          ///< of the error as it is
  double cosine = 0;
  double worst = 0;    ///< largest |error| / bound
  double max_lse = 0;  ///< 0 without lse
  double worst_lse = 0;
  /// False if the bounds add up to what p |v| does: scores in so much doubt, by a huge scale or
  /// softcap, that any weights of the values would pass.
  bool is_decided = true;

  bool is_ok() const noexcept { return is_decided && worst <= 1 && worst_lse <= 1; }
};

/// `out` lies as the problem's strides say, lse as [batch, heads, q_len], packed
/// [heads, total_q], empty if there is none.
AttentionErrors compare_rows(const AttentionProblem& problem, std::span<const ExactRow> rows,
                             std::span<const std::uint16_t> out, std::span<const float> lse);

/// Results of a plan for the operands of `data`, in the rows `exact` of them (exact_rows()). How
/// far off e4m3 is says what rounding the operands costs. Whether it is right is another question,
/// that of the codes: worst, max_lse and worst_lse are against exact_fp8_rows(). is_rotated: of
/// operands that are e4m3 before the plan runs.
AttentionErrors check_attention(const AttentionData& data, const AttentionPlan& plan,
                                std::span<const ExactRow> exact, std::span<const std::uint16_t> out,
                                std::span<const float> lse, bool is_rotated = false);

nlohmann::json to_json(const AttentionErrors& errors);

}  // namespace tilewright::cli
