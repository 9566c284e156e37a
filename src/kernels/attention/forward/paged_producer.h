// The producer's half of K6 over pages: where keys lie, and the order of all that is loaded,
// whoever copies it.
#pragma once

#include "kernels/attention/forward/pages.h"
#include "kernels/attention/rings.h"
#include "tile/dealt_tiles.h"
#include "tile/ring.h"

#include <cstdint>

namespace tilewright::tile {

/// Where a thread's first key of a tile lies, tile by tile towards the first.
struct PageCursor {
  const kernels::AttentionPages& pages;
  const std::int32_t* table;
  std::int32_t limit;       ///< how many pages there are; without a table, which one
  std::int32_t index, row;  ///< row of page `index` of the sequence

  __device__ PageCursor(const kernels::AttentionPagedParams& params, const DealtTile& tile,
                        std::int32_t key)
      : pages(params.pages),
        table(pages.block_table),
        limit(params.cu_kv == nullptr ? tile.batch : 0),
        index(0),
        row(tile.kv_begin + key) {
    if (table == nullptr) return;
    table += tile.batch * pages.table_stride;
    limit = (tile.kv_len + pages.page_size - 1) / pages.page_size;
    index = key / pages.page_size;
    row = key - index * pages.page_size;
  }
  __device__ void retreat() {
    index -= pages.tile_pages;
    row -= pages.tile_rows;
    if (row >= 0) return;
    row += pages.page_size;
    --index;
  }
  /// Behind the last page and before the first none is looked up: no page has the number -1, of
  /// which a copy makes zeros. A thread without a part may look beyond a tile, to no end.
  __device__ std::int32_t page(std::int32_t i) const {
    if (table == nullptr) return limit;
    return i < 0 || i >= limit ? -1 : table[i];
  }
};

/// The order of all that is loaded, and the queries. `Own` derives from this and says where its
/// first key of a tile is (first_row), looks pages up (find), and copies (load_k, load_v).
template <class C, class Own>
struct PagedProducer {
  static constexpr int kStages = C::kKvStages;
  static_assert(C::kVariant.keys_first && C::kQStages == 1);

  const kernels::AttentionPagedParams& params;
  AttentionShared<C>& shared;
  RingPosition<1> q_at;
  RingPosition<kStages> k_at;
  RingPosition<value_stages<C>()> v_at;

  /// Tiles [begin, end), not none, of the keys and values that a tile of queries sees, the last
  /// first; the queries behind the first keys, as AttentionLoader::load_keys_first has it. Pages
  /// are looked up a step ahead.
  __device__ void load(const DealtTile& tile, std::int32_t begin, std::int32_t end) {
    Own& own = static_cast<Own&>(*this);
    const std::int32_t head = tile.head / (params.heads / params.kv_heads);
    PageCursor cursor(params, tile, (end - 1) * C::kKeys + own.first_row());
    auto at = own.find(cursor);
    own.load_k(at, head);
    cursor.retreat();
    auto next = own.find(cursor);
    load_queries(tile, own.is_first_thread());
    for (std::int32_t n = end - 1;; --n) {
      if (n > begin) own.load_k(next, head);
      own.load_v(at, head);
      if (n == begin) return;
      at = next;
      cursor.retreat();
      next = own.find(cursor);
    }
  }

 protected:
  /// By one thread, behind the first keys: the keys before those were the last that the queries
  /// before met.
  __device__ void load_queries(const DealtTile& tile, bool is_first) {
    const std::int32_t shift = params.pages.group_shift;
    if (is_first) {
      Ring<kStages>(shared.k_ring).wait_released(before(before(k_at)));
#pragma unroll
      for (int i = 0; i < C::kConsumers; ++i) {
        const Ring<1> ring(shared.q_ring[i]);
        ptx::mbarrier_arrive_expect_tx(ring.full(q_at), AttentionShared<C>::kQBytes);
        AttentionShared<C>::QBox::template load<2>(
            shared.q[0][i], params.q_map, tile.head << shift,
            tile.q_begin + ((tile.first_query + i * kernels::kWarpgroupRows) >> shift),
            params.cu_q == nullptr ? tile.batch : 0, ring.full(q_at));
      }
    }
    q_at.advance();
  }

 private:
  /// One back; from the beginning to the round before the first, which is over.
  __device__ static RingPosition<kStages> before(RingPosition<kStages> at) {
    if (at.stage == 0) return {kStages - 1, at.parity ^ 1};
    return {at.stage - 1, at.parity};
  }
};

}  // namespace tilewright::tile
