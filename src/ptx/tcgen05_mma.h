// Matrix multiply of the 5th generation tensor core: accumulator in Tensor Memory, A from shared or
// Tensor Memory, B from shared memory. PTX ISA: "tcgen05.mma".
//
// One thread issues for the whole CTA (or pair); asynchronous, done when a tcgen05_commit of the
// same thread has arrived. Products on one accumulator run one after the other. Shared memory is
// read by the async proxy. Instruction descriptor: arch/instruction_descriptor.h; matrix
// descriptors: arch/smem_descriptor.h; accumulator and A in Tensor Memory: arch/fragments/tmem.h.
#pragma once

#include <cstdint>

namespace tilewright::ptx {

/// kind::f16, 16 of the reduction index: d += a b, or d = a b if `accumulate` is false; a and b are
/// matrix descriptors.
template <int CtaGroup = 1>
__device__ inline void tcgen05_mma_f16(std::uint32_t d, std::uint64_t a, std::uint64_t b,
                                       std::uint32_t instruction, bool accumulate) {
  static_assert(CtaGroup == 1 || CtaGroup == 2);
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %4, 0;\n"
      "tcgen05.mma.cta_group::%5.kind::f16 [%0], %1, %2, %3, p;\n"
      "}\n" ::"r"(d),
      "l"(a), "l"(b), "r"(instruction), "r"(static_cast<int>(accumulate)), "n"(CtaGroup)
      : "memory");
}

/// The same with a at an address of Tensor Memory.
template <int CtaGroup = 1>
__device__ inline void tcgen05_mma_f16_tmem(std::uint32_t d, std::uint32_t a, std::uint64_t b,
                                            std::uint32_t instruction, bool accumulate) {
  static_assert(CtaGroup == 1 || CtaGroup == 2);
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %4, 0;\n"
      "tcgen05.mma.cta_group::%5.kind::f16 [%0], [%1], %2, %3, p;\n"
      "}\n" ::"r"(d),
      "r"(a), "l"(b), "r"(instruction), "r"(static_cast<int>(accumulate)), "n"(CtaGroup)
      : "memory");
}

}  // namespace tilewright::ptx
