// e2m1 weights of formats/packed_weight.h out of their words to bf16, scales included, exact.
// Instructions for eight weights, loads not counted: 11 + 4 multiplications twiddled, 13 + 4
// braided. A zero exponent field of the target makes e2m1's 0.5 a subnormal, and the products with
// the scale's factor leave the subnormals: no case is special. To e4m3: wide/fold_e4m3.h.
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

/// Eight codes as the A fragment of a product of 16 along K: row g's first pair, row g + 8's, row
/// g's second pair, row g + 8's; times 2^-126.
template <WordOrder Order>
__device__ inline void unpack_fp4_bf16(std::uint32_t (&a)[4], std::uint32_t word) {
  if constexpr (Order == WordOrder::kBf16) {
    constexpr std::uint32_t kMask = 0x81c081c0u;
    a[0] = word & kMask;
    a[1] = word << 3 & kMask;
    a[2] = word << 6 & kMask;
    a[3] = (word << 1 & 0x80008000u) | (word >> 5 & 0x01000100u) | (word >> 4 & 0x00c000c0u);
  } else {
    // Bytes of the magnitudes' bf16: 0x0000, 0x0040, 0x0080, 0x00c0, 0x0100, 0x0140, ...
    constexpr std::uint32_t kLow = 0xc0804000u, kHighOfSmall = 0, kHighOfLarge = 0x01010101u;
    // Not __byte_perm(), which clears the top bits of selectors once more.
    const std::uint32_t magnitudes = word & 0x77777777u, upper = magnitudes >> 16;
    const std::uint32_t low = ptx::prmt_b32(kLow, kLow, magnitudes);
    const std::uint32_t high =
        ptx::prmt_b32(kHighOfSmall, kHighOfLarge, magnitudes) | (word & 0x80808080u);
    const std::uint32_t low8 = ptx::prmt_b32(kLow, kLow, upper);
    const std::uint32_t high8 =
        ptx::prmt_b32(kHighOfSmall, kHighOfLarge, upper) | (word << 4 & 0x80808080u);
    a[0] = __byte_perm(low, high, 0x5140);
    a[1] = __byte_perm(low8, high8, 0x5140);
    a[2] = __byte_perm(low, high, 0x7362);
    a[3] = __byte_perm(low8, high8, 0x7362);
  }
}

/// The same with scales: `factors` of rows g and g + 8, from bf16_factors().
template <WordOrder Order>
__device__ inline void decode_fp4_bf16(std::uint32_t (&a)[4], std::uint32_t word,
                                       const std::uint32_t (&factors)[2]) {
  unpack_fp4_bf16<Order>(a, word);
#pragma unroll
  for (int i = 0; i < 4; ++i) a[i] = mul_bf16x2(a[i], factors[i % 2]);
}

/// Four e4m3 bytes as two pairs of bf16, exact. NaN is not kept (it becomes 480).
__device__ inline void decode_e4m3_bf16(std::uint32_t (&pairs)[2], std::uint32_t bytes) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const std::uint32_t high = __byte_perm(bytes, 0, i == 0 ? 0x1404 : 0x3424);
    const std::uint32_t tiny = (high >> 4 & 0x07f007f0u) | (high & 0x80008000u);
    pairs[i] = mul_bf16x2(tiny, 0x7b807b80u);  // 2^120
  }
}

}  // namespace tilewright::tile
