// The warp that deals tiles of queries and loads all there is to load for them, keys and values out
// of their pages. Beside it warps transpose values, as without pages; where pages are short, they
// gather the rows of values as well (paged_values.h).
#pragma once

#include "kernels/attention/forward/paged_tiles.h"
#include "kernels/attention/k7/config.h"
#include "kernels/attention/k7/paged_copies.h"
#include "tile/box.h"
#include "tile/dealt_tiles.h"
#include "tile/ring.h"

#include <cstdint>

namespace tilewright::tile {

/// All lanes of a warp together.
template <class C>
struct PagedFp8Loader {
  static constexpr int kStages = C::kStages;
  using QueryTile = Box<64, C::kHeadDim, arch::swizzle_of_span(C::kBox)>;

  const kernels::AttentionPagedFp8Params& params;
  Fp8AttentionShared<C>& shared;
  PagedTiles<C::kTile.queries> tiles;  ///< lane 0's
  RingPosition<kDealtTiles> dealt_at;
  RingPosition<C::kQStages> q_at;
  RingPosition<kStages> k_at, v_at;
  RingPosition<kStages> last_k[C::kQStages];  ///< of the queries before, the latest first
  std::int32_t num_keys = 0;                  ///< tiles of the latest
  std::int32_t num_loaded = 0;                ///< tiles of queries that have keys

  /// Copies: CopiedParts or GatheredRows.
  template <class Copies>
  __device__ void run() {
    for (DealtTile tile = deal(); tile.is_last == 0; tile = deal()) {
      const typename C::Tiles seen = C::key_tiles(params, tile);
      if (seen.begin < seen.end) load<Copies>(tile, seen.begin, seen.end);
    }
  }

 private:
  /// The next tile that has queries, or the end.
  __device__ DealtTile deal() {
    const Ring<kDealtTiles> ring(shared.table.ring);
    DealtTile& place = shared.table.tiles[dealt_at.stage];
    if (lane_of_warp() == 0) {
      ring.wait_empty(dealt_at);
      place = tiles.draw();
      if (place.is_last == 0) show_scales(place);
      ptx::mbarrier_arrive(ring.full(dealt_at));
    }
    __syncwarp();
    dealt_at.advance();
    return place;
  }
  __device__ std::int32_t kv_head(const DealtTile& tile) const {
    return tile.head / (params.heads / params.kv_heads);
  }
  /// Without a key there may be no scales of keys.
  __device__ void show_scales(const DealtTile& tile) const {
    if (tile.kv_len == 0) return;
    QueryTileScales& shown = shared.tile_scales[dealt_at.stage];
    const std::int32_t head = kv_head(tile);
    const float scale = find_scale(params.q_scales, tile.batch, head, 0) *
                        find_scale(params.k_scales, tile.batch, head, 0);
    for (float& of_scores : shown.scores) of_scores = scale;
    shown.results = find_scale(params.v_scales, tile.batch, head, 0);
  }

  /// Tiles [begin, end), not none, of keys and values, the last first; queries behind the first
  /// keys, as Fp8AttentionLoader::load_keys_first has it. Pages are looked up a step ahead.
  template <class Copies>
  __device__ void load(const DealtTile& tile, std::int32_t begin, std::int32_t end) {
    const PagedOperand keys = {params.k_map, params.k, params.k_strides, kv_head(tile)};
    const PagedOperand values = {params.v_map, params.v, params.v_strides, keys.head};
    const Copies copies = {{params, tile}};
    const RingPosition<kStages> first_k = k_at;
    std::int32_t key = (end - 1) * C::kKeys;
    typename Copies::Places at = copies.find(key);
    load_k(copies, keys, key, at);
    typename Copies::Places next = copies.find(key - C::kKeys);
    load_queries(tile);
    last_k[C::kQStages - 1] = last_k[0];
    last_k[0] = first_k;
    for (; key > begin * C::kKeys; key -= C::kKeys) {
      last_k[0] = k_at;
      load_k(copies, keys, key - C::kKeys, next);
      if constexpr (Copies::kHasValues) load_v(copies, values, key, at);
      at = next;
      next = copies.find(key - 2 * C::kKeys);
    }
    if constexpr (Copies::kHasValues) load_v(copies, values, key, at);
    ++num_loaded;
    num_keys = end - begin;
  }
  __device__ void load_queries(const DealtTile& tile) {
    const std::int32_t since = C::kQStages == 1 ? 1 : num_keys + 1;
    if (num_loaded >= C::kQStages && since < kStages)
      Ring<kStages>(shared.k_ring).wait_released(last_k[C::kQStages - 1]);
    if (lane_of_warp() == 0) {
      const std::int32_t shift = params.pages.group_shift;
#pragma unroll
      for (int i = 0; i < C::kConsumers; ++i) {
        const std::uint32_t barrier = Ring<C::kQStages>(shared.q_ring[i]).full(q_at);
        ptx::mbarrier_arrive_expect_tx(barrier, C::kQBytes);
        QueryTile::template load<1>(
            shared.q[q_at.stage][i], params.q_map, tile.head << shift,
            tile.q_begin + ((tile.first_query + i * kernels::kWarpgroupRows) >> shift),
            params.cu_q == nullptr ? tile.batch : 0, barrier);
      }
    }
    __syncwarp();
    q_at.advance();
  }
  template <class Copies>
  __device__ void load_k(const Copies& copies, const PagedOperand& keys, std::int32_t key,
                         const typename Copies::Places& at) {
    const Ring<kStages> ring(shared.k_ring);
    ring.wait_empty(k_at);
    copies.copy(shared.k[k_at.stage], keys, key, at, ring.full(k_at));
    __syncwarp();
    k_at.advance();
  }
  template <class Copies>
  __device__ void load_v(const Copies& copies, const PagedOperand& values, std::int32_t key,
                         const typename Copies::Places& at) {
    const Ring<kStages> ring(shared.rows_ring);
    ring.wait_empty(v_at);
    copies.copy(shared.rows[v_at.stage], values, key, at, ring.full(v_at));
    __syncwarp();
    v_at.advance();
  }
};

}  // namespace tilewright::tile
