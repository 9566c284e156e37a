// Real numbers of a problem that kernels have in fp32: checked before they are narrowed.
#pragma once

#include <cmath>
#include <limits>

namespace tilewright::ops {

inline constexpr double kLog2e = 1.4426950408889634;

/// Whether fp32 holds x as a normal number.
inline bool is_normal_float(double x) {
  const double magnitude = std::fabs(x);
  return magnitude >= std::numeric_limits<float>::min() &&
         magnitude <= std::numeric_limits<float>::max();
}
inline bool is_zero_or_normal_float(double x) {
  return x == 0 || is_normal_float(x);
}

/// tanh in fp32 is off by up to 2^-20 of the cap: with this one by what rounding a weight to bf16
/// costs. Scores that a larger cap changes by more than that are far beyond it.
inline constexpr double kMaxSoftcap = 4096;

}  // namespace tilewright::ops
