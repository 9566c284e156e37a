// The consumers' half of K6 where a row of a tile is a query: the last keys under a causal mask,
// and where results go.
//
// With cuts_diagonal the first warpgroup of two sees the first half of a tile's last keys and
// nothing of the second:
//
//                 keys 0-63 | 64-127
//   rows 0-63     to itself | nothing: not computed, a quarter of the products of these keys
//   rows 64-127   all       | to itself
#pragma once

#include "arch/register_index.h"
#include "kernels/attention/barriers.h"
#include "kernels/attention/epilogue.h"
#include "kernels/attention/query_consumer.h"
#include "ptx/bulk_tensor_copy.h"
#include "ptx/warp_roles.h"
#include "tile/dealt_tiles.h"
#include "tile/online_softmax.h"

#include <cstdint>

namespace tilewright::tile {

/// As hide_keys where no row begins among the keys: `ends` of a thread's two rows. Half of the
/// instructions.
template <int Count>
__device__ void hide_keys_behind(float (&s)[Count], const std::int32_t (&ends)[2],
                                 std::int32_t start) {
  const std::int32_t column =
      start + static_cast<std::int32_t>(arch::accumulator_first_column(threadIdx.x));
  const std::int32_t limits[2] = {ends[0] - column, ends[1] - column};
#pragma unroll
  for (int i = 0; i < Count; ++i)
    if (arch::accumulator_column(i) >= limits[arch::accumulator_row(i)]) s[i] = -INFINITY;
}

template <class C>
struct WholeConsumer : QueryConsumer<C> {
  using Base = QueryConsumer<C>;
  static constexpr bool kWaitsForBoth = false, kMayIdle = false;  // see PagedConsumer
  using Base::index;
  using Base::kKeys;
  using Base::kValueDim;
  using Base::params;
  using typename Base::Results;
  using typename Base::Rows;
  using typename Base::Scores;
  using typename Base::Tiles;

  std::uint8_t* staging;  ///< of this warpgroup's results

  __device__ void wait_step() const { this->wait_k(); }
  /// Whether this warpgroup sees nothing of the second half of a tile's last keys.
  __device__ bool sees_half(const DealtTile& tile, const Tiles& tiles) const {
    const std::int32_t last = tile.first_query +
                              static_cast<std::int32_t>(index) * kernels::kWarpgroupRows +
                              kernels::kWarpgroupRows - 1 + tile.kv_len - tile.q_len;
    return VisibleKeys(params, last, tile.kv_len).end <= (tiles.end - 1) * kKeys + kKeys / 2;
  }
  /// Scores of the first half of the keys that are next in the ring; the others are -inf. Issued
  /// and waited for: what is in flight must not differ between warpgroups where their paths meet.
  __device__ void compute_half_scores(Scores& s) {
    auto& half = reinterpret_cast<float(&)[kKeys / 4]>(s);
    this->template issue_scores<kKeys / 2>(half);
    this->template await_scores<0>(half);
#pragma unroll
    for (int i = kKeys / 4; i < kKeys / 2; ++i) s[i] = -INFINITY;
  }
  /// Those of a tile's last keys, adjusted. Without a window no row begins among them.
  __device__ void adjust_last(Scores& s, const Rows& rows, std::int32_t n) const {
    if (C::kVariant.cuts_diagonal && params.softcap_scale == 0.0f &&
        params.window_left == kernels::kUnboundedWindow) {
      const VisibleKeys first(params, rows.position, rows.kv_len),
          second(params, rows.position + 8, rows.kv_len);
      hide_keys_behind(s, {first.end, second.end}, n * kKeys);
    } else {
      this->template adjust<false>(s, rows, n);
    }
  }

  __device__ void finish(const Results& o, const OnlineSoftmax& softmax,
                         const DealtTile& tile) const {
    const float* sink = params.sink == nullptr ? nullptr : params.sink + tile.head;
    const AttentionSequence sequence = {tile.q_begin, tile.q_len, 0, tile.kv_len};
    const RowResult rows = finish_rows(softmax.max, softmax.sum, params.scale_log2, sink);
    const std::int32_t query = tile.first_query + this->warp_row();
    // A tensor copy writes whole boxes, beyond the end of a packed sequence as well.
    if (C::kVariant.stages_out && params.cu_q == nullptr) {
      const std::uint32_t barrier = kStagingBarrier + index;
      if (threadIdx.x % 128 == 0) ptx::cp_async_bulk_wait_group_read<0>();
      ptx::bar_sync<128>(barrier);
      store_boxes<typename C::Element, kValueDim>(
          params, staging, o, rows, barrier,
          tile.first_query + static_cast<std::int32_t>(index) * 64, tile.head, tile.batch);
      store_lse(params, sequence, rows, tile.batch, tile.head, query);
    } else {
      store_rows<typename C::Element, kValueDim, C::kVariant.clips>(params, sequence, o, rows,
                                                                    tile.batch, tile.head, query);
    }
  }
};

}  // namespace tilewright::tile
