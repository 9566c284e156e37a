// Bytes of two words put together anew. PTX ISA: "prmt".
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

}  // namespace tilewright::ptx
