// Products of tiles by the 5th generation tensor core, one box of operands at a time.
//
// A box is what one tensor copy writes: rows of 64 16-bit elements, 128 bytes, with the 128-byte
// swizzle. Accumulators and A operands in Tensor Memory have 128 rows, one a lane.
#pragma once

#include "arch/fragments/smem_tiles.h"
#include "arch/instruction_descriptor.h"
#include "ptx/tcgen05_mma.h"
#include "tile/element.h"

#include <cstdint>
#include <type_traits>

namespace tilewright::tile {

inline constexpr int kTensorRows = 128;  ///< of an instruction: the lanes of Tensor Memory
inline constexpr int kBoxElems = 64;     ///< 16-bit columns of a box
inline constexpr int kBoxLineBytes = 128;
inline constexpr int kMmaK = 16;      ///< of the reduction index in one instruction
inline constexpr int kBoxRows = 128;  ///< queries or keys
inline constexpr int kBoxBytes = kBoxRows * kBoxLineBytes;

/// 16 bytes of a line of a box, where the swizzle puts them. Neighbouring lines meet in different
/// banks.
template <class Chunk>
__device__ Chunk* line_chunk(std::uint8_t* box, std::uint32_t line, std::uint32_t chunk) {
  static_assert(sizeof(Chunk) == 16);
  return reinterpret_cast<Chunk*>(box + line * kBoxLineBytes + (chunk ^ line % 8) * 16);
}

/// Descriptor of a box whose rows are m or n, and whose columns are the reduction index. It says
/// how far 8 rows are from the next 8, not how many there are.
__device__ inline std::uint64_t describe_rows_by_k(std::uint32_t address) {
  constexpr arch::SmemSwizzle kSwizzle = arch::SmemSwizzle::k128B;
  constexpr ComposedLayout kBox =
      arch::make_smem_tile(arch::Major::kK, kSwizzle, 16, kBoxRows, kBoxElems);
  constexpr std::uint64_t kAtZero = arch::encode_tcgen05_descriptor(
      arch::describe_smem_tile(kBox, arch::Major::kK, kSwizzle, 16));
  return kAtZero | address >> 4;
}

/// Descriptor of a box whose rows are the reduction index, and whose columns are n.
__device__ inline std::uint64_t describe_k_by_columns(std::uint32_t address) {
  constexpr arch::SmemSwizzle kSwizzle = arch::SmemSwizzle::k128B;
  constexpr ComposedLayout kBox =
      arch::make_smem_tile(arch::Major::kMN, kSwizzle, 16, kBoxElems, kBoxRows, true);
  constexpr std::uint64_t kAtZero = arch::encode_tcgen05_descriptor(
      arch::describe_smem_tile(kBox, arch::Major::kMN, kSwizzle, 16));
  return kAtZero | address >> 4;
}

/// d[128, N] = a[128, 16] b: operands of the 16-bit format, accumulator f32.
template <class Element, int N>
constexpr std::uint32_t mma_instruction(arch::Major b_major) {
  constexpr auto kType = static_cast<std::uint32_t>(
      std::is_same_v<Element, Bf16> ? arch::MmaF16Type::kBf16 : arch::MmaF16Type::kF16);
  return arch::encode_mma_instruction(arch::MmaInstruction{
      .a_type = kType, .b_type = kType, .b_major = b_major, .m = kTensorRows, .n = N});
}

/// s[128 queries, Keys] += q k^T of one box of each: 64 of the reduction index. Issued by one
/// thread. Descriptors count 16 bytes, so a step of k adds to them.
template <class Element, int Keys>
__device__ void issue_scores(std::uint32_t s, std::uint32_t q_box, std::uint32_t k_box,
                             bool accumulate) {
  constexpr std::uint32_t kInstruction = mma_instruction<Element, Keys>(arch::Major::kK);
  const std::uint64_t a = describe_rows_by_k(q_box), b = describe_rows_by_k(k_box);
#pragma unroll
  for (int k = 0; k < kBoxElems; k += kMmaK)
    ptx::tcgen05_mma_f16(s, a + (k * 2 >> 4), b + (k * 2 >> 4), kInstruction, accumulate || k > 0);
}

/// o[128 queries, 64 columns] += p v of one box of v. p lies in Tensor Memory, two a cell, so a
/// step of 16 keys is 8 columns.
template <class Element, int Keys>
__device__ void issue_values(std::uint32_t o, std::uint32_t p, std::uint32_t v_box,
                             bool accumulate) {
  constexpr std::uint32_t kInstruction = mma_instruction<Element, kBoxElems>(arch::Major::kMN);
  const std::uint64_t b = describe_k_by_columns(v_box);
#pragma unroll
  for (int k = 0; k < Keys; k += kMmaK) {
    ptx::tcgen05_mma_f16_tmem(o, p + k / 2, b + (k * kBoxLineBytes >> 4), kInstruction,
                              accumulate || k > 0);
  }
}

}  // namespace tilewright::tile
