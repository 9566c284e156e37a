// Arithmetic on two numbers at a time, which Blackwell has, and the largest of three. PTX ISA:
// "add", "mul", "fma" with .f32x2; "max" with three operands.
#pragma once

#include "ptx/math.h"

namespace tilewright::ptx {

__device__ inline float2 both(float value) {
  return make_float2(value, value);
}

/// 2^x of two numbers, by an instruction for each.
__device__ inline float2 ex2_approx_ftz_f32(float2 x) {
  return make_float2(ex2_approx_ftz_f32(x.x), ex2_approx_ftz_f32(x.y));
}

/// a b + c of two numbers at a time, each rounded once: one instruction of Blackwell's FMA units.
__device__ inline float2 fma_rn_f32x2(float2 a, float2 b, float2 c) {
  float2 d;
  asm("{\n"
      ".reg .b64 a, b, c;\n"
      "mov.b64 a, {%2, %3};\n"
      "mov.b64 b, {%4, %5};\n"
      "mov.b64 c, {%6, %7};\n"
      "fma.rn.f32x2 c, a, b, c;\n"
      "mov.b64 {%0, %1}, c;\n"
      "}\n"
      : "=f"(d.x), "=f"(d.y)
      : "f"(a.x), "f"(a.y), "f"(b.x), "f"(b.y), "f"(c.x), "f"(c.y));
  return d;
}

/// a + b of two numbers at a time.
__device__ inline float2 add_rn_f32x2(float2 a, float2 b) {
  float2 d;
  asm("{\n"
      ".reg .b64 a, b;\n"
      "mov.b64 a, {%2, %3};\n"
      "mov.b64 b, {%4, %5};\n"
      "add.rn.f32x2 a, a, b;\n"
      "mov.b64 {%0, %1}, a;\n"
      "}\n"
      : "=f"(d.x), "=f"(d.y)
      : "f"(a.x), "f"(a.y), "f"(b.x), "f"(b.y));
  return d;
}

/// a b of two numbers at a time.
__device__ inline float2 mul_rn_f32x2(float2 a, float2 b) {
  float2 d;
  asm("{\n"
      ".reg .b64 a, b;\n"
      "mov.b64 a, {%2, %3};\n"
      "mov.b64 b, {%4, %5};\n"
      "mul.rn.f32x2 a, a, b;\n"
      "mov.b64 {%0, %1}, a;\n"
      "}\n"
      : "=f"(d.x), "=f"(d.y)
      : "f"(a.x), "f"(a.y), "f"(b.x), "f"(b.y));
  return d;
}

/// The largest of three; a NaN loses against a number.
__device__ inline float max3_f32(float a, float b, float c) {
  float d;
  asm("max.f32 %0, %1, %2, %3;" : "=f"(d) : "f"(a), "f"(b), "f"(c));
  return d;
}

/// The largest magnitude of three, NaN if one of them is.
__device__ inline float max3_abs_nan_f32(float a, float b, float c) {
  float d;
  asm("max.NaN.abs.f32 %0, %1, %2, %3;" : "=f"(d) : "f"(a), "f"(b), "f"(c));
  return d;
}

}  // namespace tilewright::ptx
