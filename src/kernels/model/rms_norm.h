// Contract of the RMS normalisation of rows.
#pragma once

#include <cstdint>

namespace tilewright::kernels {

/// out[r,:] = x[r,:] * rsqrt(mean(x[r,:]^2) + eps) * weight, in f32, rounded once to bf16
struct RmsNormParams {
  const void* x;                      ///< [rows, cols] bf16 or f32
  const std::uint16_t* weight;        ///< bf16 [cols] or null: ones
  std::uint16_t* out;                 ///< bf16 [rows, cols]
  std::int64_t x_stride, out_stride;  ///< elements, multiples of 4
  std::int32_t rows, cols;            ///< cols % 4 == 0
  float eps;
  bool is_f32;  ///< x, else bf16
};

inline constexpr int kRmsNormThreads = 128;
/// Entry rms_norm_rows: a warp per row; grid (ceil(rows / kRmsNormRows)).
inline constexpr int kRmsNormRows = kRmsNormThreads / 32;

}  // namespace tilewright::kernels
