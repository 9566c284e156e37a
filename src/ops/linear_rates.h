// Microseconds of the linear kernels on an H200, cold weights: what plan() chooses by.
//
// Made by tools/make_linear_rates.py; no log has been taken in yet.
#pragma once

#include <array>
#include <span>
#include <string_view>

namespace tilewright::ops {

/// Rows of x that rates are for.
inline constexpr std::array<int, 19> kRateRows = {
    1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 1024, 2048, 4096, 8192};

struct LinearRates {
  std::string_view kernel, format;  ///< "band", "nvfp4"
  bool is_fp8;                      ///< prepared for fp8 activations
  int n, k;
  std::array<float, 19> us;  ///< 0: not measured
};

// clang-format off
inline constexpr std::array<LinearRates, 0> kLinearRates = {{
}};
// clang-format on

}  // namespace tilewright::ops
