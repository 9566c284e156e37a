// The producer's half of K6 over pages. A tile of keys or values is copied in parts of page_box
// rows, none of which crosses a page. One thread copies a few of them; more than that it cannot
// issue in the time of a step, so that four warps do, a thread a part:
//
//   part   0    1    2    3    4    5    6    7  ...
//   warp   0    1    2    3    0    1    2    3
//   lane   0    0    0    0    1    1    1    1
#pragma once

#include "kernels/attention/forward/k6_paged.h"
#include "kernels/attention/rings.h"
#include "tile/box.h"
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
        row(tile.unused + key) {
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
  RingPosition<kStages> k_at, v_at;

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

/// The thread, or all threads of the warps together. Thread 0 also loads the queries.
template <class C, bool IsOneThread>
struct PagedLoader : PagedProducer<C, PagedLoader<C, IsOneThread>> {
  using Base = PagedProducer<C, PagedLoader<C, IsOneThread>>;
  using Base::k_at;
  using Base::kStages;
  using Base::params;
  using Base::shared;
  using Base::v_at;
  using Shared = AttentionShared<C>;
  static constexpr int kParts = IsOneThread ? kernels::thread_parts(C::kKeys) : 1;  ///< of a thread
  static_assert(IsOneThread || C::kKeys <= 32 * kernels::kPageWarps,
                "a thread has one part, or none");

  /// Where the parts of a thread lie.
  struct Places {
    std::int32_t page[kParts], row[kParts];
  };

  __device__ static bool is_first_thread() { return IsOneThread || threadIdx.x == 0; }
  __device__ static std::int32_t first_part() {
    if constexpr (IsOneThread) return 0;
    return static_cast<std::int32_t>(threadIdx.x % 32) * kernels::kPageWarps +
           static_cast<std::int32_t>(threadIdx.x / 32);
  }
  __device__ std::int32_t first_row() const { return first_part() * params.pages.page_box; }

  __device__ static Places find(const PageCursor& at) {
    Places places;
    std::int32_t i = at.index, of_page = at.row;
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
      places.page[part] = at.page(i);
      places.row[part] = of_page;
      of_page += at.pages.page_box;
      if (of_page == at.pages.page_size) of_page = 0, ++i;
    }
    return places;
  }
  __device__ void load_k(const Places& at, std::int32_t head) {
    copy<typename Shared::KBox>(at, head, shared.k_ring, k_at, shared.k, params.k_map);
  }
  __device__ void load_v(const Places& at, std::int32_t head) {
    copy<typename Shared::VBox>(at, head, shared.v_ring, v_at, shared.v, params.v_map);
  }

 private:
  /// Copies may land before the first thread has said how many bytes there will be: the stage is
  /// full when it has, and all of them have. A thread without a part does not wait: nothing would
  /// keep it in step with the rounds of the ring, other lanes of its warp neither, and a parity
  /// that it missed comes back two rounds later.
  template <class TileBox>
  __device__ void copy(const Places& places, std::int32_t head, RingBarriers<kStages>& barriers,
                       RingPosition<kStages>& at, std::uint8_t (&stages)[kStages][TileBox::kBytes],
                       const void* map) {
    const Ring<kStages> ring(barriers);
    if (first_part() < params.pages.tile_parts) {
      ring.wait_empty(at);
      if (is_first_thread()) ptx::mbarrier_arrive_expect_tx(ring.full(at), TileBox::kBytes);
#pragma unroll
      for (int i = 0; i < kParts; ++i) {
        const std::int32_t part = first_part() + i;
        if (i > 0 && part >= params.pages.tile_parts) break;
        TileBox::template load<2>(stages[at.stage] + part * params.pages.page_box * kBoxRowBytes,
                                  map, places.row[i], head, places.page[i], ring.full(at));
      }
    }
    at.advance();
  }
};

}  // namespace tilewright::tile
