// Arithmetic on two numbers at a time, which Blackwell has. PTX ISA: "fma", .f32x2.
#pragma once

namespace tilewright::ptx {

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

}  // namespace tilewright::ptx
