// Real numbers of a problem that kernels have in fp32: checked before they are narrowed.
#pragma once

#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include <fmt/format.h>

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

/// What is wrong with the factors of attention's scores; empty if nothing. `default_scale` says
/// what no scale stands for.
inline std::string score_factors_fault(std::optional<double> scale, const char* default_scale,
                                       double softcap) {
  if (scale && !(std::isfinite(*scale) && *scale > 0))
    return fmt::format("scale = {}; expected a finite number > 0, or none for {}", *scale,
                       default_scale);
  if (scale && !is_normal_float(*scale * kLog2e))
    return fmt::format(
        "scale = {}; expected one that fp32 holds as a normal number, also times log2 e: 1.2e-38 "
        "to 2.3e38",
        *scale);
  if (!(std::isfinite(softcap) && softcap >= 0))
    return fmt::format("softcap = {}; expected a finite number > 0, or 0 for none", softcap);
  if (softcap == 0) return {};
  if (softcap > kMaxSoftcap)
    return fmt::format(
        "softcap = {}; expected at most {}: tanh in fp32, times a larger one, is off by more than "
        "rounding costs. Give 0 for no cap.",
        softcap, kMaxSoftcap);
  if (!is_normal_float(softcap) || !is_normal_float(2 * kLog2e * scale.value_or(1) / softcap))
    return fmt::format(
        "softcap = {} with scale = {}; expected a cap, and a quotient scale / softcap, that fp32 "
        "holds as normal numbers",
        softcap, scale ? fmt::format("{}", *scale) : std::string(default_scale));
  return {};
}

}  // namespace tilewright::ops
