// A-priori bounds on the error of attention whose operands and weights are e4m3.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tilewright::reference {

/// One row of a result, and the arithmetic it was made with: scores and sums of weighted values in
/// a tensor core of 13 fraction bits, weights 2^7 or more at the row's maximum, rounded to e4m3,
/// summed in fp32 before that.
struct AttentionFp8Row {
  std::int64_t num_keys = 0;   ///< visible, or more
  std::int64_t num_tiles = 0;  ///< of keys: corrections of sums and results
  double score_magnitude = 0;  ///< max_j scale * sum_c |q_c k_jc|
  double score_loss = 0;       ///< of the tensor core's q . k, times scale; 0: they are exact
  double sink = 0;             ///< its magnitude; 0: none, or an infinity
  double softcap = 0;
  double top_share = 1;  ///< largest weight / sum of all, or more
  double value_max = 0;  ///< largest stored value times the largest factor of values
  double out_roundoff = 0, out_subnormal = 0;  ///< of the result: its spacing below normal numbers
};

/// Bound on how far every score, as the exponential sees it, is off (natural logarithm):
///   dot     score_loss
///   scale   products with the factors of q and k, with the scale and with the maximum, and the
///           difference of the two, each correction of a tile again: 8 (tiles + 1) * 2^-24
///   exp2    2^-22 relative, each correction again; tanh of a softcap 2^-20 of the cap
///   sink    as it is scaled: 4 * 2^-24
double attention_fp8_score_error(const AttentionFp8Row& row);

/// Bound on |computed - exact| of an element whose sum of p |v| is `magnitude`; the tensor core
/// loses value_loss * magnitude of the sum of weighted values.
///   scores   a perturbation by d changes out by at most (exp(2 d) - 1) * magnitude
///   p        e4m3: 2^-4 relative; below 2^-6 2^-10 absolute, and weights add up to 2^7 / top_share
///            or more: num_keys * 2^-17 * top_share * value_max
///   sums     num_keys additions of the denominator, 4 roundings a tile and 8
///   out      out_roundoff of the result, half of out_subnormal
double attention_fp8_out_bound(const AttentionFp8Row& row, double value_loss, double exact,
                               double magnitude);

/// Bound on the error of lse: that of the scores, of the sum, of max * ln 2 + ln sum: both rounded,
/// the logarithm to 2 units.
double attention_fp8_lse_bound(const AttentionFp8Row& row, double exact);

/// A query and the keys that it sees, in the order of their rows.
struct AttentionFp8Keys {
  std::span<const double> q, k;     ///< stored numbers [head_dim], [keys, head_dim]
  std::span<const double> factors;  ///< [keys]: scale times the factors of q and k
  std::span<const double> v;        ///< [keys, head_dim], with their factors
  double softcap = 0;
  double log_sum = 0;         ///< ln of all weights, with the sink
  std::int64_t sum_keys = 0;  ///< keys that the tensor core adds up at once
  bool adds_all = false;      ///< it adds up all of them, the last tile first
};

/// What a tensor core of 13 fraction bits loses of a row, from the numbers themselves.
struct AttentionFp8Losses {
  double score = 0;            ///< AttentionFp8Row::score_loss
  std::vector<double> values;  ///< [head_dim], in parts of sum_j p_j |v_j|
};

/// Scores: tensor_core_dot_error(). Sums of weighted values: with e = TensorCore::step_error(), n
/// steps lose at most ((1 + e)^n - 1) A, A a bound on every partial sum and every term. Keys come
/// tile by tile from one end, so partial sums are sums over a range of neighbours, and within a
/// tile over one more: A = 2 (max - min of prefix sums) + 2^-3 M, M = sum p |v| for the rounding of
/// weights (2^-4) and scores; M (1 + 2^-3) if that is less or sums are over parts of the keys.
AttentionFp8Losses attention_fp8_losses(const AttentionFp8Keys& keys);

}  // namespace tilewright::reference
