// A query of the indexer, by eight lanes: what indexer_query.cu and layer_rows.cu are made of.
#pragma once

#include "kernels/sparse_attention/cache_row.h"
#include "kernels/sparse_attention/index_row.h"
#include "kernels/sparse_attention/indexer/indexer_query.h"

#include <cstdint>

namespace tilewright::kernels {
namespace {

struct IndexQuery {
  std::int32_t token, head;
  bool is_there;  // a row of the call
};

__device__ float load_weight(const IndexerQueryParams& params, const IndexQuery& query) {
  const std::int64_t at = query.token * params.weights_stride + query.head;
  if (params.is_weights_f32 != 0) return static_cast<const float*>(params.weights)[at];
  const std::uint32_t half = static_cast<const std::uint16_t*>(params.weights)[at];
  return __uint_as_float(half << 16);
}

// The query, rotated and rounded; zeros where there is none.
__device__ tile::IndexChunk load_query(const IndexerQueryParams& params, const IndexQuery& query,
                                       std::int32_t position, int lane) {
  tile::IndexChunk chunk = {};
  if (position < 0) return chunk;
  chunk = tile::load_row_chunk(params.q + query.token * params.q_token_stride +
                               query.head * params.q_head_stride + lane * tile::kRowElems);
  const int pair = lane * (tile::kRowElems / 2) - (kIndexDims - kIndexRopeDims) / 2;
  if (pair < 0) return chunk;
  float x[tile::kRowElems];
  tile::to_f32(x, chunk);
  tile::rotate_pairs(x, params.rope + std::int64_t{position} * kIndexRopeDims, pair);
  return tile::to_bf16(x);
}

// Stores this lane's codes; what the query's weight is multiplied by.
__device__ float store_codes(const IndexerQueryParams& params, const tile::IndexChunk& chunk,
                             std::int64_t row, int lane, bool is_stored) {
  if (params.format == IndexFormat::kFp8) {
    const tile::IndexFp8Row codes(chunk);
    if (is_stored) reinterpret_cast<uint4*>(params.codes + row * kIndexDims)[lane] = codes.codes;
    return codes.scale;
  }
  const tile::IndexMxfp4Row codes(chunk);
  if (is_stored) {
    reinterpret_cast<uint2*>(params.codes + row * (kIndexDims / 2))[lane] = codes.codes;
    if (lane % 2 == 0)
      params.scales[row * kIndexScaleBytes + lane / 2] = static_cast<std::uint8_t>(codes.scale);
  }
  return 1;
}

// Row `row` of [tokens, heads].
__device__ IndexQuery index_query(const IndexerQueryParams& params, std::int64_t row) {
  IndexQuery query = {};
  query.token = static_cast<std::int32_t>(row / params.heads);
  query.head = static_cast<std::int32_t>(row) - query.token * params.heads;
  query.is_there = query.token < params.tokens;
  return query;
}

// By eight lanes. All threads of the warp.
__device__ void quantize_query(const IndexerQueryParams& params, const IndexQuery& query,
                               std::int64_t row, int lane) {
  std::int32_t position = query.is_there ? params.positions[query.token] : -1;
  if (position >= params.num_positions) position = -1;
  const tile::IndexChunk chunk =
      tile::transform_index_row(load_query(params, query, position, lane));
  const float scale = store_codes(params, chunk, row, lane, query.is_there);
  if (lane != 0 || !query.is_there) return;
  const float weight = __fmul_rn(load_weight(params, query), params.factor);
  params.weights_out[row] = position < 0 ? 0.0f : __fmul_rn(weight, scale);
}

}  // namespace
}  // namespace tilewright::kernels
