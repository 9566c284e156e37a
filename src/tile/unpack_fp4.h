// e2m1 weights of formats/packed_weight.h out of their words, scales included: to bf16,
// exact, and to e4m3, correctly rounded. Instructions for eight weights, loads not counted:
//   bf16, twiddled   11 + 4 multiplications       bf16, braided   13 + 4
//   e4m3, braided    7 (and 8 bytes of the table for every 16)
// A zero exponent field of the target makes e2m1's 0.5 a subnormal, and the products with the
// scale's factor leave the subnormals: no case is special.
#pragma once

#include "formats/packed_weight.h"

#include <cstdint>

#include <cuda_bf16.h>

namespace tilewright::tile {

using kernels::WeightFormat;
using kernels::WordOrder;

/// Both halves rounded to bf16.
__device__ inline std::uint32_t mul_bf16x2(std::uint32_t a, std::uint32_t b) {
  const __nv_bfloat162 product = __hmul2(*reinterpret_cast<const __nv_bfloat162*>(&a),
                                         *reinterpret_cast<const __nv_bfloat162*>(&b));
  return *reinterpret_cast<const std::uint32_t*>(&product);
}

/// The selector that bf16_factors() wants for byte `index` of a word.
__device__ constexpr std::uint32_t scale_selector(std::uint32_t index) {
  return 0x4040u + index * 0x0101u;
}
/// The factor of one scale byte of the word in both halves: two instructions.
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
    const std::uint32_t magnitudes = word & 0x77777777u, upper = magnitudes >> 16;
    const std::uint32_t low = __byte_perm(kLow, kLow, magnitudes);
    const std::uint32_t high =
        __byte_perm(kHighOfSmall, kHighOfLarge, magnitudes) | (word & 0x80808080u);
    const std::uint32_t low8 = __byte_perm(kLow, kLow, upper);
    const std::uint32_t high8 =
        __byte_perm(kHighOfSmall, kHighOfLarge, upper) | (word << 4 & 0x80808080u);
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

/// Magnitudes of e2m1 as e4m3 under every scale byte: 2 KB, to be copied to shared memory.
template <WeightFormat Format>
struct E4m3Table {
  std::uint64_t magnitudes[256];

  constexpr E4m3Table() : magnitudes() {
    for (std::uint32_t byte = 0; byte < 256; ++byte)
      magnitudes[byte] = kernels::e4m3_magnitudes(Format, byte);
  }
};
template <WeightFormat Format>
static __device__ const E4m3Table<Format> kE4m3Table;

/// Fills a table in shared memory with this thread's part; a barrier of the CTA follows.
template <WeightFormat Format>
__device__ inline void copy_e4m3_table(std::uint64_t (&to)[256], std::uint32_t thread,
                                       std::uint32_t threads) {
  for (std::uint32_t i = thread; i < 256; i += threads) to[i] = kE4m3Table<Format>.magnitudes[i];
}

/// Eight braided codes as e4m3: four of row g, four of row g + 8 (element_of_word order).
/// `magnitudes` are the table's entries of the two rows' scale bytes.
__device__ inline void decode_fp4_e4m3(std::uint32_t (&a)[2], std::uint32_t word,
                                       const uint2 (&magnitudes)[2]) {
  const std::uint32_t selectors = word & 0x77777777u;
  a[0] = __byte_perm(magnitudes[0].x, magnitudes[0].y, selectors) | (word & 0x80808080u);
  a[1] = __byte_perm(magnitudes[1].x, magnitudes[1].y, selectors >> 16) | (word << 4 & 0x80808080u);
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
