// The consumers' half of K7 where a row of a tile is a query: which keys it sees, and where its
// results go.
#pragma once

#include "kernels/attention/barriers.h"
#include "kernels/attention/epilogue.h"
#include "kernels/attention/k7/consumer.h"
#include "kernels/attention/k7/softmax.h"
#include "ptx/bulk_tensor_copy.h"
#include "ptx/fence.h"
#include "ptx/warp_roles.h"

#include <cstdint>

namespace tilewright::tile {

template <class C>
struct QueryFp8Consumer : Fp8AttentionConsumer<C> {
  using Base = Fp8AttentionConsumer<C>;
  using Base::index;
  using Base::kHeadDim;
  using Base::kKeys;
  using Base::params;
  using typename Base::Results;
  using typename Base::Scores;
  using typename Base::Tiles;
  using Positions = std::int32_t;  ///< of a thread's rows: of the first; the other is 8 further

  std::uint8_t* staging;  ///< of this warpgroup's results

  /// Among the keys. Row i stands at position i + shift.
  __device__ Positions position_of(std::int32_t first_query, std::int32_t shift) const {
    return first_query + this->warp_row() + static_cast<std::int32_t>(threadIdx.x % 32 / 4) + shift;
  }
  /// The key tiles that this warpgroup's rows of `tile` see, which are among `tiles`; without plain
  /// ones if every score must be adjusted.
  __device__ Tiles own_tiles(const DealtTile& tile, const Tiles& tiles) const {
    const std::int32_t first =
        tile.first_query + static_cast<std::int32_t>(index) * kernels::kWarpgroupRows;
    Tiles own(params, tile.kv_len, tile.kv_len - tile.q_len, first,
              first + kernels::kWarpgroupRows - 1);
    own.end = min(own.end, tiles.end);
    if (first >= tile.q_len || own.begin >= own.end) own.begin = own.end = tiles.begin;
    if (params.softcap_scale != 0.0f) own.plain_end = own.plain_begin;
    return own;
  }
  __device__ void adjust(Scores& s, Positions at, std::int32_t kv_len, std::int32_t n,
                         const float (&cap_scale)[C::kParts]) const {
    this->adjust_rows(s, {{params, at, kv_len}, {params, at + 8, kv_len}}, n, cap_scale);
  }

  /// Behind the last key of a packed sequence lie, from the next 16 on, the values of the next one.
  /// Their weights are 0, but 0 times a NaN is not: in the last tile, which is next in the ring,
  /// they are cleared. All consumers together. (Transposed rows have been cleared.)
  __device__ void clear_values_behind(std::int32_t kv_len, std::int32_t tiles_end) const {
    const std::int32_t first = (kv_len - (tiles_end - 1) * kKeys + 15) / 16 * 16;
    if (C::kIsRows || params.cu_kv == nullptr || first >= kKeys) return;
    this->wait_v();
    const std::uint32_t start = ptx::shared_address(this->shared.v[this->v_at.stage]);
    for (std::int32_t column = first; column < kKeys; column += 16) {
      for (std::int32_t row = static_cast<std::int32_t>(index * 128 + threadIdx.x % 128);
           row < kHeadDim; row += C::kConsumers * 128) {
        const std::uint32_t at =
            arch::swizzle_address(swizzle_of_span(C::kValueBox),
                                  start + column / C::kValueBox * (kHeadDim * C::kValueBox) +
                                      row * C::kValueBox + column % C::kValueBox);
        *static_cast<uint4*>(__cvta_shared_to_generic(at)) = make_uint4(0, 0, 0, 0);
      }
    }
    ptx::fence_proxy_async_shared_cta();
    ptx::bar_sync<kConsumersBarrier, C::kConsumers * 128>();
  }

  /// Results, times `scale`, of a tile.
  template <class Element>
  __device__ void store(const Results& o, const Fp8Softmax& softmax, const DealtTile& tile,
                        float scale) const {
    const float* sink = params.sink == nullptr ? nullptr : params.sink + tile.head;
    const AttentionSequence sequence = {tile.q_begin, tile.q_len, 0, tile.kv_len};
    const float max[2] = {softmax.base[0], softmax.base[1]};  // copies: other code without
    const float sum[2] = {softmax.sum[0], softmax.sum[1]};
    RowResult rows = finish_rows(max, sum, 1.0f, sink);
    rows.factor[0] *= scale;
    rows.factor[1] *= scale;
    const std::int32_t query = tile.first_query + this->warp_row();
    // A tensor copy writes whole boxes, beyond the end of a packed sequence as well.
    if (C::kVariant.stages_out && params.cu_q == nullptr) {
      if (threadIdx.x % 128 == 0) ptx::cp_async_bulk_wait_group_read<0>();
      ptx::bar_sync<128>(kStagingBarrier + index);
      store_boxes<Element, kHeadDim>(params, staging, o, rows, kStagingBarrier + index,
                                     tile.first_query + static_cast<std::int32_t>(index) * 64,
                                     tile.head, tile.batch);
      store_lse(params, sequence, rows, tile.batch, tile.head, query);
    } else {
      store_rows<Element, kHeadDim>(params, sequence, o, rows, tile.batch, tile.head, query);
    }
  }
};

}  // namespace tilewright::tile
