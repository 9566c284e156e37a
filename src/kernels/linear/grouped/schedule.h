// Tiles of grouped products: which rows of which expert a cluster multiplies next.
#pragma once

#include "formats/grouped_scales.h"
#include "kernels/linear/grouped/sm100_grouped.h"

#include <cstdint>

namespace tilewright::tile {

using kernels::BlockScaledConfig;
using kernels::MoeGroupedParams;

/// Rows of an expert.
struct GroupedRows {
  std::int32_t begin, end;
};

/// Where the rows of an expert begin, if all have the same room.
__device__ inline std::int32_t first_in_rooms(const MoeGroupedParams& params, std::int32_t expert) {
  return expert * params.room;
}

__device__ inline GroupedRows read_rows(const MoeGroupedParams& params, std::int32_t expert) {
  if (params.offsets != nullptr) return {params.offsets[expert], params.offsets[expert + 1]};
  const std::int32_t begin = first_in_rooms(params, expert);
  const std::int32_t count = params.counts == nullptr ? params.room : params.counts[expert];
  return {begin, begin + rows_in_room(count, params.room)};
}

/// Of every expert: where its rows end, and how many tiles down the rows the experts before it
/// have. One more entry of tiles has the sum.
struct GroupedTable {
  std::int32_t end[kernels::kMoeGroupedMaxExperts];
  std::int32_t tiles[kernels::kMoeGroupedMaxExperts + 1];

  /// One warp. The writes of the kernel before must be visible.
  __device__ void fill(const MoeGroupedParams& params, std::int32_t tile_rows) {
    const auto lane = static_cast<std::int32_t>(threadIdx.x % 32);
    std::int32_t before = 0;
    for (std::int32_t first = 0; first < params.experts; first += 32) {
      const std::int32_t expert = min(first + lane, params.experts - 1);
      const GroupedRows rows = read_rows(params, expert);
      const bool is_one = first + lane < params.experts;
      const std::int32_t own = is_one ? (rows.end - rows.begin + tile_rows - 1) / tile_rows : 0;
      std::int32_t sum = own;
#pragma unroll
      for (int step = 1; step < 32; step *= 2) {
        const std::int32_t other = __shfl_up_sync(~0u, sum, step);
        if (lane >= step) sum += other;
      }
      if (is_one) {
        end[expert] = rows.end;
        tiles[expert] = before + sum - own;
      }
      before += __shfl_sync(~0u, sum, 31);
    }
    if (lane == 0) tiles[params.experts] = before;
  }

  __device__ GroupedRows rows_of(const MoeGroupedParams& params, std::int32_t expert) const {
    if (params.offsets == nullptr) return {first_in_rooms(params, expert), end[expert]};
    return {expert == 0 ? 0 : end[expert - 1], end[expert]};
  }

  /// The expert that has tile number `tile` down the rows of all: of those that begin at it or
  /// before the last, which has rows.
  __device__ std::int32_t find(std::int32_t experts, std::int32_t tile) const {
    std::int32_t low = 0, high = experts;  // tiles[low] <= tile < tiles[high]
    while (high - low > 1) {
      const std::int32_t middle = (low + high) / 2;
      (tiles[middle] <= tile ? low : high) = middle;
    }
    return low;
  }
};

/// A tile of one expert, and the part of a CTA in it.
struct GroupedTileAt {
  std::int32_t expert;
  std::int32_t row, rows;   ///< the first of this CTA, and how many it has: none or more
  std::int32_t scale_tile;  ///< of the first row,
  std::int32_t scale_row;   ///< and which of the tile's 128 it is
  std::int32_t n;           ///< tile along the columns
};

/// Rows of CTA number `rank` of a cluster.
template <BlockScaledConfig C>
__device__ std::int32_t rows_of_cta(std::int32_t rows, std::int32_t rank) {
  return max(0, min(rows - rank * C.rows(), C.rows()));
}

/// Calls work(tile, rows of the whole cluster) for every tile of this cluster: expert after expert,
/// in an expert down the rows first, so that a weight is read once while it is in the L2 cache.
template <BlockScaledConfig C, class Work>
__device__ void for_each_grouped_tile(const MoeGroupedParams& params, const GroupedTable& table,
                                      std::uint32_t rank, Work&& work) {
  const std::int32_t total = table.tiles[params.experts] * params.gemm.tiles_n;
  const auto clusters = static_cast<std::int32_t>(gridDim.x) / C.tile.cluster();
  for (auto index = static_cast<std::int32_t>(blockIdx.x) / C.tile.cluster(); index < total;
       index += clusters) {
    const std::int32_t expert = table.find(params.experts, index / params.gemm.tiles_n);
    const std::int32_t tiles = table.tiles[expert + 1] - table.tiles[expert];
    const std::int32_t inside = index - table.tiles[expert] * params.gemm.tiles_n;
    const GroupedRows all = table.rows_of(params, expert);
    const std::int32_t m = inside % tiles, offset = all.begin;
    const std::int32_t rows = all.end - offset - m * C.tile_m();
    const auto cta = static_cast<std::int32_t>(rank);
    const std::int32_t first = m * C.tile_m() + cta * C.rows();
    const auto scale_tile = static_cast<std::int32_t>(grouped_scale_tile(offset, expert));
    const GroupedTileAt at = {.expert = expert,
                              .row = offset + first,
                              .rows = rows_of_cta<C>(rows, cta),
                              .scale_tile = scale_tile + first / 128,
                              .scale_row = first % 128,
                              .n = inside / tiles};
    work(at, rows);
  }
}

}  // namespace tilewright::tile
