// e2m1 weights of formats/packed_weight.h out of their words to bf16, scales included, exact.
// Instructions for eight weights, loads not counted: 11 + 4 multiplications twiddled, 7 + 2 + 4
// braided, the 2 by the pipe of multiplications as well; 9 + 2 + 4 of those in pairs of neighbours.
// A zero exponent field of the target makes e2m1's 0.5 a subnormal, and the products with the
// scale's factor leave the subnormals: no case is special. To e4m3: wide/fold_e4m3.h.
#pragma once

#include "formats/packed_weight.h"
#include "ptx/byte_permute.h"
#include "tile/bf16_pair.h"

#include <cstdint>

namespace tilewright::tile {

using kernels::WeightFormat;
using kernels::WordOrder;

/// The factor of one scale byte of the word in both halves, by its scale_selector(): two
/// instructions.
template <WeightFormat Format>
__device__ inline std::uint32_t bf16_factors(std::uint32_t scales, std::uint32_t selector) {
  const std::uint32_t bytes = __byte_perm(scales, 0, selector);
  if constexpr (Format == WeightFormat::kNvfp4) return bytes * 16 + 0x6f806f80u;
  return bytes << 7;
}

/// The same of the scale byte at an address of shared memory: one instruction beside the load, by
/// the pipe of multiplications.
template <WeightFormat Format>
__device__ inline std::uint32_t load_bf16_factors(std::uint32_t address) {
  const std::uint32_t byte = *static_cast<const std::uint8_t*>(__cvta_shared_to_generic(address));
  if constexpr (Format == WeightFormat::kNvfp4) return byte * 0x00100010u + 0x6f806f80u;
  return byte * 0x00800080u;
}

/// Whether the pairs of a word are every other element rather than neighbours: of the elements 0 to
/// 3 of a row (element_of_word()) 0 and 2, then 1 and 3. Tokens have to be paired alike.
constexpr bool is_crossed(WeightFormat format, WordOrder order) {
  return format == WeightFormat::kFp8 || (kernels::is_fp4(format) && order == WordOrder::kE4m3);
}

/// The B fragment for a word of such weights; `first` and `second`: elements 0 and 1, 2 and 3.
template <bool IsCrossed>
__device__ inline void pair_tokens(std::uint32_t (&b)[2], std::uint32_t first,
                                   std::uint32_t second) {
  b[0] = IsCrossed ? ptx::prmt_b32(first, second, 0x5410) : first;
  b[1] = IsCrossed ? ptx::prmt_b32(first, second, 0x7632) : second;
}

/// What unpack_fp4_bf16() wants of selectors: bit 2 of a nibble chooses the table of high bytes.
/// The high half becomes 0x4040 when it is halved as an f16.
inline constexpr std::uint32_t kBraidedTables = 0x44404040u;

/// The bits of selectors in a braided word, of its even codes; of its odd ones two bits above.
inline constexpr std::uint32_t kBraidedBits = 0x33333333u;

/// The high half in the low one, halved as an f16 that is at least 2^1: its exponent, bits 14 to
/// 10, less one.
__device__ inline std::uint32_t halve_high_half(std::uint32_t word) {
  return ptx::mul_high_f16x2(word, 0x38003800u);
}

/// Pairs of bf16 by two words of selectors, of rows g in low halves and of g + 8 in high ones.
__device__ inline void look_up_bf16(std::uint32_t (&a)[4], std::uint32_t first,
                                    std::uint32_t second) {
  // Bytes of the magnitudes' bf16, 0x0000, 0x0040, 0x0080, 0x00c0, 0x0100, ..: low ones by the
  // low bits, high ones by sign and high bit. Not __byte_perm(), which clears the top bits of
  // selectors once more.
  constexpr std::uint32_t kLow = 0xc0804000u, kHigh = 0x81800100u;
  a[0] = ptx::prmt_b32(kLow, kHigh, first);
  a[1] = ptx::prmt_b32(kLow, kHigh, halve_high_half(first));
  a[2] = ptx::prmt_b32(kLow, kHigh, second);
  a[3] = ptx::prmt_b32(kLow, kHigh, halve_high_half(second));
}

/// Eight codes as the A fragment of a product of 16 along K: row g's first pair, row g + 8's, row
/// g's second pair, row g + 8's; times 2^-126. `tables`: kBraidedTables, best in a register.
template <WordOrder Order>
__device__ inline void unpack_fp4_bf16(std::uint32_t (&a)[4], std::uint32_t word,
                                       std::uint32_t tables) {
  if constexpr (Order == WordOrder::kBf16) {
    constexpr std::uint32_t kMask = 0x81c081c0u;
    a[0] = word & kMask;
    a[1] = word << 3 & kMask;
    a[2] = word << 6 & kMask;
    a[3] = (word << 1 & 0x80008000u) | (word >> 5 & 0x01000100u) | (word >> 4 & 0x00c000c0u);
  } else {
    look_up_bf16(a, (word & kBraidedBits) | tables, (word >> 2 & kBraidedBits) | tables);
  }
}

/// The same in pairs of neighbours whatever the order, for kernels whose tokens lie as they are. Of
/// braided codes the selectors trade bytes first, two instructions.
template <WordOrder Order>
__device__ inline void unpack_fp4_bf16_neighbours(std::uint32_t (&a)[4], std::uint32_t word) {
  if constexpr (Order == WordOrder::kBf16) {
    unpack_fp4_bf16<Order>(a, word, 0);
  } else {
    // kBraidedTables of the selectors that result: their top bytes are the second word's.
    const std::uint32_t even = (word & kBraidedBits) | 0x40404040u;
    const std::uint32_t odd = (word >> 2 & kBraidedBits) | 0x44444040u;
    look_up_bf16(a, ptx::prmt_b32(even, odd, 0x6240), ptx::prmt_b32(even, odd, 0x7351));
  }
}

/// unpack_fp4_bf16() with scales: `factors` of rows g and g + 8, from bf16_factors().
template <WordOrder Order>
__device__ inline void decode_fp4_bf16(std::uint32_t (&a)[4], std::uint32_t word,
                                       const std::uint32_t (&factors)[2],
                                       std::uint32_t tables = kBraidedTables) {
  unpack_fp4_bf16<Order>(a, word, tables);
#pragma unroll
  for (int i = 0; i < 4; ++i) a[i] = mul_bf16x2(a[i], factors[i % 2]);
}
template <WordOrder Order>
__device__ inline void decode_fp4_bf16_neighbours(std::uint32_t (&a)[4], std::uint32_t word,
                                                  const std::uint32_t (&factors)[2]) {
  unpack_fp4_bf16_neighbours<Order>(a, word);
#pragma unroll
  for (int i = 0; i < 4; ++i) a[i] = mul_bf16x2(a[i], factors[i % 2]);
}

/// 2^120 in both halves, which a byte's bits lack when they stand in a bf16.
inline constexpr std::uint32_t kE4m3Bias = 0x7b807b80u;

/// Four e4m3 bytes as two pairs of bf16, exact, times `factor` / 2^120. NaN is not kept (it becomes
/// 480).
__device__ inline void decode_e4m3_bf16(std::uint32_t (&pairs)[2], std::uint32_t bytes,
                                        std::uint32_t factor = kE4m3Bias) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const std::uint32_t high = __byte_perm(bytes, 0, i == 0 ? 0x1404 : 0x3424);
    const std::uint32_t tiny = (high >> 4 & 0x07f007f0u) | (high & 0x80008000u);
    pairs[i] = mul_bf16x2(tiny, factor);
  }
}
/// The same with pairs of bytes 0 and 2, 1 and 3: no permutations, and shifts to the left by the
/// pipe of multiplications.
__device__ inline void decode_e4m3_bf16_crossed(std::uint32_t (&pairs)[2], std::uint32_t bytes) {
  const std::uint32_t even = (bytes << 4 & 0x07f007f0u) | (bytes << 8 & 0x80008000u);
  const std::uint32_t odd = (bytes >> 4 & 0x07f007f0u) | (bytes & 0x80008000u);
  pairs[0] = mul_bf16x2(even, kE4m3Bias);
  pairs[1] = mul_bf16x2(odd, kE4m3Bias);
}

}  // namespace tilewright::tile
