// Two bf16 in a word: their products, and the scale byte that both have in common.
#pragma once

#include <cstdint>

#include <cuda_bf16.h>

namespace tilewright::tile {

/// What __byte_perm(word, 0, ..) takes byte `index` of the word to both halves by.
__device__ constexpr std::uint32_t scale_selector(std::uint32_t index) {
  return 0x4040u + index * 0x0101u;
}

/// Both halves rounded to bf16.
__device__ inline std::uint32_t mul_bf16x2(std::uint32_t a, std::uint32_t b) {
  const __nv_bfloat162 product = __hmul2(*reinterpret_cast<const __nv_bfloat162*>(&a),
                                         *reinterpret_cast<const __nv_bfloat162*>(&b));
  return *reinterpret_cast<const std::uint32_t*>(&product);
}

}  // namespace tilewright::tile
