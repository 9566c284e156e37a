// The tiles of queries that a producer deals to the consumers of its CTA.
#pragma once

#include "ptx/mbarrier.h"
#include "ptx/warp_roles.h"
#include "tile/ring.h"

#include <cstdint>

namespace tilewright::tile {

/// What the consumers must know of a tile; the divisions behind it are the producer's.
struct DealtTile {
  std::int32_t first_query, head, batch, is_last;  ///< is_last: no tile, the end
  std::int32_t q_begin, q_len, kv_len, kv_begin;   ///< kv_begin: for the producer alone
};

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
    return {ptx::uniform(t.first_query), ptx::uniform(t.head),
            ptx::uniform(t.batch),       ptx::uniform(t.is_last),
            ptx::uniform(t.q_begin),     ptx::uniform(t.q_len),
            ptx::uniform(t.kv_len),      0};
  }
  __device__ void release() {
    Ring<kDealtTiles>(table.ring).release(at);
    at.advance();
  }
};

}  // namespace tilewright::tile
