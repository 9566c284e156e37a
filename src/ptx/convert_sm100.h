// Conversions to and from the 4- and 8-bit formats, and the maximum that lets NaN through.
// PTX ISA: "cvt", "max". e2m1 needs sm_100a; on older targets do not call these.
#pragma once

#include "ptx/convert_fp8.h"

#include <cstdint>

namespace tilewright::ptx {

/// Eight f32 as e2m1 codes, x[0] in the lowest nibble; to nearest even, saturating at 6.
__device__ inline std::uint32_t cvt_rn_satfinite_e2m1x8_f32(const float* x) {
  std::uint32_t codes;
  asm("{\n"
      ".reg .b8 b0, b1, b2, b3;\n"
      "cvt.rn.satfinite.e2m1x2.f32 b0, %2, %1;\n"
      "cvt.rn.satfinite.e2m1x2.f32 b1, %4, %3;\n"
      "cvt.rn.satfinite.e2m1x2.f32 b2, %6, %5;\n"
      "cvt.rn.satfinite.e2m1x2.f32 b3, %8, %7;\n"
      "mov.b32 %0, {b0, b1, b2, b3};\n"
      "}\n"
      : "=r"(codes)
      : "f"(x[0]), "f"(x[1]), "f"(x[2]), "f"(x[3]), "f"(x[4]), "f"(x[5]), "f"(x[6]), "f"(x[7]));
  return codes;
}

/// max(a, |b|), NaN if either is.
__device__ inline float max_nan_abs(float a, float b) {
  float larger;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(a), "f"(fabsf(b)));
  return larger;
}

}  // namespace tilewright::ptx
