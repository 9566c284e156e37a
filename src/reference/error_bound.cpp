#include "reference/error_bound.h"

#include "base/error.h"

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

double tensor_core_error(std::int64_t length) {
  constexpr double kStepError = 17 * 0x1p-25 + 0x1p-23;
  return 2 * std::ceil(static_cast<double>(length) / 16) * kStepError;
}

}  // namespace tilewright::reference
