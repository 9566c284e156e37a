// Products of block-scaled operands: one scale per 16 or 32 elements along K, multiplied in by the
// tensor core. PTX ISA: "tcgen05.cp", "tcgen05.mma" with .block_scale, "Block scaling".
//
// Scales come from Tensor Memory: row i of A (of B) at lane i % 32 of every group of 32 lanes,
// column i / 32, four consecutive scales of a row in the bytes of a cell (arch::tmem_scales). One
// tile of 128 rows x 4 scales in global memory's order (formats/scale_layout.h) is what one
// tcgen05_cp_32x128b_warpx4 moves. Everything here is issued by one thread and asynchronous;
// tcgen05_commit tells the end. For a pair of CTAs the leader issues for both, and each reads its
// own shared and Tensor Memory at the same addresses.
#pragma once

#include <cstdint>

namespace tilewright::ptx {

/// Copies 32 rows of 16 bytes (matrix descriptor, K-major; reads by the async proxy) to 4 columns
/// of 32 lanes, four times: once into each group of 32 lanes. Ordered before later mma of this
/// thread.
template <int CtaGroup = 1>
__device__ inline void tcgen05_cp_32x128b_warpx4(std::uint32_t destination, std::uint64_t source) {
  static_assert(CtaGroup == 1 || CtaGroup == 2);
  asm volatile("tcgen05.cp.cta_group::%2.32x128b.warpx4 [%0], %1;" ::"r"(destination), "l"(source),
               "n"(CtaGroup)
               : "memory");
}

/// kind::mxf4nvf4, 64 elements of K, e2m1 by e2m1, four scales per row (one per 16 elements):
/// d += a b, or d = a b if `accumulate` is false. The instruction descriptor says what the scales
/// are; theirs are cells, all four bytes.
template <int CtaGroup = 1>
__device__ inline void tcgen05_mma_mxf4nvf4_4x(std::uint32_t d, std::uint64_t a, std::uint64_t b,
                                               std::uint32_t instruction, std::uint32_t a_scales,
                                               std::uint32_t b_scales, bool accumulate) {
  static_assert(CtaGroup == 1 || CtaGroup == 2);
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %6, 0;\n"
      "tcgen05.mma.cta_group::%7.kind::mxf4nvf4.block_scale.block16 "
      "[%0], %1, %2, %3, [%4], [%5], p;\n"
      "}\n" ::"r"(d),
      "l"(a), "l"(b), "r"(instruction), "r"(a_scales), "r"(b_scales),
      "r"(static_cast<int>(accumulate)), "n"(CtaGroup)
      : "memory");
}

/// kind::mxf8f6f4, 32 elements of K of any 8-, 6- or 4-bit types (4 and 6 bits: 16 elements padded
/// to 16 bytes), one ue8m0 scale per row: the byte of the cell that the descriptor's ids name.
template <int CtaGroup = 1>
__device__ inline void tcgen05_mma_mxf8f6f4_1x(std::uint32_t d, std::uint64_t a, std::uint64_t b,
                                               std::uint32_t instruction, std::uint32_t a_scales,
                                               std::uint32_t b_scales, bool accumulate) {
  static_assert(CtaGroup == 1 || CtaGroup == 2);
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %6, 0;\n"
      "tcgen05.mma.cta_group::%7.kind::mxf8f6f4.block_scale.block32 "
      "[%0], %1, %2, %3, [%4], [%5], p;\n"
      "}\n" ::"r"(d),
      "l"(a), "l"(b), "r"(instruction), "r"(a_scales), "r"(b_scales),
      "r"(static_cast<int>(accumulate)), "n"(CtaGroup)
      : "memory");
}

/// kind::mxf4, 64 elements of K, e2m1 by e2m1, two ue8m0 scales per row (one per 32 elements): the
/// bytes of the cell from the descriptor's ids on, 0 or 2.
template <int CtaGroup = 1>
__device__ inline void tcgen05_mma_mxf4_2x(std::uint32_t d, std::uint64_t a, std::uint64_t b,
                                           std::uint32_t instruction, std::uint32_t a_scales,
                                           std::uint32_t b_scales, bool accumulate) {
  static_assert(CtaGroup == 1 || CtaGroup == 2);
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %6, 0;\n"
      "tcgen05.mma.cta_group::%7.kind::mxf4.block_scale.block32 "
      "[%0], %1, %2, %3, [%4], [%5], p;\n"
      "}\n" ::"r"(d),
      "l"(a), "l"(b), "r"(instruction), "r"(a_scales), "r"(b_scales),
      "r"(static_cast<int>(accumulate)), "n"(CtaGroup)
      : "memory");
}

}  // namespace tilewright::ptx
