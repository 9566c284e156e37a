// A lane's share of a row of e2m1 codes, with scales of e4m3.
#pragma once

#include "kernels/sparse_attention/rows.h"
#include "kernels/sparse_attention/unpack_e2m1.h"
#include "kernels/sparse_attention/unpack_e4m3.h"

#include <cstdint>

namespace tilewright::tile {

template <int Half>
struct SparseShare<KvFormat::kNvfp4, Half> {
  using Part = SparsePart<KvFormat::kNvfp4, Half>;
  using Scales = uint4;  ///< a word for the four lanes' numbers of a box
  uint2 plain[Part::kPlain];

  __device__ void decode(SparseChunks& chunks, const Scales& scales, const SparseLane& lane,
                         int box) const {
    const std::uint32_t word = box == 0   ? scales.x
                               : box == 1 ? scales.y
                               : box == 2 ? scales.z
                                          : scales.w;
    const std::uint32_t factor = e4m3_factors(spread_byte(word, static_cast<int>(lane.quarter)));
    chunks[0] = decode_e2m1(plain[box].x, factor);
    chunks[1] = decode_e2m1(plain[box].y, factor);
  }
  static __device__ bool has_large(const Scales& /*scales*/) { return false; }
  static __device__ std::uint32_t rest(const Scales& /*scales*/, int /*box*/) {
    return 0x3f803f80u;
  }
};

}  // namespace tilewright::tile
