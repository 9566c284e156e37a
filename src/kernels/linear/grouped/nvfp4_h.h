// h of experts in NVFP4.
#pragma once

#include "kernels/linear/block_scaled/nvfp4_output.h"

#include <cstdint>

namespace tilewright::tile {

/// 32 columns of h in NVFP4.
struct Nvfp4H {
  static constexpr int kBlock = 16;

  static __device__ std::int64_t code_bytes(std::int32_t columns) { return columns / 2; }

  static __device__ void write(const float (&h)[32], float encode_scale, std::uint8_t* codes,
                               std::uint8_t* scale) {
    std::uint32_t words[4];
    const std::uint32_t first = Nvfp4Output::quantize_block(h, encode_scale, words);
    const std::uint32_t second = Nvfp4Output::quantize_block(h + 16, encode_scale, words + 2);
    *reinterpret_cast<uint4*>(codes) = make_uint4(words[0], words[1], words[2], words[3]);
    *reinterpret_cast<std::uint16_t*>(scale) = static_cast<std::uint16_t>(first | second << 8);
  }
};

}  // namespace tilewright::tile
