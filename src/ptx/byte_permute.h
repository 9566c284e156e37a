// Bytes of two words put together anew, and half of a word taken from where it is. PTX ISA: "prmt",
// "mul" of f16x2.
#pragma once

#include <cstdint>

namespace tilewright::ptx {

/// Byte i of the result is the byte of {b, a} that the low three bits of selector nibble i name; if
/// its highest bit is set, the sign of that byte eight times. (__byte_perm ignores that bit.)
__device__ inline std::uint32_t prmt_b32(std::uint32_t a, std::uint32_t b,
                                         std::uint32_t selectors) {
  std::uint32_t d;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(selectors));
  return d;
}

/// The high half of `a`, times each half of `b`, rounded to f16. ptxas makes it one HMUL2 that
/// reads the half where it is (.H1_H1).
__device__ inline std::uint32_t mul_high_f16x2(std::uint32_t a, std::uint32_t b) {
  std::uint32_t d;
  asm("{\n.reg .b16 low, high;\n.reg .b32 twice;\n"
      "mov.b32 {low, high}, %1;\nmov.b32 twice, {high, high};\n"
      "mul.rn.f16x2 %0, twice, %2;\n}"
      : "=r"(d)
      : "r"(a), "r"(b));
  return d;
}

}  // namespace tilewright::ptx
