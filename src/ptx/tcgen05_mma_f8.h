// Matrix multiply of the 5th generation tensor core with operands of 8 bits: tcgen05_mma.h says the
// rest. PTX ISA: "tcgen05.mma".
#pragma once

#include <cstdint>

namespace tilewright::ptx {

/// kind::f8f6f4, 32 of the reduction index of any 8-, 6- or 4-bit types, 32 bytes of a row:
/// d += a b, or d = a b if `accumulate` is false; a and b are matrix descriptors.
template <int CtaGroup = 1>
__device__ inline void tcgen05_mma_f8f6f4(std::uint32_t d, std::uint64_t a, std::uint64_t b,
                                          std::uint32_t instruction, bool accumulate) {
  static_assert(CtaGroup == 1 || CtaGroup == 2);
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %4, 0;\n"
      "tcgen05.mma.cta_group::%5.kind::f8f6f4 [%0], %1, %2, %3, p;\n"
      "}\n" ::"r"(d),
      "l"(a), "l"(b), "r"(instruction), "r"(static_cast<int>(accumulate)), "n"(CtaGroup)
      : "memory");
}

/// kind::f8f6f4 with a at an address of Tensor Memory, four numbers a cell.
template <int CtaGroup = 1>
__device__ inline void tcgen05_mma_f8f6f4_tmem(std::uint32_t d, std::uint32_t a, std::uint64_t b,
                                               std::uint32_t instruction, bool accumulate) {
  static_assert(CtaGroup == 1 || CtaGroup == 2);
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %4, 0;\n"
      "tcgen05.mma.cta_group::%5.kind::f8f6f4 [%0], [%1], %2, %3, p;\n"
      "}\n" ::"r"(d),
      "r"(a), "l"(b), "r"(instruction), "r"(static_cast<int>(accumulate)), "n"(CtaGroup)
      : "memory");
}

}  // namespace tilewright::ptx
