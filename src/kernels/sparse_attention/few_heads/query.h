// Queries of few heads on their way into shared memory, as B operands of the scores.
#pragma once

#include "kernels/sparse_attention/few_heads/decode_few_heads.h"
#include "kernels/sparse_attention/few_heads/keys.h"
#include "kernels/sparse_attention/work.h"
#include "tile/element.h"
#include "tile/element_chunk.h"

#include <cstdint>

namespace tilewright::tile {

template <KvFormat Format, int Tiles>
struct FewHeadsQuery {
  using Keys = FewHeadsKeys<Format>;

  const kernels::SparseDecodeParams& p;
  kernels::FewHeadsFixed<Tiles * 8>& fixed;
  std::int32_t first_head;
  std::uint32_t warp;  ///< of the team

  /// All heads of a query, zeros for heads that are none, in the order that the products want. For
  /// those of f16 scaled by a power of two so that the largest is 2^6 to 2^7.
  __device__ void load(const SparseQuery& query) const {
    const std::uint32_t lane = threadIdx.x % 32;
    uint4 q[Tiles][2] = {};  // of heads warp + 8 j: chunks of 8 dimensions lane and lane + 32
#pragma unroll
    for (int j = 0; j < Tiles; ++j) {
      const std::int32_t head =
          first_head + static_cast<std::int32_t>(warp) + kernels::kFewHeadsConsumers * j;
      if (head >= p.heads) continue;
      const auto* const from =
          reinterpret_cast<const uint4*>(p.q + query.offset(p.q_strides, head)) + lane;
      q[j][0] = from[0], q[j][1] = from[32];
    }
#pragma unroll
    for (int j = 0; j < Tiles; ++j) {
      const std::uint32_t head = warp + static_cast<std::uint32_t>(kernels::kFewHeadsConsumers * j);
      std::uint32_t exponent = 0;
      if constexpr (Keys::kIsF16) exponent = min(max(largest_exponent(q[j]), 7u), 253u);
      const float factor = __uint_as_float((260 - exponent) << 23);
      if (Keys::kIsF16 && lane == 0)
        fixed.units[head] = __uint_as_float((exponent - 6) << 23) * p.scale_log2;
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const std::uint32_t chunk = lane + static_cast<std::uint32_t>(32 * i);
        const bool is_rope = Format == KvFormat::kBf16 || chunk >= kKvPlainDims / 8;
        uint4 x = q[j][i];
        if constexpr (Keys::kIsF16) {
          x = is_rope ? scale_chunk<Bf16>(x, factor) : scale_chunk<Fp16>(x, factor);
        } else {
          if (!is_rope) x = Keys::arrange(x);
        }
        // Of bf16 keys a lane has dimensions 8 t and on, and 32 + 8 t and on.
        const std::uint32_t to = is_rope ? chunk / 8 * 8 + chunk % 4 * 2 + chunk / 4 % 2 : chunk;
        *reinterpret_cast<uint4*>(fixed.q + head * kernels::kFewHeadsQueryPitch + to * 16) = x;
      }
    }
  }
  template <class Element>
  __device__ static uint4 scale_chunk(const uint4& chunk, float factor) {
    float x[8];
    unpack_chunk<Bf16>(x, chunk);
    return pack_chunk<Element>(x, factor);
  }
  /// Of a row in bf16 that a warp has.
  __device__ static std::uint32_t largest_exponent(const uint4 (&row)[2]) {
    std::uint32_t largest = 0;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const std::uint32_t words[4] = {row[i].x, row[i].y, row[i].z, row[i].w};
#pragma unroll
      for (int k = 0; k < 4; ++k)
        largest = max(largest, max(words[k] & 0x7fff0000u, words[k] << 16 & 0x7fff0000u));
    }
    return __reduce_max_sync(0xffffffffu, largest) >> 23;
  }
};

}  // namespace tilewright::tile
