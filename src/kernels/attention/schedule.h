// Which CTA works on which tile of queries: one CTA per SM takes tiles until none is left.
#pragma once

#include "kernels/attention/attention.h"
#include "kernels/attention/mask.h"
#include "tile/dealt_tiles.h"

#include <cstdint>

namespace tilewright::tile {

/// A tile of queries of one head of one sequence.
struct AttentionWork {
  std::int32_t q_tile, head, batch;

  /// Tile number `index` of all: sections of (batch, head) pairs, so that the keys and values of a
  /// section stay in the L2 cache; in a section the last queries first, which under a causal mask
  /// see the most keys (longest first, so that no long tile starts when others are done).
  __device__ AttentionWork(const kernels::AttentionParams& params, std::int32_t index) {
    const std::int32_t pairs = params.batch * params.heads;
    const std::int32_t per_section = params.section_heads * params.q_tiles;
    const std::int32_t section = index / per_section, inside = index % per_section;
    const std::int32_t first = section * params.section_heads;
    const std::int32_t width = min(params.section_heads, pairs - first);
    const std::int32_t pair = first + inside % width;
    q_tile = params.q_tiles - 1 - inside / width;
    head = pair % params.heads;
    batch = pair / params.heads;
  }
};

/// One thread: the numbers of the tiles that fall to this CTA. They are drawn from the counter, so
/// that a CTA that is done early takes more, or without one dealt in turn.
struct TileNumbers {
  const kernels::AttentionParams& params;
  std::int32_t total = params.batch * params.heads * params.q_tiles;
  std::int32_t index = static_cast<std::int32_t>(blockIdx.x);

  __device__ bool draw() {
    if (params.next_tile != nullptr)
      index = static_cast<std::int32_t>(atomicAdd(params.next_tile, 1u));
    return index < total;
  }
  __device__ void advance() { index += static_cast<std::int32_t>(gridDim.x); }
};

/// A tile of `queries` queries; none if its first one is behind the end of the sequence.
__device__ inline DealtTile make_tile(const AttentionWork& work, const AttentionSequence& sequence,
                                      std::int32_t queries) {
  return {.first_query = work.q_tile * queries,
          .head = work.head,
          .batch = work.batch,
          .is_last = 0,
          .q_begin = sequence.q_begin,
          .q_len = sequence.q_len,
          .kv_len = sequence.kv_len,
          .kv_begin = 0};
}

}  // namespace tilewright::tile
