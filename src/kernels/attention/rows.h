// Where the rows of q, k, v and out lie in global memory, and loops over their 16-byte chunks.
#pragma once

#include "kernels/attention/attention.h"
#include "tile/element.h"
#include "tile/element_chunk.h"
#include "tile/row_end.h"

#include <cstdint>

namespace tilewright::tile {

inline constexpr int kChunkElems = 8;  ///< 16 bytes: what a thread loads or stores at once

/// Offset of a row, in elements.
__device__ inline std::int64_t row_offset(const kernels::AttentionStrides& strides,
                                          std::int32_t batch, std::int32_t row, std::int32_t head) {
  return batch * strides.batch + row * strides.row + head * strides.head;
}
__device__ inline const std::uint16_t* find_row(const void* base,
                                                const kernels::AttentionStrides& strides,
                                                std::int32_t batch, std::int32_t row,
                                                std::int32_t head) {
  return static_cast<const std::uint16_t*>(base) + row_offset(strides, batch, row, head);
}
__device__ inline std::uint16_t* find_row(void* base, const kernels::AttentionStrides& strides,
                                          std::int32_t batch, std::int32_t row, std::int32_t head) {
  return static_cast<std::uint16_t*>(base) + row_offset(strides, batch, row, head);
}

/// Chunk `index` of a row, or of a row of a tile in shared memory.
__device__ inline uint4 load_chunk(const std::uint16_t* row, std::uint32_t index) {
  return *reinterpret_cast<const uint4*>(row + index * kChunkElems);
}
__device__ inline void store_chunk(std::uint16_t* row, std::uint32_t index, const uint4& chunk) {
  *reinterpret_cast<uint4*>(row + index * kChunkElems) = chunk;
}

/// sum += a . b of one chunk.
template <class Element>
__device__ float multiply_chunk(const float (&a)[kChunkElems], const uint4& b, float sum) {
  float x[kChunkElems];
  unpack_chunk<Element>(x, b);
#pragma unroll
  for (int i = 0; i < kChunkElems; ++i) sum = fmaf(a[i], x[i], sum);
  return sum;
}

/// lse of a query, if it is wanted: `max` of its scores in units of log2, `sum` relative to it.
__device__ inline void store_row_lse(const kernels::AttentionParams& params, float max, float sum,
                                     std::int32_t batch, std::int32_t head, std::int32_t query) {
  if (params.lse == nullptr) return;
  float* const head_lse =
      params.lse + batch * params.lse_batch_stride + head * params.lse_head_stride;
  head_lse[query] = max == -INFINITY ? -INFINITY : natural_lse(max, sum);
}

}  // namespace tilewright::tile
