// Contract of sampling: from rows of logits to the next tokens. And of the gathering of those rows
// of a step that need logits.
#pragma once

#include <cstdint>

namespace tilewright::kernels {

/// ids[r] = a token of softmax(logits[r,:] / temperature), cut as tilewright/sample.h says; -1 of a
/// row that takes no part, or that has no finite largest logit.
///
/// Column c of a row lies in part c / part_cols, at column c % part_cols of it.
struct SampleParams {
  const void* logits;        ///< parts of [rows, part_cols] bf16 or f32
  const float* temperature;  ///< [rows], as all that follows; null: 0
  const std::int32_t* top_k;
  const float *top_p, *min_p;
  const std::uint64_t* seeds;     ///< [rows, 2]: the seed, what makes sequences differ; null: 0
  const std::int32_t* positions;  ///< < 0: takes no part; null: 0
  std::int32_t* ids;
  float* log_probs;                      ///< or null
  std::int64_t row_stride, part_stride;  ///< elements; rows begin at multiples of 16 bytes
  std::int32_t vocab, part_cols, slice;  ///< part_cols and slice: multiples of 4
  bool is_f32;                           ///< logits, else bf16
};

inline constexpr int kSampleMaxThreads = 384;
inline constexpr int kSampleMaxCluster = 8;
inline constexpr int kSampleMaxSlice = 40960;  ///< 160 KB
/// Temperatures below it are 0.
inline constexpr float kSampleLeastTemperature = 0x1p-100f;

/// Entry sample_rows; grid (cluster, rows), CTAs of a cluster (cluster, 1, 1) share a row: CTA i
/// has the columns [i * slice, (i + 1) * slice). Block: a multiple of 32, 32 .. kSampleMaxThreads.
/// Dynamic shared memory: 4 * slice bytes.

/// out[r,:] = x[index[r],:], zeros for an index outside of x.
struct GatherRowsParams {
  const std::uint16_t* x;     ///< [x_rows, cols] of 16 bits
  const std::int32_t* index;  ///< [rows]
  std::uint16_t* out;         ///< [rows, cols]
  std::int32_t x_rows, cols;  ///< cols: a multiple of 8
};

inline constexpr int kGatherRowsThreads = 256;
/// Entry gather_rows; grid (rows).

}  // namespace tilewright::kernels
