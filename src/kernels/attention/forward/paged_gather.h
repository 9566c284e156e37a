// The producer's half of K6 where pages are shorter than a part worth a tensor copy: four warps
// gather a tile row by row, 16 bytes a lane (cp.async), into the layout that a tensor copy writes.
//
//   row of a tile    0 1 2 3 | 4 5 6 7 | 8 9 10 11 | 12 13 14 15 | 16 17 18 19 | ...
//   warp             0       | 1       | 2         | 3           | 0           | ...
//   copied at once   4 rows of 128 bytes, 8 lanes each, from a box of columns after the other
//
// A lane looks up one row of its warp's, a step ahead, and the warp shares what its lanes found. A
// warp's rows have the same numbers modulo 8, so that a lane's place in a line is the same in all.
//
// A thread's arrival at the barrier of a stage comes by itself when its copies have landed. The
// fence between the proxies is the consumers' (PagedConsumer::wait_k): a fence here would wait for
// all copies of the thread, also for those that have just begun.
#pragma once

#include "kernels/attention/forward/paged_producer.h"
#include "kernels/attention/forward/pages.h"
#include "kernels/attention/rings.h"
#include "ptx/cp_async.h"
#include "tile/box.h"
#include "tile/ring.h"

#include <cstdint>

namespace tilewright::tile {

/// All threads of kernels::kPageWarps warps together. Thread 0 also loads the queries.
template <class C>
struct PagedGatherer : PagedProducer<C, PagedGatherer<C>> {
  using Base = PagedProducer<C, PagedGatherer<C>>;
  using Base::k_at;
  using Base::params;
  using Base::shared;
  using Base::v_at;
  using Shared = AttentionShared<C>;
  static constexpr int kRows = 4;  ///< that a warp copies at once
  static constexpr int kRowsOfAll = kRows * kernels::kPageWarps;
  static constexpr int kTurns = C::kKeys / kRowsOfAll;
  static_assert(C::kKeys % kRowsOfAll == 0 && kTurns * kRows <= 32, "a lane looks up one row");
  static_assert(kRowsOfAll % 8 == 0, "a lane's line is the same modulo 8 in each turn");

  static constexpr std::uint32_t kNoRow = 0xffffffff;  ///< of a page that there is not: zeros

  struct Place {
    std::int32_t page, row;
  };

  __device__ static bool is_first_thread() { return threadIdx.x == 0; }
  __device__ static Place find(const PageCursor& at) { return {at.page(at.index), at.row}; }
  /// Of a tile.
  __device__ static std::int32_t first_row() {
    return lane() / kRows * kRowsOfAll + warp_row() + lane() % kRows;
  }
  __device__ void load_k(const Place& at, std::int32_t head) {
    copy<typename Shared::KBox>(offset_of(at, params.k_strides),
                                chunk_of(params.k, params.k_strides, head), params.head_dim,
                                shared.k_ring, k_at, shared.k);
  }
  __device__ void load_v(const Place& at, std::int32_t head) {
    copy<typename Shared::VBox>(offset_of(at, params.v_strides),
                                chunk_of(params.v, params.v_strides, head), params.value_dim,
                                shared.v_ring, v_at, shared.v);
  }

 private:
  __device__ static std::int32_t lane() { return static_cast<std::int32_t>(threadIdx.x % 32); }
  /// Of a tile, in turn 0.
  __device__ static std::int32_t warp_row() {
    return static_cast<std::int32_t>(threadIdx.x / 32) * kRows;
  }

  /// A lane's chunk of row 0 of page 0.
  __device__ static const std::uint8_t* chunk_of(const void* rows,
                                                 const kernels::AttentionStrides& strides,
                                                 std::int32_t head) {
    return static_cast<const std::uint8_t*>(rows) + 2 * head * strides.head + lane() % 8 * 16;
  }
  /// Chunks of 16 bytes from row 0 of page 0 on, of which there are fewer than 2^32.
  __device__ std::uint32_t offset_of(const Place& at,
                                     const kernels::AttentionStrides& strides) const {
    const auto page = static_cast<std::uint32_t>(at.page);
    if (page >= static_cast<std::uint32_t>(params.pages.num_pages)) return kNoRow;
    return page * static_cast<std::uint32_t>(strides.batch / 8) +
           static_cast<std::uint32_t>(at.row) * static_cast<std::uint32_t>(strides.row / 8);
  }

  /// The rows of a warp, those at `offset` of lane i being its i-th. Columns from `columns` on are
  /// zeros.
  template <class TileBox, int Stages>
  __device__ void copy(std::uint32_t offset, const std::uint8_t* from, std::int32_t columns,
                       RingBarriers<Stages>& barriers, RingPosition<Stages>& at,
                       std::uint8_t (&stages)[Stages][TileBox::kBytes]) {
    constexpr int kBoxes = TileBox::kBytes / (C::kKeys * kBoxRowBytes);
    const Ring ring(barriers);
    const std::int32_t row = warp_row() + lane() / 8;
    const std::uint32_t to =
        ptx::shared_address(stages[at.stage]) + static_cast<std::uint32_t>(row) * kBoxRowBytes +
        chunk_in_line(static_cast<std::uint32_t>(row % 8), static_cast<std::uint32_t>(lane() % 8));
    const std::int32_t behind = columns - lane() % 8 * 8;  // columns from the lane's chunk on
    // Before the first copy: a shuffle behind one waits until that has read its address.
    std::uint32_t rows[kTurns];
#pragma unroll
    for (int turn = 0; turn < kTurns; ++turn)
      rows[turn] = __shfl_sync(0xffffffff, offset, turn * kRows + lane() / 8);
    ring.wait_empty(at);
#pragma unroll
    for (int turn = 0; turn < kTurns; ++turn) {
      const std::uint32_t of_row = rows[turn];
      const std::uint8_t* const source = from + std::uint64_t{of_row} * 16;
#pragma unroll
      for (int box = 0; box < kBoxes; ++box) {
        const bool is_there = of_row != kNoRow && box * kBoxColumns < behind;
        ptx::cp_async_cg_shared_global_16(to + (box * C::kKeys + turn * kRowsOfAll) * kBoxRowBytes,
                                          source + box * kBoxRowBytes, is_there ? 16 : 0);
      }
    }
    ptx::cp_async_mbarrier_arrive_noinc(ring.full(at));
    at.advance();
  }
};

}  // namespace tilewright::tile
