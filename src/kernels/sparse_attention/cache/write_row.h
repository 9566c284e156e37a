// A row of queries or of the cache, by a warp: what cache_write.cu and layer_rows.cu are made of.
#pragma once

#include "kernels/sparse_attention/cache/cache_write.h"
#include "kernels/sparse_attention/cache_row.h"

#include <cstdint>

namespace tilewright::kernels {
namespace {

// x times its inverse root mean square, and the weight if there is one.
__device__ void normalise(float (&x)[tile::kRowElems], const std::uint16_t* weight, float eps,
                          int lane) {
  tile::scale_row(x, tile::inverse_rms(tile::sum_of_squares<32>(x), kKvDims, eps));
  if (weight != nullptr) tile::scale_row(x, weight + lane * tile::kRowElems);
}

__device__ void rotate(float (&x)[tile::kRowElems], const CacheWriteParams& params,
                       std::int32_t position, int lane) {
  if (lane < tile::kRopeLane) return;
  const float* const row = params.rope + std::int64_t{position} * kKvRopeDims;
  tile::rotate_pairs(x, row, (lane - tile::kRopeLane) * (tile::kRowElems / 2));
}

__device__ void write_query(const CacheWriteParams& params, std::int32_t token, std::int32_t head,
                            int lane) {
  const std::int32_t position = params.positions[token];
  const std::uint16_t* const from = params.q + token * params.q_token_stride +
                                    head * params.q_head_stride + lane * tile::kRowElems;
  std::uint16_t* const to = params.q_out + token * params.q_out_token_stride +
                            head * params.q_out_head_stride + lane * tile::kRowElems;
  float x[tile::kRowElems];
  tile::to_f32(x, tile::load_row_chunk(from));
  if (position >= 0 && position < params.num_positions) {
    normalise(x, nullptr, params.eps, lane);
    rotate(x, params, position, lane);
  } else {
    const float none = position < 0 ? 0.0f : __uint_as_float(0x7fc00000u);
#pragma unroll
    for (float& value : x) value = none;
  }
  tile::store_row_chunk(to, tile::to_bf16(x));
}

__device__ void load_kv(float (&x)[tile::kRowElems], const CacheWriteParams& params,
                        std::int32_t token, int lane) {
  const std::int64_t at = token * params.kv_stride + lane * tile::kRowElems;
  if (params.is_kv_f32 == 0) {
    return tile::to_f32(x, tile::load_row_chunk(static_cast<const std::uint16_t*>(params.kv) + at));
  }
  const auto* const from =
      reinterpret_cast<const float4*>(static_cast<const float*>(params.kv) + at);
#pragma unroll
  for (int i = 0; i < tile::kRowElems / 4; ++i) {
    const float4 four = from[i];
    x[4 * i] = four.x, x[4 * i + 1] = four.y, x[4 * i + 2] = four.z, x[4 * i + 3] = four.w;
  }
}

__device__ void write_cache_row(const CacheWriteParams& params, std::int32_t token, int lane) {
  const std::int32_t position = params.positions[token], slot = params.slots[token];
  if (position < 0 || position >= params.num_positions) return;
  float x[tile::kRowElems];
  load_kv(x, params, token, lane);
  normalise(x, params.kv_weight, params.eps, lane);
  rotate(x, params, position, lane);
  const tile::EncodedRow row(params.cache.format, tile::to_bf16(x));
  if (tile::has_row(params.cache, slot)) row.store(tile::KvAddress(params.cache, slot), lane);
  if (params.kv_out == nullptr) return;
  tile::store_row_chunk(params.kv_out + token * params.kv_out_stride + lane * tile::kRowElems,
                        row.decoded(lane));
}

// Rows of the cache first, if there are any, then queries.
__device__ void write_row(const CacheWriteParams& params, std::int32_t row, int lane) {
  if (params.kv != nullptr) {
    if (row < params.tokens) return write_cache_row(params, row, lane);
    row -= params.tokens;
  }
  if (row >= params.tokens * params.heads) return;
  const std::int32_t token = row / params.heads;
  write_query(params, token, row - token * params.heads, lane);
}

}  // namespace
}  // namespace tilewright::kernels
