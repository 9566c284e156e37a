// h of experts in MXFP8.
#pragma once

#include "kernels/linear/block_scaled/mxfp8_output.h"

#include <cstdint>

namespace tilewright::tile {

/// 32 columns of h in MXFP8.
struct Mxfp8H {
  static constexpr int kBlock = 32;

  static __device__ std::int64_t code_bytes(std::int32_t columns) { return columns; }

  static __device__ void write(const float (&h)[32], float, std::uint8_t* codes,
                               std::uint8_t* scale) {
    std::uint32_t words[8];
    const std::uint32_t code = Mxfp8Output::quantize_block(h, words);
    auto* const to = reinterpret_cast<uint4*>(codes);
    to[0] = make_uint4(words[0], words[1], words[2], words[3]);
    to[1] = make_uint4(words[4], words[5], words[6], words[7]);
    *scale = static_cast<std::uint8_t>(code);
  }
};

}  // namespace tilewright::tile
