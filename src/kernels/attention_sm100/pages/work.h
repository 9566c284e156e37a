// Stages E and H over pages: which rows a CTA has (tile_search.h), and which keys they see, where
// only the device knows how long sequences are.
#pragma once

#include "kernels/attention_sm100/pages/tile_search.h"
#include "kernels/attention_sm100/stage_e_two_tiles.h"
#include "kernels/attention_sm100/tiles_in_flight.h"

#include <cstdint>

namespace tilewright::tile {

using FoundTile = TileSearch<kernels::kStageEThreads>;

/// The rows of a tile and the keys that they see.
struct PagedRows : GroupRows {
  ChunkTiles<kKeys> tiles;

  __device__ PagedRows(const kernels::AttentionPagedParams& params, const TilePlace& found,
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
