// A lane's share of a row of e4m3 codes, with scales that are powers of two.
#pragma once

#include "kernels/sparse_attention/rows.h"
#include "kernels/sparse_attention/unpack_e4m3.h"

#include <cstdint>

namespace tilewright::tile {

template <int Half>
struct SparseShare<KvFormat::kFp8, Half> {
  using Part = SparsePart<KvFormat::kFp8, Half>;
  using Scales = std::uint32_t;
  uint4 plain[Part::kPlain];

  __device__ void decode(SparseChunks& chunks, const Scales& scales, const SparseLane& /*lane*/,
                         int box) const {
    std::uint32_t words[8];
    decode_e4m3(words, plain[box], placed_e4m3_factors(placed_part(spread_byte(scales, box))));
    chunks[0] = make_uint4(words[0], words[1], words[2], words[3]);
    chunks[1] = make_uint4(words[4], words[5], words[6], words[7]);
  }
  /// Is decode() not enough?
  static __device__ bool has_large(const Scales& scales) {
    return has_large_scale(Half == 0 ? scales : scales & 0x00ffffffu);
  }
  /// What decode() leaves out.
  static __device__ std::uint32_t rest(const Scales& scales, int box) {
    const std::uint32_t bytes = spread_byte(scales, box);
    return power_factors(bytes - placed_part(bytes));
  }
};

}  // namespace tilewright::tile
