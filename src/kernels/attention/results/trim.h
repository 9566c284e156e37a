// Contract of what takes results out of rows that are wider than a head.
#pragma once

#include "kernels/attention/attention.h"

#include <cstdint>

namespace tilewright::kernels {

/// out[b,i,h,c] = padded[b,i,h,c] for c < head_dim, elements of 2 bytes. Of packed sequences those
/// rows that cu_q has, and no others.
///
/// Entry attention_trim; a CTA for kTrimRows queries of a sequence: batch * row_tiles CTAs.
struct AttentionTrimParams {
  const void* padded;            ///< [batch, q_len, heads, width], packed [rows, heads, width]
  void* out;                     ///< rows 16-byte aligned
  const std::int32_t* cu_q;      ///< [batch + 1], or null
  AttentionStrides strides;      ///< of out
  std::int32_t heads, q_len;     ///< q_len of the longest sequence
  std::int32_t head_dim, width;  ///< multiples of 8
  std::int32_t row_tiles;        ///< of the longest sequence: ceil(q_len / kTrimRows)
};

inline constexpr int kTrimRows = 16, kTrimThreads = 256;

}  // namespace tilewright::kernels
