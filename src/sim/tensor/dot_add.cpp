#include "sim/tensor/dot_add.h"

#include "sim/tensor/wide_sum.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>

namespace tilewright::sim {

namespace {

using Kind = TensorNumber::Kind;

/// A summand: value * 2^(exponent - fraction_bits). `exponent` decides the alignment.
struct Term {
  std::int64_t value;
  int exponent;
  int fraction_bits;
};

/// value * 2^shift, truncated toward zero.
std::int64_t scale_toward_zero(std::int64_t value, int shift) {
  if (shift >= 0) return value * (std::int64_t{1} << std::min(shift, 62));
  const std::int64_t magnitude = shift > -63 ? std::abs(value) >> -shift : 0;
  return value < 0 ? -magnitude : magnitude;
}

std::uint32_t sign_code(const FormatSpec& format, bool is_negative) {
  return is_negative ? format.sign_mask() : 0;
}

/// The rounding step. The exact value is magnitude * 2^lowest_exponent, plus less than one unit of
/// that if has_remainder.
std::uint32_t round_to_output(const TensorArithmetic& arithmetic, const WideSum::Value& sum) {
  const FormatSpec& format = code_format(arithmetic.output);
  if (sum.magnitude == 0) return 0;
  const bool is_short = arithmetic.output == OutputFormat::kF32E8M13 && !arithmetic.is_exact;
  const int kept_bits = is_short ? 13 : format.mantissa_bits;
  const int top = static_cast<int>(std::bit_width(sum.magnitude)) - 1 + sum.lowest_exponent;
  const int exponent = std::max(top, format.min_exponent());
  const int shift = exponent - kept_bits - sum.lowest_exponent;

  std::uint64_t kept = 0;
  if (shift <= 0) {
    kept = sum.magnitude << -shift;
  } else {
    const bool is_nearest = arithmetic.is_exact || arithmetic.output == OutputFormat::kF16;
    kept = shift < 64 ? sum.magnitude >> shift : 0;
    const std::uint64_t cut = shift < 64 ? sum.magnitude - (kept << shift) : sum.magnitude;
    const std::uint64_t half = shift <= 64 ? std::uint64_t{1} << (shift - 1) : 0;
    const bool is_above = half != 0 && (cut > half || (cut == half && sum.has_remainder));
    const bool is_tie = half != 0 && cut == half && !sum.has_remainder;
    if (is_nearest && (is_above || (is_tie && (kept & 1) != 0))) ++kept;
  }
  // `kept` holds the implicit bit, so a carry out of it lands in the next binade by itself.
  const auto binade = static_cast<std::uint64_t>(exponent - format.min_exponent());
  std::uint64_t code = (binade << kept_bits) + kept;
  code <<= format.mantissa_bits - kept_bits;
  if (code >= infinity_code(format)) code = infinity_code(format);
  if (code == 0) return 0;
  return static_cast<std::uint32_t>(code) | sign_code(format, sum.is_negative);
}

std::uint32_t round_terms(const TensorArithmetic& arithmetic, std::span<const Term> terms) {
  if (arithmetic.is_exact) {
    WideSum sum;
    for (const Term& term : terms) sum.add(term.value, term.exponent - term.fraction_bits);
    return round_to_output(arithmetic, sum.value());
  }
  int largest = arithmetic.least_exponent();
  for (const Term& term : terms) largest = std::max(largest, term.exponent);
  const int lowest = largest - arithmetic.fraction_bits;
  std::int64_t sum = 0;
  for (const Term& term : terms) {
    sum += scale_toward_zero(term.value, term.exponent - term.fraction_bits - lowest);
  }
  return round_to_output(arithmetic,
                         {static_cast<std::uint64_t>(std::abs(sum)), lowest, sum < 0, false});
}

/// What the terms that are not finite make of the sum.
class SpecialValues {
 public:
  void add(Kind kind, bool is_negative) {
    if (kind == Kind::kNan) is_nan_ = true;
    if (kind == Kind::kInfinity) (is_negative ? has_negative_ : has_positive_) = true;
  }
  void add_product(const TensorNumber& a, const TensorNumber& b) {
    if (a.kind == Kind::kFinite && b.kind == Kind::kFinite) return;
    if (a.kind == Kind::kNan || b.kind == Kind::kNan || a.significand == 0 || b.significand == 0) {
      is_nan_ = true;
    } else {
      add(Kind::kInfinity, (a.significand < 0) != (b.significand < 0));
    }
  }
  bool is_any() const { return is_nan_ || has_negative_ || has_positive_; }
  std::uint32_t code(const FormatSpec& format) const {
    if (is_nan_ || (has_negative_ && has_positive_)) return nan_code(format);
    return infinity_code(format) | sign_code(format, has_negative_);
  }

