// Numbers in a word that ranks exchange.
#pragma once

#include "tile/element.h"
#include "tile/element_chunk.h"

#include <cstdint>

namespace tilewright::kernels::peer {

// Four numbers of fp32, or eight of bf16.
struct Numbers {
  float v[8];
};

__device__ inline Numbers numbers_of(const uint4& word, bool is_bf16) {
  Numbers numbers = {};
  if (is_bf16) {
    tile::unpack_chunk<tile::Bf16>(numbers.v, word);
  } else {
    numbers.v[0] = __uint_as_float(word.x);
    numbers.v[1] = __uint_as_float(word.y);
    numbers.v[2] = __uint_as_float(word.z);
    numbers.v[3] = __uint_as_float(word.w);
  }
  return numbers;
}

__device__ inline uint4 word_of(const Numbers& n, bool is_bf16) {
  if (is_bf16)
    return {tile::Bf16::pack(n.v[0], n.v[1]), tile::Bf16::pack(n.v[2], n.v[3]),
            tile::Bf16::pack(n.v[4], n.v[5]), tile::Bf16::pack(n.v[6], n.v[7])};
  return {__float_as_uint(n.v[0]), __float_as_uint(n.v[1]), __float_as_uint(n.v[2]),
          __float_as_uint(n.v[3])};
}

}  // namespace tilewright::kernels::peer
