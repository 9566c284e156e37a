// Contract of the indexer's query path: from projections to codes.
#pragma once

#include "formats/index_page.h"

#include <cstdint>

namespace tilewright::kernels {

/// codes, scales = quantise(bf16(H bf16(rotate(q[t,h,:], positions[t])) * 128^-0.5))
/// weights_out   = weights[t,h] * factor, times the query's scale for e4m3
///
/// The last 64 of 128 are rotated, pairs (2i, 2i+1), in fp32. Codes are those of
/// formats/block_scale.h: fp8_1x128_ue8m0 or mxfp4_ceil. A position < 0, or one beyond the table,
/// stands for no token: codes and weights of zero.
struct IndexerQueryParams {
  const std::uint16_t* q;         ///< bf16 [tokens, heads, 128], 16-byte aligned rows
  const void* weights;            ///< [tokens, heads] bf16 or fp32
  const std::int32_t* positions;  ///< [tokens]
  const float* rope;              ///< [num_positions, 64]: 32 cosines, 32 sines
  std::uint8_t* codes;            ///< [tokens, heads, 128 or 64 bytes]
  std::uint8_t* scales;           ///< MXFP4: ue8m0 [tokens, heads, 4]
  float* weights_out;             ///< [tokens, heads]
  std::int64_t q_token_stride, q_head_stride, weights_stride;  ///< elements
  std::int32_t tokens, heads, num_positions;
  std::int32_t is_weights_f32;
  IndexFormat format;
  float factor;
};

/// Entry indexer_query; eight lanes a query, grid: ceil(tokens * heads / kIndexerQueryRows).
inline constexpr int kIndexerQueryThreads = 256;
inline constexpr int kIndexerQueryRows = kIndexerQueryThreads / 8;

}  // namespace tilewright::kernels
