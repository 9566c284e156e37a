// Contract of the merge of partial results of attention.
#pragma once

#include "kernels/attention/attention.h"

#include <cstdint>

namespace tilewright::kernels {

/// How elements are stored.
enum class MergeType : std::int32_t { kF32, kBf16, kF16 };

/// out = sum_s e^(lse_s - L) part_s / (1 + e^(sink - L)), L = ln sum_s e^lse_s; of parts whose lse
/// is not infinite. Part s of a tensor begins s * part_stride elements behind it; if `other_out` is
/// not null, part 1 is there.
///
/// Entry attention_merge; a thread for 8 columns of a row of a head:
/// ceil(batch * rows * heads * head_dim / 8 / kMergeThreads) CTAs.
struct AttentionMergeParams {
  const void *part_out, *other_out;  ///< rows 16-byte aligned
  const float *part_lse, *other_lse;
  void* out;
  float* lse;         ///< or null
  const float* sink;  ///< [heads], or null
  std::int64_t part_stride, lse_part_stride;
  AttentionStrides part_strides, out_strides, lse_part_strides, lse_strides;
  AttentionStrides other_strides, lse_other_strides;
  std::int64_t num_chunks;  ///< of 8 columns, in all
  std::int32_t parts, rows, heads, head_dim;
  MergeType part_type, out_type;
};

inline constexpr int kMergeThreads = 256;

}  // namespace tilewright::kernels
