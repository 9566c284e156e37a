// Matrix multiply of the 5th generation tensor core: accumulator in Tensor Memory, A from shared or
// Tensor Memory, B from shared memory. PTX ISA: "tcgen05.mma".
//
// One thread issues for the whole CTA (or pair); asynchronous, done when a tcgen05_commit of the
// same thread has arrived. Products on one accumulator run one after the other. Shared memory is
// read by the async proxy. Descriptors: arch/tcgen05_descriptors.h; accumulator and A in Tensor
// Memory: arch/fragments/tmem.h.
#pragma once

#include <cstdint>

namespace tilewright::ptx {

// A function of each kind and place of A; they differ in the instruction's name alone.
#define TILEWRIGHT_TCGEN05_MMA(NAME, KIND, A_TYPE, A_CONSTRAINT, A_OPERAND)           \
  template <int CtaGroup = 1>                                                         \
  __device__ inline void NAME(std::uint32_t d, A_TYPE a, std::uint64_t b,             \
                              std::uint32_t instruction, bool accumulate) {           \
    static_assert(CtaGroup == 1 || CtaGroup == 2);                                    \
    asm volatile(                                                                     \
        "{\n"                                                                         \
        ".reg .pred p;\n"                                                             \
        "setp.ne.b32 p, %4, 0;\n"                                                     \
        "tcgen05.mma.cta_group::%5.kind::" KIND " [%0], " A_OPERAND                   \
        ", %2, %3, p;\n"                                                              \
        "}\n" ::"r"(d),                                                               \
        A_CONSTRAINT(a), "l"(b), "r"(instruction), "r"(static_cast<int>(accumulate)), \
        "n"(CtaGroup)                                                                 \
        : "memory");                                                                  \
  }

/// kind::f16, 16 of the reduction index: d += a b, or d = a b if `accumulate` is false; a and b are
/// matrix descriptors. With _tmem, a is an address of Tensor Memory.
TILEWRIGHT_TCGEN05_MMA(tcgen05_mma_f16, "f16", std::uint64_t, "l", "%1")
TILEWRIGHT_TCGEN05_MMA(tcgen05_mma_f16_tmem, "f16", std::uint32_t, "r", "[%1]")

/// kind::f8f6f4, 32 of the reduction index of any 8-, 6- or 4-bit types, 32 bytes of a row; in
/// Tensor Memory four numbers a cell.
TILEWRIGHT_TCGEN05_MMA(tcgen05_mma_f8f6f4, "f8f6f4", std::uint64_t, "l", "%1")
TILEWRIGHT_TCGEN05_MMA(tcgen05_mma_f8f6f4_tmem, "f8f6f4", std::uint32_t, "r", "[%1]")

#undef TILEWRIGHT_TCGEN05_MMA

}  // namespace tilewright::ptx
