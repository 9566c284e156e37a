// The consumers' half of K6 where a row of a tile is a query and a head of a group: heads that
// share keys share a tile, so that a sequence that decodes costs one tile for all of them.
#pragma once

#include "arch/register_index.h"
#include "kernels/attention/consumer.h"
#include "kernels/attention/forward/paged_mask.h"
#include "kernels/attention/forward/pages.h"
#include "ptx/fence.h"
#include "tile/dealt_tiles.h"
#include "tile/online_softmax.h"
#include "tile/quad_transpose.h"
#include "tile/row_end.h"
#include "tile/warp.h"

#include <cstdint>

namespace tilewright::tile {

/// As QueryConsumer. What that calls queries of a tile are rows.
template <class C>
struct PagedConsumer : AttentionConsumer<C> {
  using Base = AttentionConsumer<C>;
  using Base::index;
  using Base::kKeys;
  using Base::params;
  using typename Base::Results;
  using typename Base::Scores;
  using Tiles = ChunkTiles<kKeys>;
  static constexpr bool kWaitsForBoth = C::kGathers, kMayIdle = true;

  /// Positions of a thread's two rows, the second of which is 8 behind the first.
  struct Rows {
    std::int32_t first, second, kv_len;
  };

  __device__ const kernels::AttentionPagedParams& paged_params() const {
    return static_cast<const kernels::AttentionPagedParams&>(params);
  }
  __device__ const kernels::AttentionPages& pages() const { return paged_params().pages; }
  __device__ std::int32_t query_of(std::int32_t row) const { return row >> pages().group_shift; }

  /// Rows that were gathered were written by the generic proxy: products read them behind a fence.
  __device__ void wait_k() const {
    Base::wait_k();
    if constexpr (C::kGathers) ptx::fence_proxy_async_shared_cta();
  }
  __device__ void wait_v() const {
    Base::wait_v();
    if constexpr (C::kGathers) ptx::fence_proxy_async_shared_cta();
  }
  /// Before the products of a step: no fence between them, and one for both.
  __device__ void wait_step() const {
    if constexpr (C::kGathers) Base::wait_v();
    wait_k();
  }
  /// Of a sequence that decodes the rows of all heads fill a part of a tile.
  __device__ bool is_idle(const DealtTile& tile) const {
    const std::int32_t first = static_cast<std::int32_t>(index) * kernels::kWarpgroupRows;
    return query_of(tile.first_query + first) >= tile.q_len;
  }

  __device__ Rows rows_of(std::int32_t first_row, std::int32_t shift, std::int32_t kv_len) const {
    const std::int32_t row =
        first_row + this->warp_row() + static_cast<std::int32_t>(threadIdx.x % 32 / 4);
    return {query_of(row) + shift, query_of(row + 8) + shift, kv_len};
  }
  __device__ Tiles own_tiles(std::int32_t first_row, std::int32_t shift,
                             std::int32_t kv_len) const {
    const std::int32_t first =
        first_row + static_cast<std::int32_t>(index) * kernels::kWarpgroupRows;
    Tiles own(paged_params(), kv_len, shift, query_of(first),
              query_of(first + kernels::kWarpgroupRows - 1));
    if (params.softcap_scale != 0.0f) own.plain_end = own.plain_begin;
    return own;
  }
  template <bool IsPlain>
  __device__ void adjust(Scores& s, const Rows& of, std::int32_t n) const {
    if constexpr (IsPlain) return;
    this->adjust_rows(s,
                      {visible_of_chunk(paged_params(), of.first, of.kv_len),
                       visible_of_chunk(paged_params(), of.second, of.kv_len)},
                      n);
  }
  __device__ void adjust_last(Scores& s, const Rows& of, std::int32_t n) const {
    adjust<false>(s, of, n);
  }
  /// Behind the last key a page may hold anything.
  __device__ void clear_values_behind(std::int32_t kv_len, std::int32_t tiles_end) const {
    const std::int32_t rows = kv_len - (tiles_end - 1) * kKeys;
    if (rows < kKeys) this->clear_values(rows);
  }

  /// Results of a tile to their queries and heads, 16 bytes a thread, as store_rows has it.
  __device__ void finish(const Results& o, const OnlineSoftmax& softmax,
                         const DealtTile& tile) const {
    constexpr int kColumns = C::kValueDim;
    const std::int32_t lane = threadIdx.x % 32;
    const std::int32_t batch = params.cu_q == nullptr ? tile.batch : 0;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const std::int32_t row = tile.first_query + this->warp_row() + lane / 4 + 8 * h;
      const std::int32_t query = query_of(row), shift = pages().group_shift;
      const std::int32_t head = (tile.head << shift) + (row - (query << shift));
      const bool is_inside = query < tile.q_len;
      const RowEnd end(softmax.max[h], params.scale_log2, quad_sum(softmax.sum[h]),
                       params.sink == nullptr ? nullptr : params.sink + head);
      std::uint16_t* const at = static_cast<std::uint16_t*>(params.out) +
                                batch * params.out_strides.batch + head * params.out_strides.head +
                                (tile.q_begin + query) * params.out_strides.row + lane % 4 * 8;
#pragma unroll
      for (int j = 0; j < kColumns / 8; j += 4) {
        std::uint32_t words[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const float* pair = &o[arch::accumulator_of(h, 2 * (j + i))];
          words[i] = C::Element::pack(pair[0] * end.factor, pair[1] * end.factor);
        }
        transpose_quad(words);
        if (is_inside && lane % 4 * 8 + j * 8 < params.value_dim)
          *reinterpret_cast<uint4*>(at + j * 8) =
              make_uint4(words[0], words[1], words[2], words[3]);
      }
      if (params.lse != nullptr && lane % 4 == 0 && is_inside)
        params.lse[batch * params.lse_batch_stride + head * params.lse_head_stride + tile.q_begin +
                   query] = end.lse;
    }
  }
};

}  // namespace tilewright::tile
