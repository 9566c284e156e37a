// Which rows a CTA has, and which keys they see, where only the device knows how long sequences
// are.
//
// A grid of (tiles, heads of keys): the tiles of all sequences are numbered one after the other, as
// many as there are queries for, so that a sequence with one query takes one CTA a head, however
// long the longest is. Which sequence a tile belongs to all threads of the CTA find together.
#pragma once

#include "kernels/attention/forward/paged_mask.h"
#include "kernels/attention_sm100/stage_e_two_tiles.h"
#include "kernels/attention_sm100/tiles_in_flight.h"

#include <cstdint>

namespace tilewright::tile {

/// What all threads of a CTA look up first, in shared memory.
struct FoundTile {
  std::int32_t batch, tile;  ///< of the sequence's, from 0
  AttentionSequence sequence;
  std::int32_t tiles_of_warp[kernels::kStageEThreads / 32];  ///< while it is looked for

  /// All threads; number `index` of all tiles of `queries` queries, the last of a sequence first.
  /// Behind the last of all a sequence without queries.
  __device__ void find(const kernels::AttentionPagedParams& params, std::int32_t index,
                       std::int32_t queries) {
    const auto thread = static_cast<std::int32_t>(threadIdx.x), lane = thread % 32;
    if (thread == 0) batch = tile = 0, sequence = {};
    for (std::int32_t first = 0; first < params.batch; first += kernels::kStageEThreads) {
      AttentionSequence mine = {};
      if (first + thread < params.batch) mine = find_used_sequence(params, first + thread);
      const std::int32_t tiles = (mine.q_len + queries - 1) / queries;
      std::int32_t end = tiles;  // of mine and those before it
#pragma unroll
      for (int step = 1; step < 32; step *= 2) {
        const std::int32_t before = __shfl_up_sync(0xffffffffu, end, step);
        if (lane >= step) end += before;
      }
      if (lane == 31) tiles_of_warp[thread / 32] = end;
      __syncthreads();
      std::int32_t all = 0;
      for (int warp = 0; warp < kernels::kStageEThreads / 32; ++warp) {
        if (warp == thread / 32) end += all;
        all += tiles_of_warp[warp];
      }
      if (index >= end - tiles && index < end)
        batch = first + thread, tile = end - 1 - index, sequence = mine;
      __syncthreads();
      if (index < all) return;
      index -= all;
    }
    __syncthreads();
  }
};

/// The rows of a tile and the keys that they see.
struct PagedRows : GroupRows {
  ChunkTiles<kKeys> tiles;

  __device__ PagedRows(const kernels::AttentionPagedParams& params, const FoundTile& found,
                       std::int32_t group, std::int32_t q_tile)
      : GroupRows{group,
                  kTensorRows / group,
                  q_tile * (kTensorRows / group),
                  static_cast<std::int32_t>(blockIdx.y),
                  found.batch,
                  0,
                  found.sequence},
        tiles(params, sequence.kv_len, shift(), first_query,
              min(first_query + queries, sequence.q_len) - 1) {}

  __device__ std::int32_t shift() const { return sequence.kv_len - sequence.q_len; }
};

/// For TilesInFlight.
struct PagedWork {
  using Params = kernels::AttentionPagedParams;
  using Rows = PagedRows;
  using Found = FoundTile;
  static constexpr bool kLoadsByWarp = true;
  static constexpr int kLoadWarps = 1;

  /// Sequences may be shorter than their room.
  template <int Columns>
  struct Store : StoreOfTile<Columns> {
    static constexpr bool kHasLengths = true;
  };

  static __device__ Rows rows_of(const Params& params, const Found& found, int tiles, int t) {
    return {params, found, params.heads / params.kv_heads, found.tile * tiles + t};
  }
  static __device__ VisibleKeys visible(const Params& params, const Rows& rows, std::int32_t row) {
    return visible_of_chunk(params, rows.query(row) + rows.shift(), rows.sequence.kv_len);
  }
  static __device__ float softcap_scale(const Params& params, const Found& /*found*/) {
    return params.softcap_scale;
  }
  static __device__ float scale_log2(const Params& params, const Found& /*found*/) {
    return params.scale_log2;
  }
  /// Behind the last key a page may hold anything.
  static __device__ bool has_values_behind(const Params& /*params*/) { return true; }
};

}  // namespace tilewright::tile
