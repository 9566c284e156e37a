// Which CTA works on which tile of queries: one CTA per SM takes tiles until none is
// left.
#pragma once

#include "kernels/attention/attention.h"
#include "kernels/attention/mask.h"
#include "ptx/address.h"
#include "ptx/mbarrier.h"
#include "ptx/warp_roles.h"
#include "tile/ring.h"

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

/// What the consumers must know of a tile; the divisions behind it are the producer's.
struct DealtTile {
  std::int32_t first_query, head, batch, is_last;  ///< is_last: no tile, the end
  std::int32_t q_begin, q_len, kv_len, unused;
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
          .unused = 0};
}

/// The producer deals tiles ahead of the consumers, through a ring of its own.
inline constexpr int kDealtTiles = 3;
struct TileTable {
  DealtTile tiles[kDealtTiles];
  RingBarriers<kDealtTiles> ring;
};

/// The producer's side.
struct TileDealer {
  TileTable& table;
  RingPosition<kDealtTiles> at;

  __device__ void deal(const DealtTile& tile) {
    const Ring<kDealtTiles> ring(table.ring);
    ring.wait_empty(at);
    table.tiles[at.stage] = tile;
    ptx::mbarrier_arrive(ring.full(at));
    at.advance();
  }
  __device__ void deal_end() { deal({.is_last = 1}); }
};

/// A consumer's side: the tile in hand stays readable until it is released.
struct TileTaker {
  TileTable& table;
  RingPosition<kDealtTiles> at;

  __device__ DealtTile take() const {
    Ring<kDealtTiles>(table.ring).wait_full(at);
    const DealtTile& t = table.tiles[at.stage];
    return {.first_query = ptx::uniform(t.first_query),
            .head = ptx::uniform(t.head),
            .batch = ptx::uniform(t.batch),
            .is_last = ptx::uniform(t.is_last),
            .q_begin = ptx::uniform(t.q_begin),
            .q_len = ptx::uniform(t.q_len),
            .kv_len = ptx::uniform(t.kv_len),
            .unused = 0};
  }
  __device__ void release() {
    Ring<kDealtTiles>(table.ring).release(at);
    at.advance();
  }
};

}  // namespace tilewright::tile
