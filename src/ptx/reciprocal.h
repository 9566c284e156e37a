// The special-function unit's reciprocal. PTX ISA: "rcp".
#pragma once

namespace tilewright::ptx {

/// 1 / x with a relative error of at most 2^-23; of a normal x up to 2^126, else 0 or infinity.
__device__ inline float rcp_approx_ftz_f32(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

}  // namespace tilewright::ptx
