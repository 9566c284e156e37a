// What threads with a row of scores do to it on Blackwell, alone: 2^x by multiply-adds, and half
// sums that two threads exchange.
#pragma once

#include <cstdint>

namespace tilewright::kernels {

/// Entry row_math_powers: y[i] = 2^x[i] by ex2_polynomial(), of `pairs` pairs.
struct RowMathPowersParams {
  const float* x;
  float* y;
  std::int32_t pairs;
};

/// Entry row_math_half_sums, 64 threads, x and y [64, 32]: y[i] = x[i] + what row (i + 32) % 64
/// sent, which is `away` of it.
struct RowMathHalfSumsParams {
  const float *x, *away;
  float* y;
  float scale_log2;
};

}  // namespace tilewright::kernels
