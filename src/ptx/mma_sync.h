// Matrix multiply of one warp, fragments in registers. PTX ISA: "mma". Fragments:
// arch/fragments/mma_sync.h.
#pragma once

#include <cstdint>

namespace tilewright::ptx {

// d = a * b + c for m16n8 shapes with an f32 accumulator; the forms differ in shape, types and
// operand counts.
#define TILEWRIGHT_MMA_4x2(NAME, PTX)                                                           \
  __device__ inline void NAME(float(&d)[4], const std::uint32_t(&a)[4],                         \
                              const std::uint32_t(&b)[2], const float(&c)[4]) {                 \
    asm volatile(PTX " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"     \
                 : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])                               \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c[0]), \
                   "f"(c[1]), "f"(c[2]), "f"(c[3]));                                            \
  }
#define TILEWRIGHT_MMA_2x1(NAME, PTX)                                                            \
  __device__ inline void NAME(float(&d)[4], const std::uint32_t(&a)[2],                          \
                              const std::uint32_t(&b)[1], const float(&c)[4]) {                  \
    asm volatile(PTX " {%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %8, %9, %10};"                     \
                 : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])                                \
                 : "r"(a[0]), "r"(a[1]), "r"(b[0]), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3])); \
  }

TILEWRIGHT_MMA_4x2(mma_sync_aligned_m16n8k16_f32_bf16_bf16_f32,
                   "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32")
    TILEWRIGHT_MMA_4x2(mma_sync_aligned_m16n8k16_f32_f16_f16_f32,
                       "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
        TILEWRIGHT_MMA_2x1(mma_sync_aligned_m16n8k8_f32_bf16_bf16_f32,
                           "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32")
            TILEWRIGHT_MMA_4x2(mma_sync_aligned_m16n8k8_f32_tf32_tf32_f32,
                               "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32")
                TILEWRIGHT_MMA_4x2(mma_sync_aligned_m16n8k32_f32_e4m3_e4m3_f32,
                                   "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32")

#undef TILEWRIGHT_MMA_4x2
#undef TILEWRIGHT_MMA_2x1

}  // namespace tilewright::ptx
