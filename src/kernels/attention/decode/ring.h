// Where a piece of keys or values lies in shared memory.
#pragma once

#include "kernels/attention/decode/decode.h"

#include <cstdint>

namespace tilewright::tile {

/// Where chunk `chunk` (16 bytes) of a key's row is in a piece: as TMA writes boxes of 128 bytes or
/// 64 with a swizzle over as many. Eight neighbouring keys' chunks of the same number lie in
/// different banks.
template <int RowBytes>
__device__ constexpr std::uint32_t decode_chunk(std::uint32_t key, std::uint32_t chunk) {
  if constexpr (RowBytes >= 128) {
    constexpr std::uint32_t kBox = kernels::kDecodePieceKeys * 128;
    return (RowBytes > 128 ? chunk / 8 * kBox : 0) + key * 128 + ((chunk ^ key) & 7) * 16;
  } else {
    static_assert(RowBytes == 64);
    return (key >> 1) * 128 + (((key & 1) * 4 + chunk) ^ (key >> 1 & 3)) * 16;
  }
}

}  // namespace tilewright::tile
