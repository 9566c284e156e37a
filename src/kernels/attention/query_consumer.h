// The same where a row of a tile is a query.
#pragma once

#include "kernels/attention/attention.h"
#include "kernels/attention/consumer.h"
#include "kernels/attention/mask.h"

#include <cstdint>

namespace tilewright::tile {

template <class C>
struct QueryConsumer : AttentionConsumer<C> {
  using Base = AttentionConsumer<C>;
  using Base::index;
  using Base::kKeys;
  using Base::params;
  using typename Base::Scores;
  using Tiles = KeyTiles<kKeys>;

  /// Of a thread: the position of its first row among the keys of the sequence; the other is 8
  /// further.
  struct Rows {
    std::int32_t position, kv_len;
  };

  /// Of a tile whose first row is `first_query`, row i standing at position i + shift.
  __device__ Rows rows_of(std::int32_t first_query, std::int32_t shift, std::int32_t kv_len) const {
    return {
        first_query + this->warp_row() + static_cast<std::int32_t>(threadIdx.x % 32 / 4) + shift,
        kv_len};
  }
  /// The key tiles that this warpgroup sees; without plain ones if every score must be adjusted.
  __device__ Tiles own_tiles(std::int32_t first_query, std::int32_t shift,
                             std::int32_t kv_len) const {
    const std::int32_t first =
        first_query + static_cast<std::int32_t>(index) * kernels::kWarpgroupRows;
    Tiles own(params, kv_len, shift, first, first + kernels::kWarpgroupRows - 1);
    if (params.softcap_scale != 0.0f) own.plain_end = own.plain_begin;
    return own;
  }

  /// Scores of key tile n with softcap and mask. IsPlain: every row sees every key of it, and there
  /// is no softcap.
  template <bool IsPlain>
  __device__ void adjust(Scores& s, const Rows& of, std::int32_t n) const {
    if constexpr (IsPlain) return;
    this->adjust_rows(s, {{params, of.position, of.kv_len}, {params, of.position + 8, of.kv_len}},
                      n);
  }
  /// Behind the last key of a packed sequence lie the values of the next one. Their weights are 0,
  /// but 0 times an infinity is not: in the last tile, which is next in the ring, they are cleared.
  /// All consumers together.
  __device__ void clear_values_behind(std::int32_t kv_len, std::int32_t tiles_end) const {
    const std::int32_t rows = kv_len - (tiles_end - 1) * kKeys;
    if (params.cu_kv == nullptr || rows >= kKeys) return;
    this->clear_values(rows);
  }
};

}  // namespace tilewright::tile
