// Approximations of the special-function unit. PTX ISA: "ex2".
#pragma once

namespace tilewright::ptx {

/// 2^x with a relative error of at most 2^-22; results below 2^-126 are 0.
__device__ inline float ex2_approx_ftz_f32(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// NaN if one of them is. PTX ISA: "min", "max", ".NaN".
__device__ inline float min_nan_f32(float a, float b) {
  float r;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
}
__device__ inline float max_nan_f32(float a, float b) {
  float r;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
}

}  // namespace tilewright::ptx