 private:
  bool is_nan_ = false;
  bool has_negative_ = false;
  bool has_positive_ = false;
};

constexpr std::size_t kMaxTerms = 257;  // products and accumulator

}  // namespace

TensorNumber decode_number(const FormatSpec& format, std::uint32_t code, bool is_negated) {
  if (is_tf32(format)) code >>= 13;
  TensorNumber number;
  number.fraction_bits = format.mantissa_bits;
  const bool is_negative = ((code & format.sign_mask()) != 0) != is_negated;
  const std::uint32_t magnitude = code & format.magnitude_mask();
  const auto field = static_cast<int>(magnitude >> format.mantissa_bits);
  if (is_nan(format, code)) {
    number.kind = Kind::kNan;
    number.significand = 1;
  } else if (is_infinity(format, code)) {
    number.kind = Kind::kInfinity;
    number.significand = is_negative ? -1 : 1;
  } else if (magnitude != 0 || !format.has_subnormals()) {
    const bool is_normal = field > 0 || !format.has_subnormals();
    const std::uint32_t implicit = is_normal ? format.mantissa_mask() + 1 : 0;
    number.significand = static_cast<std::int32_t>((magnitude & format.mantissa_mask()) | implicit);
    if (is_negative) number.significand = -number.significand;
    number.exponent = is_normal ? field - format.bias : format.min_exponent();
  }
  return number;
}

std::uint32_t dot_add(const TensorArithmetic& arithmetic, std::span<const TensorNumber> a,
                      std::span<const TensorNumber> b, const TensorNumber& c, int scale_exponent) {
  SpecialValues specials;
  specials.add(c.kind, c.significand < 0);
  std::array<Term, kMaxTerms> terms;
  std::size_t num_terms = 0;
  if (c.significand != 0) terms[num_terms++] = {c.significand, c.exponent, c.fraction_bits};
  for (std::size_t k = 0; k < a.size(); ++k) {
    specials.add_product(a[k], b[k]);
    if (a[k].significand == 0 || b[k].significand == 0) continue;
    terms.at(num_terms++) = {std::int64_t{a[k].significand} * b[k].significand,
                             a[k].exponent + b[k].exponent + scale_exponent,
                             a[k].fraction_bits + b[k].fraction_bits};
  }
  if (specials.is_any()) return specials.code(code_format(arithmetic.output));
  return round_terms(arithmetic, std::span(terms).first(num_terms));
}

std::uint32_t dot_add_block_scaled(const TensorArithmetic& arithmetic,
                                   std::span<const TensorNumber> a, std::span<const TensorNumber> b,
                                   const TensorNumber& c, std::span<const TensorNumber> a_scale,
                                   std::span<const TensorNumber> b_scale) {
  constexpr std::size_t kGroup = 16;
  const std::size_t block = a.size() / a_scale.size();
  SpecialValues specials;
  specials.add(c.kind, c.significand < 0);
  std::array<Term, kMaxTerms> terms;
  terms[0] = {c.significand, c.exponent, c.fraction_bits};
  std::size_t num_terms = 1;
  for (std::size_t first = 0; first < a.size(); first += kGroup) {
    // The formats of one operand share their exponent range: 4-bit products fit a common grid.
    std::int64_t sum = 0;
    constexpr int kGridBits = 24;
    for (std::size_t k = first; k < first + kGroup; ++k) {
      const int shift = a[k].exponent + b[k].exponent - a[k].fraction_bits - b[k].fraction_bits;
      sum +=
          scale_toward_zero(std::int64_t{a[k].significand} * b[k].significand, shift + kGridBits);
    }
    const TensorNumber& sa = a_scale[first / block];
    const TensorNumber& sb = b_scale[first / block];
    if (sa.kind != Kind::kFinite || sb.kind != Kind::kFinite) specials.add(Kind::kNan, false);
    terms.at(num_terms++) = {sum * std::abs(sa.significand) * std::abs(sb.significand),
                             sa.exponent + sb.exponent,
                             kGridBits + sa.fraction_bits + sb.fraction_bits};
  }
  if (specials.is_any()) return specials.code(code_format(arithmetic.output));
  return round_terms(arithmetic, std::span(terms).first(num_terms));
}

}  // namespace tilewright::sim
