// A-priori bound on the error of a dot product computed in narrow arithmetic.
#pragma once

#include <cstdint>
#include <span>

namespace tilewright::reference {

// Unit roundoffs u = 2^-p of round to nearest, p = bits of the significand: fl(x) = x (1 + d),
// |d| <= u, as long as x is in the normal range of the format. An accumulator that truncates has 2
// u.
inline constexpr double kRoundoffFp64 = 0x1p-53;
inline constexpr double kRoundoffFp32 = 0x1p-24;
inline constexpr double kRoundoffFp16 = 0x1p-11;
inline constexpr double kRoundoffBf16 = 0x1p-8;
inline constexpr double kRoundoffE4m3 = 0x1p-4;
inline constexpr double kRoundoffE2m1 = 0x1p-2;

/// Arithmetic of a dot product. A roundoff of 0 means that the step is exact.
struct DotArithmetic {
  int64_t length = 0;     ///< products in the sum
  double a_roundoff = 0;  ///< of storing the left factors; 0: they are given in that format
  double b_roundoff = 0;  ///< of storing the right factors
  double accumulate_roundoff = 0;  ///< of each product and each addition
  double output_roundoff = 0;      ///< of storing the sum
};

/// Bound on |computed - exact| of s = sum_i a_i b_i, where exact = s, magnitude = sum_i |a_i b_i|.
///
/// The computed sum before the last rounding is sum_i a_i b_i f_i. f_i is a product of factors
/// (1 + d): one with |d| <= a_roundoff, one with |d| <= b_roundoff, and at most `length` with
/// |d| <= accumulate_roundoff, whatever the order of the additions: one of the product and at most
/// length - 1 of additions (adding to 0 is exact). Because every |d| is at most its u,
/// |prod(1 + d) - 1| <= prod(1 + u) - 1. So the error of the sum is at most
///   g * magnitude,  g = (1 + a_roundoff) (1 + b_roundoff) (1 + accumulate_roundoff)^length - 1.
/// (The usual gamma_n = n u / (1 - n u) is a weaker form of the last power; g needs no n u < 1.)
/// Storing adds at most output_roundoff * (|exact| + g * magnitude).
///
/// Underflow is not covered: values that become subnormal add an absolute error of their own.
/// Errors   InvalidArgument if length, a roundoff or magnitude is negative
/// Source   Higham, Accuracy and Stability of Numerical Algorithms, chapter 3
double dot_error_bound(const DotArithmetic& arithmetic, double exact, double magnitude);

/// A tensor core that adds `depth` products and its accumulator at a time. Each of the depth + 1
/// terms is cut to a multiple of 2^(e - fraction_bits), e = the largest exponent among them, and
/// the sum to result_bits behind its leading one.
struct TensorCore {
  int depth;
  int fraction_bits;
  int result_bits;

  /// Bound on what a step loses, in parts of the sum of magnitudes: (depth + 1) 2^-F + 2^-R.
  double step_error() const;
};
inline constexpr TensorCore kBf16TensorCore = {16, 25, 23};
inline constexpr TensorCore kHopperE4m3TensorCore = {32, 13, 13};

/// Bound on the error of a sum of `length` products in a tensor core with fp32 sums, in parts of
/// the sum of their magnitudes: ceil(length / 16) steps, twice for growth. Fused multiply-adds lose
/// less.
double tensor_core_error(std::int64_t length);

/// Bound on the error of sum_i a_i b_i in a tensor core, from the numbers themselves: in each step
/// terms that are multiples of what they are cut to lose nothing, the others less than that and no
/// more than themselves; the accumulator is what was exact so far, give or take what was lost.
/// Of e4m3 most terms lose nothing: products have 6 fraction bits.
double tensor_core_dot_error(const TensorCore& core, std::span<const double> a,
                             std::span<const double> b);

}  // namespace tilewright::reference
