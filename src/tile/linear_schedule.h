// Which CTA (or cluster) of a persistent grid works on which tile of a linear layer: y[tokens, rows],
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
  std::int32_t row_groups;  ///< tiles of rows, or pairs of them when clusters take two
  std::int32_t supertile;   ///< tiles of tokens that are worked on before the next rows' turn comes
};

struct LinearTile {
  std::int32_t expert;
  std::int32_t row_group;
  std::int32_t first_token;             ///< of the tile, a multiple of 4
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

/// Tiles begin at a multiple of 4 tokens, so that scales of tokens can be copied 16 bytes at a time:
/// the first tile of an expert may hold up to 3 tokens of the one before, which are not stored.
template <int Tokens>
__device__ std::int32_t token_tiles(std::int32_t begin, std::int32_t end) {
  return begin < end ? (end - (begin & ~3) + Tokens - 1) / Tokens : 0;
}

/// All threads of the CTA; a barrier of the CTA must follow. One expert a thread, then one warp adds.
template <int Tokens>
__device__ void fill_tile_table(LinearTileTable& table, const LinearGroups& groups) {
  for (std::int32_t e = threadIdx.x; e < groups.experts; e += blockDim.x) {
    table.first_tile[e + 1] =
        token_tiles<Tokens>(expert_begin(groups, e), expert_end(groups, e)) * groups.row_groups;
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
template <int Tokens>
struct LinearTileWalk {
  const LinearTileTable& table;
  const LinearGroups& groups;
  std::int32_t index, stride;
  std::int32_t expert = 0;

  /// False when none is left.
  __device__ bool next(LinearTile& tile) {
    while (expert < groups.experts && index >= table.first_tile[expert + 1]) ++expert;
    if (expert >= groups.experts) return false;
    const std::int32_t begin = expert_begin(groups, expert), end = expert_end(groups, expert);
    const std::int32_t tiles = token_tiles<Tokens>(begin, end);
    const std::int32_t inside = index - table.first_tile[expert];
    const std::int32_t per_supertile = groups.supertile * groups.row_groups;
    const std::int32_t supertile = inside / per_supertile, rest = inside % per_supertile;
    const std::int32_t first = supertile * groups.supertile;
    const std::int32_t width = min(groups.supertile, tiles - first);
    tile.expert = expert;
    tile.row_group = rest / width;
    tile.first_token = (begin & ~3) + (first + rest % width) * Tokens;
    tile.token_begin = max(begin, tile.first_token);
    tile.token_end = min(end, tile.first_token + Tokens);
    index += stride;
    return true;
  }
};

}  // namespace tilewright::tile
