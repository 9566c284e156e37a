// The consumers' half of K7 where a row of a tile is a query and a head of a group, as in K6
// (forward/paged_consumer.h).
#pragma once

#include "arch/register_index.h"
#include "kernels/attention/forward/paged_mask.h"
#include "kernels/attention/k7/consumer.h"
#include "kernels/attention/k7/paged_operands.h"
#include "kernels/attention/k7/softmax.h"
#include "ptx/fence.h"
#include "tile/quad_transpose.h"
#include "tile/row_end.h"
#include "tile/warp.h"

#include <cstdint>

namespace tilewright::tile {

/// As QueryFp8Consumer. What that calls queries of a tile are rows.
template <class C>
struct PagedFp8Consumer : Fp8AttentionConsumer<C> {
  using Base = Fp8AttentionConsumer<C>;
  using Base::index;
  using Base::kKeys;
  using Base::params;
  using typename Base::Results;
  using typename Base::Scores;
  using typename Base::Tiles;

  /// Of a thread's two rows, the second of which is 8 behind the first.
  struct Positions {
    std::int32_t first, second;
  };

  __device__ std::int32_t query_of(std::int32_t row) const {
    return row >> params.pages.group_shift;
  }

  /// Rows that were gathered were written by the generic proxy: products read them behind a fence.
  /// (Values come from warps that have one of their own.)
  __device__ void wait_k() const {
    Base::wait_k();
    if (params.pages.copies == kernels::PageCopies::kRows) ptx::fence_proxy_async_shared_cta();
  }

  __device__ Positions position_of(std::int32_t first_row, std::int32_t shift) const {
    const std::int32_t row =
        first_row + this->warp_row() + static_cast<std::int32_t>(threadIdx.x % 32 / 4);
    return {query_of(row) + shift, query_of(row + 8) + shift};
  }
  __device__ Tiles own_tiles(const DealtTile& tile, const Tiles& tiles) const {
    const std::int32_t row =
        tile.first_query + static_cast<std::int32_t>(index) * kernels::kWarpgroupRows;
    const std::int32_t first = query_of(row), last = query_of(row + kernels::kWarpgroupRows - 1);
    Tiles own(params, tile.kv_len, tile.kv_len - tile.q_len, first, min(last, tile.q_len - 1));
    if (first >= tile.q_len || own.begin >= own.end) own.begin = own.end = tiles.begin;
    if (params.softcap_scale != 0.0f) own.plain_end = own.plain_begin;
    return own;
  }
  __device__ void adjust(Scores& s, const Positions& at, std::int32_t kv_len, std::int32_t n,
                         const float (&cap_scale)[C::kParts]) const {
    this->adjust_rows(
        s,
        {visible_of_chunk(params, at.first, kv_len), visible_of_chunk(params, at.second, kv_len)},
        n, cap_scale);
  }

  /// Transposed rows have been cleared.
  __device__ void clear_values_behind(std::int32_t, std::int32_t) const {}

  /// Results, times `scale`, of a tile to their queries and heads, 16 bytes a thread, as store_rows
  /// has it.
  template <class Element>
  __device__ void store(const Results& o, const Fp8Softmax& softmax, const DealtTile& tile,
                        float scale) const {
    const std::int32_t lane = threadIdx.x % 32, shift = params.pages.group_shift;
    const std::int32_t batch = params.cu_q == nullptr ? tile.batch : 0;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const std::int32_t row = tile.first_query + this->warp_row() + lane / 4 + 8 * h;
      const std::int32_t query = query_of(row);
      const std::int32_t head = (tile.head << shift) + (row - (query << shift));
      const bool is_inside = query < tile.q_len;
      const RowEnd end(softmax.base[h], NoScale(), quad_sum(softmax.sum[h]),
                       params.sink == nullptr ? nullptr : params.sink + head);
      const float factor = end.factor * scale;
      auto* const at = static_cast<std::uint16_t*>(params.out) + batch * params.out_strides.batch +
                       head * params.out_strides.head +
                       (tile.q_begin + query) * params.out_strides.row;
#pragma unroll
      for (int j = 0; j < C::kHeadDim; j += 32) {
        const std::int32_t column = j + lane % 4 * 8;
        std::uint32_t words[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const float* pair = &o[arch::accumulator_of(h, j / 4 + 2 * i)];
          words[i] = Element::pack(pair[0] * factor, pair[1] * factor);
        }
        transpose_quad(words);
        if (is_inside && column < params.value_dim)
          *reinterpret_cast<uint4*>(at + column) =
              make_uint4(words[0], words[1], words[2], words[3]);
      }
      if (params.lse != nullptr && lane % 4 == 0 && is_inside)
        params.lse[batch * params.lse_batch_stride + head * params.lse_head_stride + tile.q_begin +
                   query] = end.lse;
    }
  }
};

}  // namespace tilewright::tile
