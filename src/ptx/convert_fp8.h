// Conversions to and from e4m3, which sm_90 has. PTX ISA: "cvt".
#pragma once

#include <cstdint>

#include <cuda_fp16.h>

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

/// One f32 as an e4m3 code; to nearest even, saturating at 448, NaN gives 0x7f.
__device__ inline std::uint32_t cvt_rn_satfinite_e4m3_f32(float x) {
  std::uint16_t codes;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(codes) : "f"(0.0f), "f"(x));
  return codes & 0xffu;
}

/// The value of an e4m3 code, exact.
__device__ inline float cvt_f32_e4m3(std::uint32_t code) {
  std::uint32_t halves;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(static_cast<std::uint16_t>(code)));
  return __half2float(__ushort_as_half(static_cast<unsigned short>(halves & 0xffffu)));
}

/// Two e4m3, the first in the low byte, as f16: exact.
__device__ inline std::uint32_t cvt_rn_f16x2_e4m3x2(std::uint16_t codes) {
  std::uint32_t pair;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(pair) : "h"(codes));
  return pair;
}

}  // namespace tilewright::ptx
