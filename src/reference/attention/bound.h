// A-priori bounds on the error of fused attention kernels.
#pragma once

#include "reference/attention/attention.h"

#include <cstdint>
#include <span>
#include <vector>

namespace tilewright::reference {

/// One row of a result, and the arithmetic it was made with: scores accumulated in fp32 by a
/// tensor core (or by fused multiply-adds, which lose less), probabilities relative to a running
/// maximum, stored with p_roundoff before they meet v, and a result stored with out_roundoff.
struct AttentionRow {
  std::int64_t head_dim = 0;
  std::int64_t num_keys = 0;   ///< visible
  double score_magnitude = 0;  ///< max_j scale * sum_c |q_c k_jc|
  double row_max = 0;          ///< largest score
  double score_shift = 0;      ///< of scores, as operands are in doubt: attention_score_shift()
  double top_share = 1;        ///< largest weight / sum of all, or more
  double softcap = 0;
  double value_max = 0;    ///< max |v|, for probabilities that underflow
  double p_roundoff = 0;   ///< kRoundoffBf16, kRoundoffFp16
  double p_subnormal = 0;  ///< spacing of subnormal probabilities
  double out_roundoff = 0;
};

/// Bound on how far every score, as the exponential sees it, is off (natural logarithm).
///
///   dot    tensor_core_error()
///   scale  folded with log2 e into one factor: 2 roundings, the product with the maximum 1,
///          the fused subtraction 1 of at most twice the scores: 6 * 2^-24
///   exp2   2^-22 relative, also by a polynomial; tanh of a softcap 2^-20 of the cap
double attention_score_error(const AttentionRow& row);

/// Bound on |computed - exact| of an element whose sum of p |v| is `magnitude`:
///   scores      a perturbation by d changes out by at most (exp(2 d) - 1) * magnitude
///   p           p_roundoff of every term, p_subnormal / 2 * |v| where it underflows, while all
///               add up to 1 / top_share or more
///   sums        of values as of scores; num_keys additions of the denominator; rescaling once a
///   tile out         out_roundoff of the result
double attention_out_bound(const AttentionRow& row, double exact, double magnitude);

/// How far scores are off at most if elements of q and k are, by as much as q_doubt and k_doubt
/// say: per row [heads, q_len] the largest over all keys, visible or not.
/// Shapes   as those of attention() with a batch of 1; k_doubt may be empty: k is as it is
std::vector<double> attention_score_shift(const AttentionParams& params, std::span<const double> q,
                                          std::span<const double> q_doubt,
                                          std::span<const double> k,
                                          std::span<const double> k_doubt);

/// Bound on the error of lse: that of the scores, of the sum, and of ln and its product with ln 2.
double attention_lse_bound(const AttentionRow& row, double exact);

}  // namespace tilewright::reference
