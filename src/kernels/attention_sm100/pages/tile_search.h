// Which rows a CTA has, where only the device knows how long sequences are.
//
// A grid of (tiles, heads of keys): the tiles of all sequences are numbered one after the other, as
// many as there are queries for, so that a sequence with one query takes one CTA a head, however
// long the longest is. Which sequence a tile belongs to all threads of the CTA find together.
#pragma once

#include "kernels/attention/forward/paged_mask.h"

#include <cstdint>

namespace tilewright::tile {

/// Which of all tiles a CTA has.
struct TilePlace {
  std::int32_t batch, tile;  ///< of the sequence's, from 0
  AttentionSequence sequence;
};

/// What all `Threads` threads of a CTA look up first, in shared memory.
template <int Threads>
struct TileSearch : TilePlace {
  std::int32_t tiles_of_warp[Threads / 32];  ///< while it is looked for

  /// All threads; number `index` of all tiles of `queries` queries, the last of a sequence first.
  /// Behind the last of all a sequence without queries.
  __device__ void find(const kernels::AttentionPagedParams& params, std::int32_t index,
                       std::int32_t queries) {
    const auto thread = static_cast<std::int32_t>(threadIdx.x), lane = thread % 32;
    if (thread == 0) batch = tile = 0, sequence = {};
    for (std::int32_t first = 0; first < params.batch; first += Threads) {
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
      for (int warp = 0; warp < Threads / 32; ++warp) {
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

}  // namespace tilewright::tile
