// Which CTA of a persistent grid works on which tile of a linear layer: y[tokens, rows],
// one matrix or one per expert, whose tokens stand one expert after the other.
#pragma once

#include "ptx/address.h"

#include <cstdint>

namespace tilewright::tile {

/// Experts that the table in shared memory has room for.
inline constexpr int kMaxExperts = 512;

/// The part of a problem that tiles are made of.
struct LinearGroups {
  const std::int32_t* segments;  ///< [experts + 1] first token of each expert; null: one matrix
  std::int32_t experts, tokens;
  std::int32_t row_tiles;
  std::int32_t tile_tokens;  ///< at most, a multiple of 32
  std::int32_t supertile;    ///< tiles of tokens that take turns with each tile of rows
};

struct LinearTile {
  std::int32_t expert;
  std::int32_t row_tile;
  std::int32_t first_token;             ///< of the tile, a multiple of 4
  std::int32_t width;                   ///< tokens, a multiple of 32
  std::int32_t token_begin, token_end;  ///< those of the tile that belong to the expert
};

/// Tiles of all experts before each expert; [experts] is their number.
struct LinearTileTable {
  std::int32_t first_tile[kMaxExperts + 1];
};

__device__ inline std::int32_t expert_begin(const LinearGroups& groups, std::int32_t expert) {
  return groups.segments == nullptr ? 0 : groups.segments[expert];
}
__device__ inline std::int32_t expert_end(const LinearGroups& groups, std::int32_t expert) {
  return groups.segments == nullptr ? groups.tokens : groups.segments[expert + 1];
}

/// Tiles of an expert, all of one width. They begin at a multiple of 4 tokens, so that scales of
/// tokens can be copied 16 bytes at a time: the first one may hold up to 3 tokens of the expert
/// before, which are not stored.
struct TokenTiles {
  std::int32_t begin, end, count, width;

  __device__ TokenTiles(const LinearGroups& groups, std::int32_t expert)
      : begin(expert_begin(groups, expert)), end(expert_end(groups, expert)), count(0), width(32) {
    const std::int32_t span = end - first();
    if (begin >= end) return;
    count = (span + groups.tile_tokens - 1) / groups.tile_tokens;
    width = ((span + count - 1) / count + 31) / 32 * 32;
  }
  __device__ std::int32_t first() const { return begin & ~3; }
};

/// All threads of the CTA; a barrier of the CTA must follow. One expert a thread, then one warp
/// adds.
__device__ inline void fill_tile_table(LinearTileTable& table, const LinearGroups& groups) {
  for (std::int32_t e = threadIdx.x; e < groups.experts; e += blockDim.x) {
    table.first_tile[e + 1] = TokenTiles(groups, e).count * groups.row_tiles;
  }
  if (threadIdx.x == 0) table.first_tile[0] = 0;
  __syncthreads();
  if (threadIdx.x >= 32) return;
  std::int32_t before = 0;
  for (std::int32_t base = 0; base < groups.experts; base += 32) {
    const std::int32_t e = base + static_cast<std::int32_t>(threadIdx.x);
    std::int32_t sum = e < groups.experts ? table.first_tile[e + 1] : 0;
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
      const std::int32_t other = __shfl_up_sync(0xffffffffu, sum, distance);
      if (threadIdx.x >= distance) sum += other;
    }
    sum += before;
    if (e < groups.experts) table.first_tile[e + 1] = sum;
    before = __shfl_sync(0xffffffffu, sum, 31);
  }
}

/// Walks the tiles first, first + stride, ... in order.
struct LinearTileWalk {
  const LinearTileTable& table;
  const LinearGroups& groups;
  std::int32_t index, stride;
  std::int32_t expert = 0;

  /// False when none is left.
  __device__ bool next(LinearTile& tile) {
    while (expert < groups.experts && index >= table.first_tile[expert + 1]) ++expert;
    if (expert >= groups.experts) return false;
    const TokenTiles tiles(groups, expert);
    const std::int32_t inside = index - table.first_tile[expert];
    const std::int32_t per_supertile = groups.supertile * groups.row_tiles;
    const std::int32_t supertile = inside / per_supertile, rest = inside % per_supertile;
    const std::int32_t first = supertile * groups.supertile;
    const std::int32_t across = min(groups.supertile, tiles.count - first);
    tile.expert = expert;
    tile.row_tile = rest / across;
    tile.first_token = tiles.first() + (first + rest % across) * tiles.width;
    tile.width = tiles.width;
    tile.token_begin = max(tiles.begin, tile.first_token);
    tile.token_end = min(tiles.end, tile.first_token + tiles.width);
    index += stride;
    return true;
  }
};

}  // namespace tilewright::tile
