// The producer's half of a warp-specialised attention kernel: tensor copies of queries, keys and
// values into rings of shared memory.
#pragma once

#include "kernels/attention/attention.h"
#include "kernels/attention/rings.h"
#include "ptx/address.h"
#include "tile/box.h"
#include "tile/ring.h"

#include <cstdint>

namespace tilewright::tile {

/// One thread loads all there is to load; it keeps its place in each ring.
template <class C>
struct AttentionLoader {
  static constexpr int kQStages = C::kQStages, kKvStages = C::kKvStages;
  using Shared = AttentionShared<C>;

  const kernels::AttentionParams& params;
  Shared& shared;
  RingPosition<kQStages> q_at;
  RingPosition<kKvStages> k_at, v_at;
  RingPosition<kKvStages> last_k;  ///< where keys were put last
  bool has_loaded = false;

  /// Where the queries of all consumers, or keys and values, lie in their tensors.
  struct Rows {
    std::int32_t first, head, batch;
  };

  /// For each consumer its rows.
  __device__ void load_q(const Rows& rows) {
#pragma unroll
    for (int i = 0; i < C::kConsumers; ++i) {
      Ring<kQStages>(shared.q_ring[i]).wait_empty(q_at);
      fill_q(rows, i);
    }
    q_at.advance();
  }
  /// Queries and all that belongs to them, the first keys before them: their place is free when
  /// the last keys of the tile before were released, which is when its queries are needed no more.
  /// So consumers need not release queries.
  __device__ void load_keys_first(const Rows& queries, const Rows& rows, std::int32_t begin,
                                  std::int32_t end) {
    static_assert(kQStages == 1);
    const RingPosition<kKvStages> last = last_k;
    load_k(rows, end - 1);
    if (has_loaded) Ring<kKvStages>(shared.k_ring).wait_released(last);
    has_loaded = true;
#pragma unroll
    for (int i = 0; i < C::kConsumers; ++i) fill_q(queries, i);
    q_at.advance();
    load_rest_backwards(rows, begin, end);
  }

  /// Tiles [begin, end), the last first: masks are needed at the end, then no more. Values follow
  /// the keys one tile behind, in the order in which they are used.
  __device__ void load_backwards(const Rows& rows, std::int32_t begin, std::int32_t end) {
    load_k(rows, end - 1);
    load_rest_backwards(rows, begin, end);
  }

 private:
  __device__ void fill_q(const Rows& rows, int i) {
    const Ring<kQStages> ring(shared.q_ring[i]);
    ptx::mbarrier_arrive_expect_tx(ring.full(q_at), Shared::kQBytes);
    Shared::QBox::template load<2>(shared.q[q_at.stage][i], params.q_map,
                                   rows.first + i * kernels::kWarpgroupRows, rows.head, rows.batch,
                                   ring.full(q_at));
  }
  /// Tile number n of the keys or values.
  __device__ void load_k(const Rows& rows, std::int32_t n) {
    last_k = k_at;
    load_rows<typename Shared::KBox>(rows, n, shared.k_ring, k_at, shared.k, params.k_map);
  }
  __device__ void load_v(const Rows& rows, std::int32_t n) {
    load_rows<typename Shared::VBox>(rows, n, shared.v_ring, v_at, shared.v, params.v_map);
  }
  __device__ void load_rest_backwards(const Rows& rows, std::int32_t begin, std::int32_t end) {
    std::int32_t n = end - 1;
    for (; n > begin; --n) {
      load_k(rows, n - 1);
      load_v(rows, n);
    }
    load_v(rows, n);
  }
  template <class TileBox>
  __device__ void load_rows(const Rows& rows, std::int32_t n, RingBarriers<kKvStages>& barriers,
                            RingPosition<kKvStages>& at,
                            std::uint8_t (&stages)[kKvStages][TileBox::kBytes], const void* map) {
    const Ring<kKvStages> ring(barriers);
    ring.start_filling(at, TileBox::kBytes);
    TileBox::template load<2>(stages[at.stage], map, rows.first + n * C::kKeys, rows.head,
                              rows.batch, ring.full(at));
    at.advance();
  }
};

}  // namespace tilewright::tile
