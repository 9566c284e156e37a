// Products of tiles by the 5th generation tensor core, one box of operands at a time.
//
// A box is what one tensor copy writes: rows of 64 16-bit elements, 128 bytes, with the 128-byte
// swizzle. Accumulators and A operands in Tensor Memory have 128 rows, one a lane.
#pragma once

#include "arch/tcgen05_descriptors.h"
#include "arch/tensor_memory_index.h"
#include "ptx/tcgen05_mma.h"
#include "tile/box.h"
#include "tile/element.h"

#include <cstdint>
#include <type_traits>

namespace tilewright::tile {

inline constexpr int kTensorRows = 128;  ///< of an instruction: the lanes of Tensor Memory
inline constexpr int kBoxElems = 64;     ///< 16-bit columns of a box
inline constexpr int kMmaK = 16;         ///< of the reduction index in one instruction
inline constexpr int kBoxRows = 128;     ///< queries or keys
using TensorBox = Box<kBoxRows, kBoxRowBytes>;
inline constexpr int kBoxBytes = TensorBox::kBytes;

/// 16 bytes of a line of a box, where the swizzle puts them. Neighbouring lines meet in different
/// banks.
template <class Chunk>
__device__ Chunk* line_chunk(std::uint8_t* box, std::uint32_t line, std::uint32_t chunk) {
  static_assert(sizeof(Chunk) == 16);
  return reinterpret_cast<Chunk*>(box + line * kBoxRowBytes + chunk_in_line(line % 8, chunk));
}

/// d[M, N] = a[M, 16] b: operands of the 16-bit format, accumulator f32. M and N of a pair of CTAs
/// count what both have: half of the rows of a and d each, and half of b.
template <class Element, int N, int M = kTensorRows>
constexpr std::uint32_t mma_instruction(arch::Major b_major) {
  constexpr auto kType = static_cast<std::uint32_t>(
      std::is_same_v<Element, Bf16> ? arch::MmaF16Type::kBf16 : arch::MmaF16Type::kF16);
  return arch::encode_mma_instruction(
      arch::MmaInstruction{.a_type = kType, .b_type = kType, .b_major = b_major, .m = M, .n = N});
}

/// s[Rows queries, Keys] += q k^T of one box of each (and CTA): 64 of the reduction index. Issued
/// by one thread. Descriptors count 16 bytes, so a step of k adds to them.
template <class Element, int Keys, int Rows = kTensorRows, int Ctas = 1>
__device__ void issue_scores(std::uint32_t s, std::uint32_t q_box, std::uint32_t k_box,
                             bool accumulate) {
  constexpr std::uint32_t kInstruction = mma_instruction<Element, Keys, Rows>(arch::Major::kK);
  const std::uint64_t a = arch::tcgen05_descriptor<TensorBox::kBox>(q_box),
                      b = arch::tcgen05_descriptor<TensorBox::kBox>(k_box);
#pragma unroll
  for (int k = 0; k < kBoxElems; k += kMmaK)
    ptx::tcgen05_mma_f16<Ctas>(s, a + (k * 2 >> 4), b + (k * 2 >> 4), kInstruction,
                               accumulate || k > 0);
}

/// A pair of CTAs with 64 queries each: the same with q in Tensor Memory, two numbers a cell, every
/// row in both halves of the lanes.
template <class Element, int Keys>
__device__ void issue_scores_of_halves(std::uint32_t s, std::uint32_t q, std::uint32_t k_box,
                                       bool accumulate) {
  constexpr std::uint32_t kInstruction =
      mma_instruction<Element, Keys, kTensorRows>(arch::Major::kK);
  const std::uint64_t b = arch::tcgen05_descriptor<TensorBox::kBox>(k_box);
#pragma unroll
  for (int k = 0; k < kBoxElems; k += kMmaK)
    ptx::tcgen05_mma_f16_tmem<2>(s, q + arch::packed_columns(k), b + (k * 2 >> 4), kInstruction,
                                 accumulate || k > 0);
}

/// o[128 queries a CTA, 64 columns a CTA and box] += p v of the keys [First, Keys) of a box of v a
/// CTA, or Boxes of them one behind the other. p lies in Tensor Memory, two a cell, so a step of 16
/// keys is 8 columns.
template <class Element, int Keys, int Ctas = 1, int First = 0, int Boxes = 1>
__device__ void issue_values(std::uint32_t o, std::uint32_t p, std::uint32_t v_box,
                             bool accumulate) {
  constexpr std::uint32_t kInstruction =
      mma_instruction<Element, kBoxElems * Boxes * Ctas, kTensorRows * Ctas>(arch::Major::kMN);
  const std::uint64_t b =
      arch::tcgen05_descriptor<Box<kBoxRows, Boxes * kBoxRowBytes>::kBox, arch::Major::kMN>(v_box);
#pragma unroll
  for (int k = First; k < Keys; k += kMmaK) {
    ptx::tcgen05_mma_f16_tmem<Ctas>(o, p + arch::packed_columns(k), b + (k * kBoxRowBytes >> 4),
                                    kInstruction, accumulate || k > 0);
  }
}

/// A pair of CTAs with 64 queries each: o[64 queries a CTA, 256 columns] += p v of two boxes of v a
/// CTA. p lies in boxes of 64 queries by 64 keys, one behind the other. In o, columns from 128 on
/// are in lanes from 64 on.
template <class Element, int Keys>
__device__ void issue_values_of_halves(std::uint32_t o, std::uint32_t p_boxes,
                                       std::uint32_t v_boxes, bool accumulate) {
  constexpr int kColumns = 4 * kBoxElems, kRows = kTensorRows / 2;
  constexpr std::uint32_t kInstruction =
      mma_instruction<Element, kColumns, 2 * kRows>(arch::Major::kMN);
  const std::uint64_t b =
      arch::tcgen05_descriptor<Box<Keys, kColumns>::kBox, arch::Major::kMN>(v_boxes);
#pragma unroll
  for (int k = 0; k < Keys; k += kMmaK) {
    const std::uint64_t a =
        arch::tcgen05_descriptor<TensorBox::kBox>(p_boxes + k / kBoxElems * kRows * kBoxRowBytes) +
        (k % kBoxElems * 2 >> 4);
    ptx::tcgen05_mma_f16<2>(o, a, b + (k * kBoxRowBytes >> 4), kInstruction, accumulate || k > 0);
  }
}

}  // namespace tilewright::tile
