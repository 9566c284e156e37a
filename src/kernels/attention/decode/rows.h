// Rows of a decode tile: which query and head each is, which keys it sees, where its results go.
#pragma once

#include "kernels/attention/decode/decode.h"
#include "kernels/attention/decode/schedule.h"

#include <cstdint>
#include <type_traits>

namespace tilewright::tile {

/// Row `row` of a (sequence, KV head).
struct DecodeRow {
  std::int32_t query, head;
  bool exists;

  __device__ DecodeRow(const kernels::DecodeParams& p, std::int32_t kv_head, std::int32_t row)
      : query(static_cast<std::int32_t>(p.group_divisor.divide(static_cast<std::uint32_t>(row)))),
        head(kv_head * p.group + row - query * p.group),
        exists(query < p.q_len) {}

  __device__ std::int64_t offset(const kernels::DecodeStrides& s, std::int32_t batch_idx) const {
    return batch_idx * s.batch + query * s.row + head * s.head;
  }
  __device__ std::int64_t lse_offset(const kernels::DecodeParams& p, std::int32_t batch_idx) const {
    return (std::int64_t{batch_idx} * p.heads + head) * p.q_len + query;
  }
};

/// Does a row have element `dim`?
template <class Params>
__device__ bool decode_has_dim(const Params& p, std::uint32_t dim) {
  if constexpr (std::is_same_v<Params, kernels::DecodeAnyParams>)
    return dim < static_cast<std::uint32_t>(p.head_dim);
  return true;
}

/// Keys [begin, end) that query `query` of a sequence sees.
struct DecodeVisible {
  std::int32_t begin, end;

  template <class Params>
  __device__ DecodeVisible(const Params& p, std::int32_t length, std::int32_t query) {
    const std::int32_t position = length - p.q_len + query;
    begin = max(position - p.window_left, 0);
    end = p.is_causal != 0 ? min(position + 1, length) : length;
    if constexpr (kDecodeHasChunks<Params>) {
      const std::int32_t first = decode_chunk_begin(p, position);
      const bool is_before = position < 0 && p.chunk < kernels::kDecodeUnbounded;  // all chunks
      begin = max(begin, first), end = min(end, is_before ? 0 : first + p.chunk);
    }
  }
};

__device__ inline float decode_value_descale(const kernels::DecodeParams& p, std::int32_t batch_idx,
                                             std::int32_t kv_head) {
  if (p.descale.v == nullptr) return 1.0f;
  return p.descale.v[batch_idx * p.descale.batch + kv_head * p.descale.head];
}

}  // namespace tilewright::tile
