// Rows of values out of short pages, gathered by the warps that transpose them: one warp that
// gathers keys as well would take longer than their products.
//
//   rows     4 or 8 at once, warps in turn; a tile is full when the copies of all three have landed
//   ahead    a tile's rows are asked for as many tiles before it is transposed as there are other
//            stages, within a tile of queries; their pages are looked up a step before
#pragma once

#include "kernels/attention/k7/config.h"
#include "kernels/attention/k7/paged_copies.h"
#include "tile/dealt_tiles.h"
#include "tile/ring.h"

#include <cstdint>

namespace tilewright::tile {

/// All lanes of one of C::kTransposers warps.
template <class C>
struct GatheredValues {
  using Copies = GatheredRows<C, C::kTransposers>;
  static constexpr std::uint32_t kArrivals = 32 * C::kTransposers;  ///< at the barrier of a stage

  const kernels::AttentionPagedFp8Params& params;
  Fp8AttentionShared<C>& shared;
  std::int32_t warp;
  RingPosition<C::kStages> at;

  /// Those of a tile of queries, the last tile of keys first.
  struct OfTile {
    GatheredValues& all;
    const Copies copies;
    const PagedOperand values;
    const std::int32_t first;  ///< key of the last tile to ask for
    std::int32_t key;          ///< of the next one
    typename Copies::Places places;

    /// The next tile, if there is one; its stage is free as soon as all warps have transposed the
    /// one before.
    __device__ void ask_ahead() {
      if (key < first) return;
      const Ring<C::kStages> ring(all.shared.rows_ring);
      ring.wait_empty(all.at);
      copies.copy(all.shared.rows[all.at.stage], values, key, places, ring.full(all.at));
      __syncwarp();
      all.at.advance();
      key -= C::kKeys;
      places = copies.find(key);
    }
  };

  __device__ OfTile of_tile(const DealtTile& tile, std::int32_t begin, std::int32_t end) {
    const Copies copies = {{params, tile}, warp};
    const std::int32_t key = (end - 1) * C::kKeys;
    OfTile values{
        *this,
        copies,
        {params.v_map, params.v, params.v_strides, tile.head / (params.heads / params.kv_heads)},
        begin * C::kKeys,
        key,
        copies.find(key)};
#pragma unroll 1
    for (int i = 1; i < C::kStages; ++i) values.ask_ahead();
    return values;
  }
};

}  // namespace tilewright::tile
