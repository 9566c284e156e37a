// Tensor copies out of pages: a tile of keys or values comes in parts of page_box rows, none of
// which crosses a page. One thread copies a few of them; more than that it cannot issue in the time
// of a step, so that four warps do, a thread a part:
//
//   part   0    1    2    3    4    5    6    7  ...
//   warp   0    1    2    3    0    1    2    3
//   lane   0    0    0    0    1    1    1    1
#pragma once

#include "kernels/attention/forward/paged_producer.h"
#include "kernels/attention/forward/pages.h"
#include "kernels/attention/rings.h"
#include "tile/box.h"
#include "tile/ring.h"

#include <cstdint>

namespace tilewright::tile {

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
