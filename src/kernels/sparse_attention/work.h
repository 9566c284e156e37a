// What the kernels over chosen rows of paged caches have in common: a query's lists, and where a
// row lies.
#pragma once

#include "kernels/sparse_attention/decode.h"

#include <cstdint>

namespace tilewright::tile {

/// Entries of a list that count.
__device__ inline std::int32_t sparse_length(const kernels::SparseKeys& keys, std::int32_t batch,
                                             std::int32_t row) {
  if (keys.lengths == nullptr) return keys.topk;
  const std::int32_t length = keys.lengths[std::int64_t{batch} * keys.length_stride_batch +
                                           std::int64_t{row} * keys.length_stride_query];
  return min(max(length, 0), keys.topk);
}

__device__ constexpr std::int32_t sparse_blocks(std::int32_t length) {
  return (length + kernels::kSparseBlockKeys - 1) / kernels::kSparseBlockKeys;
}

/// A block of a query: `count` entries of list `list` from `first` on.
struct SparseBlock {
  std::int32_t list, first, count;
};

/// Block `number` of two lists, one behind the other. No length by an index: they are registers.
__device__ inline SparseBlock sparse_block(const std::int32_t (&lengths)[2], std::int32_t number) {
  const std::int32_t in_first = sparse_blocks(lengths[0]);
  const std::int32_t list = number < in_first ? 0 : 1;
  const std::int32_t first = (number - (list == 0 ? 0 : in_first)) * kernels::kSparseBlockKeys;
  return {list, first,
          min((list == 0 ? lengths[0] : lengths[1]) - first, kernels::kSparseBlockKeys)};
}

/// A query and its two lists.
struct SparseQuery {
  std::int32_t index, batch, row;  ///< index = batch * q_len + row
  std::int32_t lengths[2];

  __device__ SparseQuery(const kernels::SparseDecodeParams& params, std::int32_t query)
      : index(query),
        batch(query / params.q_len),
        row(query % params.q_len),
        lengths{sparse_length(params.keys[0], batch, row),
                sparse_length(params.keys[1], batch, row)} {}

  __device__ std::int32_t num_blocks() const {
    return sparse_blocks(lengths[0]) + sparse_blocks(lengths[1]);
  }
  __device__ SparseBlock block(std::int32_t number) const { return sparse_block(lengths, number); }
  __device__ std::int64_t offset(const kernels::SparseStrides& strides, std::int32_t head) const {
    return batch * strides.batch + row * strides.query + head * strides.head;
  }
};

/// Where a row of a cache begins. `row` is one that exists.
struct SparseRow {
  const std::uint8_t* page;
  std::int32_t slot;

  __device__ SparseRow(const kernels::SparseKeys& keys, std::int32_t row) {
    const auto number = keys.page_divisor.divide(static_cast<std::uint32_t>(row));
    slot = row - static_cast<std::int32_t>(number) * keys.page_size;
    page = keys.pages + static_cast<std::int64_t>(number) * keys.page_stride;
  }
  template <KvFormat Format>
  __device__ const std::uint8_t* data() const {
    return page + slot * kv_data_bytes(Format);
  }
  template <KvFormat Format>
  __device__ const std::uint8_t* scales(const kernels::SparseKeys& keys) const {
    if constexpr (Format == KvFormat::kFp8Mla) return data<Format>() + kKvFp8MlaScales;
    return page + std::int64_t{keys.page_size} * kv_data_bytes(Format) +
           slot * kv_scale_bytes(Format);
  }
};

}  // namespace tilewright::tile
