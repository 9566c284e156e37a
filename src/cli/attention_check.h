// Results of attention against the float64 reference: some rows, or all.
#pragma once

#include "cli/attention_rows.h"

#include <nlohmann/json_fwd.hpp>

namespace tilewright::cli {

/// Rows of choose_rows(), exactly, with the bounds of kernels that compute in 16 bits
/// (reference/attention_bound.h). The strides of the problem must be set.
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

  /// From a comparison of the same results with what has tighter bounds.
  void take_bounds(const AttentionErrors& other) {
    worst = other.worst;
    max_lse = other.max_lse;
    worst_lse = other.worst_lse;
  }

  /// Not 0: instead of bounds for every element, what relative_rms may be.
  double rms_limit = 0;

  bool is_ok() const noexcept {
    return rms_limit > 0 ? relative_rms <= rms_limit : worst <= 1 && worst_lse <= 1;
  }
};

/// `out` lies as the problem's strides say, lse as [batch, heads, q_len], packed
/// [heads, total_q], empty if there is none. rms_limit: as of AttentionErrors.
AttentionErrors compare_rows(const AttentionProblem& problem, std::span<const ExactRow> rows,
                             std::span<const std::uint16_t> out, std::span<const float> lse,
                             double rms_limit = 0);

nlohmann::json to_json(const AttentionErrors& errors);

}  // namespace tilewright::cli
