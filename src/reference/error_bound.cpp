#include "reference/error_bound.h"

#include "base/error.h"

#include <algorithm>
#include <cmath>

namespace tilewright::reference {

double dot_error_bound(const DotArithmetic& a, double exact, double magnitude) {
  require(
      a.length >= 0 && a.a_roundoff >= 0 && a.b_roundoff >= 0 && a.accumulate_roundoff >= 0 &&
          a.output_roundoff >= 0 && magnitude >= 0,
      ErrorKind::kInvalidArgument,
      "dot_error_bound: length = {}, roundoffs = {}, {}, {}, {}, magnitude = {}; expected values "
      ">= 0. Use 0 for an exact step.",
      a.length, a.a_roundoff, a.b_roundoff, a.accumulate_roundoff, a.output_roundoff, magnitude);
  // expm1 and log1p keep the digits that 1 + u would lose.
  const double growth =
      std::expm1(std::log1p(a.a_roundoff) + std::log1p(a.b_roundoff) +
                 static_cast<double>(a.length) * std::log1p(a.accumulate_roundoff));
  const double sum_error = growth * magnitude;
  return sum_error + a.output_roundoff * (std::abs(exact) + sum_error);
}

double TensorCore::step_error() const {
  return (depth + 1) * std::ldexp(1, -fraction_bits) + std::ldexp(1, -result_bits);
}

double tensor_core_error(std::int64_t length) {
  return 2 * std::ceil(static_cast<double>(length) / kBf16TensorCore.depth) *
         kBf16TensorCore.step_error();
}

double tensor_core_dot_error(const TensorCore& core, std::span<const double> a,
                             std::span<const double> b) {
  require(a.size() == b.size(), ErrorKind::kInvalidArgument,
          "tensor_core_dot_error: {} and {} factors; expected as many", a.size(), b.size());
  // Less than the unit, and no more than all of it; nothing of a multiple, which is what a sum with
  // 2^52 units and more is rounded to. Here |x| < 2^51 units. Branches would be guessed wrong here.
  const auto cut = [](double x, double unit) {
    const double large = 0x1.8p52 * unit;
    const double multiple = (x + large) - large;
    return multiple == x ? 0 : std::min(std::abs(x), unit);
  };
  double sum = 0, error = 0;
  for (std::size_t begin = 0; begin < a.size(); begin += static_cast<std::size_t>(core.depth)) {
    const std::size_t end = std::min(begin + static_cast<std::size_t>(core.depth), a.size());
    double largest = std::abs(sum) + error;
    for (std::size_t i = begin; i < end; ++i) largest = std::max(largest, std::abs(a[i] * b[i]));
    if (largest == 0) continue;
    const double unit = std::ldexp(1, std::ilogb(largest) - core.fraction_bits);
    double lost = error > 0 ? unit : cut(sum, unit);
    for (std::size_t i = begin; i < end; ++i) {
      lost += cut(a[i] * b[i], unit);
      sum += a[i] * b[i];
    }
    error += lost;
    const double most = std::abs(sum) + error;
    if (most == 0) continue;
    const double last = std::ldexp(1, std::ilogb(most) - core.result_bits);
    error += error > 0 ? last : cut(sum, last);
  }
  return error;
}

}  // namespace tilewright::reference
