// Conversions to e4m3 that sm_90 has. PTX ISA: "cvt".
#pragma once

#include <cstdint>

namespace tilewright::ptx {

/// Four f32 as e4m3 codes, a in the lowest byte; to nearest even, saturating at 448, NaN gives
/// 0x7f.
__device__ inline std::uint32_t cvt_rn_satfinite_e4m3x4_f32(float a, float b, float c, float d) {
  std::uint32_t codes;
  asm("{\n"
      ".reg .b16 low, high;\n"
      "cvt.rn.satfinite.e4m3x2.f32 low, %2, %1;\n"
      "cvt.rn.satfinite.e4m3x2.f32 high, %4, %3;\n"
      "mov.b32 %0, {low, high};\n"
      "}\n"
      : "=r"(codes)
      : "f"(a), "f"(b), "f"(c), "f"(d));
  return codes;
}

}  // namespace tilewright::ptx
