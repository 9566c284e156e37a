// K7's producer: tensor copies of queries, keys and values into rings, scales beside them.
#pragma once

#include "kernels/attention/k7/config.h"
#include "kernels/attention/schedule.h"
#include "ptx/bulk_tensor_copy.h"
#include "tile/box.h"

#include <cstdint>

namespace tilewright::tile {

/// One thread deals tiles of queries and loads all there is to load for them.
template <class C>
struct Fp8AttentionLoader {
  static constexpr int kStages = C::kStages;
  template <int Rows>
  using Tile = Box<Rows, C::kHeadDim, arch::swizzle_of_span(C::kBox)>;

  const kernels::AttentionFp8Params& params;
  Fp8AttentionShared<C>& shared;
  TileDealer dealer;
  RingPosition<C::kQStages> q_at;
  RingPosition<kStages> k_at, v_at;
  RingPosition<kStages> last_k[C::kQStages];  ///< of the queries before, the latest first
  std::int32_t num_keys = 0;                  ///< tiles of the latest
  std::int32_t num_loaded = 0;                ///< tiles of queries that have keys

  /// Where things lie in their tensors.
  struct Place {
    std::int32_t first_query, head, q_batch;
    std::int32_t first_key, kv_head, kv_batch;
    std::int32_t first_column;      ///< of values
    std::int32_t sequence, kv_len;  ///< for scales
    float reference = 1.0f;         ///< of values' scales
  };

  __device__ void run() {
    for (TileNumbers numbers{params}; numbers.draw(); numbers.advance()) {
      const AttentionWork work(params, numbers.index);
      const AttentionSequence sequence = find_sequence(params, work.batch);
      const DealtTile tile = make_tile(work, sequence, C::kTile.queries);
      if (tile.first_query >= tile.q_len) continue;
      load(tile, sequence);
    }
    dealer.deal_end();
  }

 private:
  __device__ void load(const DealtTile& tile, const AttentionSequence& sequence) {
    const typename C::Tiles tiles = C::key_tiles(params, tile);
    Place at = {tile.q_begin + tile.first_query,
                tile.head,
                params.cu_q == nullptr ? tile.batch : 0,
                sequence.kv_begin,
                tile.head / (params.heads / params.kv_heads),
                params.cu_kv == nullptr ? tile.batch : 0,
                params.cu_kv == nullptr ? 0 : (sequence.kv_begin + 15) / 16 * 16 + 16 * tile.batch,
                tile.batch,
                tile.kv_len};
    Ring<kDealtTiles>(shared.table.ring).wait_empty(dealer.at);
    if (tiles.begin < tiles.end) show_scales(shared.tile_scales[dealer.at.stage], tile, at);
    dealer.deal(tile);
    if (tiles.begin < tiles.end) load_keys_first(at, tiles.begin, tiles.end);
  }

  __device__ void show_scales(QueryTileScales& shown, const DealtTile& tile, Place& at) const {
    const float of_keys =
        C::kHasBlockScales ? 1.0f : find_scale(params.k_scales, at.sequence, at.kv_head, 0);
    const std::int32_t q_head = tile.head / params.q_scales.heads_per_scale;
#pragma unroll
    for (int i = 0; i < C::kConsumers; ++i) {
      const std::int32_t first = tile.first_query + i * 64;
      const std::int32_t block = min(first, tile.q_len - 1) / kernels::kQueryScaleBlock;
      shown.scores[i] =
          find_scale(params.q_scales, at.sequence, q_head, C::kHasBlockScales ? block : 0) *
          of_keys;
    }
    const bool is_per_block = C::kHasBlockScales && params.v_scales.block_stride != 0;
    at.reference =
        find_scale(is_per_block ? params.v_reference : params.v_scales, at.sequence, at.kv_head, 0);
    shown.results = at.reference;
  }

  /// Queries and all that belongs to them, the first keys before them. Their place is free when
  /// the last keys of the queries that were there were released, which is when those are needed no
  /// more. So consumers need not release queries.
  __device__ void load_keys_first(const Place& at, std::int32_t begin, std::int32_t end) {
    const RingPosition<kStages> first_k = k_at;
    load_k(at, end - 1);
    // If since those keys as many came as the ring has stages, their place was free then.
    const std::int32_t since = C::kQStages == 1 ? 1 : num_keys + 1;
    if (num_loaded >= C::kQStages && since < kStages)
      Ring<kStages>(shared.k_ring).wait_released(last_k[C::kQStages - 1]);
#pragma unroll
    for (int i = 0; i < C::kConsumers; ++i) {
      const std::uint32_t barrier = Ring<C::kQStages>(shared.q_ring[i]).full(q_at);
      ptx::mbarrier_arrive_expect_tx(barrier, C::kQBytes);
      Tile<64>::template load<1>(shared.q[q_at.stage][i], params.q_map, at.first_query + i * 64,
                                 at.head, at.q_batch, barrier);
    }
    q_at.advance();
    std::int32_t n = end - 1;
    last_k[C::kQStages - 1] = last_k[0];
    last_k[0] = first_k;
    for (; n > begin; --n) {
      last_k[0] = k_at;
      load_k(at, n - 1);
      load_v(at, n);
    }
    load_v(at, n);
    ++num_loaded;
    num_keys = end - begin;
  }

  __device__ void load_k(const Place& at, std::int32_t n) {
    const Ring<kStages> ring(shared.k_ring);
    ring.wait_empty(k_at);
    if constexpr (C::kHasBlockScales) show_scales(shared.key_scales[k_at.stage], at, n);
    ptx::mbarrier_arrive_expect_tx(ring.full(k_at), C::kKvBytes);
    Tile<C::kKeys>::template load<1>(shared.k[k_at.stage], params.k_map,
                                     at.first_key + n * C::kKeys, at.kv_head, at.kv_batch,
                                     ring.full(k_at));
    k_at.advance();
  }
  __device__ void show_scales(KeyTileScales<C::kParts>& shown, const Place& at,
                              std::int32_t n) const {
    constexpr int kOfPart = C::kKeys / C::kParts;
#pragma unroll
    for (int i = 0; i < C::kParts; ++i) {
      // Behind the last key there may be a part without scales.
      const std::int32_t block =
          min(n * C::kKeys + i * kOfPart, at.kv_len - 1) / kernels::kKeyScaleBlock;
      shown.k[i] = find_scale(params.k_scales, at.sequence, at.kv_head, block);
      shown.v_log2[i] =
          log2f(find_scale(params.v_scales, at.sequence, at.kv_head, block) / at.reference);
    }
  }
  __device__ void load_v(const Place& at, std::int32_t n) {
    if constexpr (C::kIsRows) {
      const Ring<kStages> ring(shared.rows_ring);
      ring.start_filling(v_at, C::kKvBytes);
      Tile<C::kKeys>::template load<1>(shared.rows[v_at.stage], params.v_map,
                                       at.first_key + n * C::kKeys, at.kv_head, at.kv_batch,
                                       ring.full(v_at));
    } else {
      const Ring<kStages> ring(shared.v_ring);
      ring.start_filling(v_at, C::kKvBytes);
#pragma unroll
      for (int column = 0; column < C::kKeys; column += C::kValueBox) {
        ptx::cp_async_bulk_tensor_4d_shared_global(
            ptx::shared_address(shared.v[v_at.stage]) + column * C::kHeadDim, params.v_map,
            at.first_column + n * C::kKeys + column, 0, at.kv_head, at.kv_batch, ring.full(v_at));
      }
    }
    v_at.advance();
  }
};

}  // namespace tilewright::tile
