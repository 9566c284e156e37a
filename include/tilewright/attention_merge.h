// Partial results of attention over parts of the keys, merged into the result over all of them.
#pragma once

#include "tilewright/device.h"
#include "tilewright/format.h"
#include "tilewright/plan.h"
#include "tilewright/tensor.h"

#include <cstdint>
#include <memory>
#include <optional>

namespace tilewright {

/// out[b,i,h,:] = sum_s e^(lse_s - L) part_s[b,i,h,:] / (1 + e^(sink[h] - L)),
/// L[b,i,h] = ln sum_s e^lse_s[b,i,h], which is the lse of the result, without the sink
///
/// Each part is attention of the same queries over keys of its own, without a sink: splits of one
/// sequence, the keys of another rank, or a prefix that many sequences share and what follows it
/// (cascade). Then out is attention over all keys.
///
/// Empty    a part whose lse is infinite, of either sign, saw no key: it has no weight, and its
///          values are not read. Without any part out = 0, lse = -inf. A NaN in an lse or a value
///          stays in its row
/// Shapes   parts [parts, batch, rows, heads, head_dim], out [batch, rows, heads, head_dim], lse of
///          parts [parts, batch, rows, heads] and of out [batch, rows, heads], natural logarithms
/// Layout   head_dim contiguous, rows 16-byte aligned, strides in multiples of 16 bytes; strides of
///          lse are free: those of Attention have row 1, head rows
/// Source   Dao 2023 (FlashDecoding); shared prefixes: Juravsky et al. 2024, Ye et al. 2024
struct AttentionMergeProblem {
  DType part_dtype = DType::kF32;  ///< of parts: kF32, kBF16 or kF16
  DType out_dtype = DType::kBF16;  ///< kF32, kBF16 or kF16
  std::int64_t parts = 2;          ///< 1 to 1024
  std::int64_t batch = 1, rows = 0, heads = 1;
  std::int64_t head_dim = 0;  ///< a multiple of 8 up to 4096
  bool has_sink = false;      ///< a logit a head that takes part in the sum, with a value of 0
  bool has_lse = false;       ///< of the result
  std::int64_t part_stride = 0, lse_part_stride = 0;  ///< elements from part to part; 0: contiguous
  Strides part_strides = {}, out_strides = {};        ///< all 0: contiguous
  Strides lse_part_strides = {}, lse_strides = {};    ///< all 0: contiguous, [.., heads, rows]
  /// Of a second part in memory of its own; all 0: as the first.
  Strides other_strides = {}, lse_other_strides = {};
};

/// Device addresses, and the stream to work on.
struct AttentionMergeArguments {
  const void* part_out = nullptr;    ///< of all parts, or of the first of two
  const float* part_lse = nullptr;   ///< the same
  const void* other_out = nullptr;   ///< of two parts in memory of their own, the second; else null
  const float* other_lse = nullptr;  ///< the same
  void* out = nullptr;               ///< may be one of two parts of its type and strides
  float* lse = nullptr;              ///< if has_lse
  const float* sink = nullptr;       ///< [heads] natural logarithms, if has_sink
  void* stream = nullptr;            ///< CUstream; null: the default stream
};

struct AttentionMergePlan : Plan {
  AttentionMergeProblem problem;  ///< with all defaults filled in
};

/// A plan with its kernel loaded on a device.
///
/// Thread   run() may be called from several threads if outputs differ
class AttentionMerge {
 public:
  /// Errors   InvalidArgument naming field, value and rule; Unsupported without the kernel
  AttentionMerge(const Device& device, const AttentionMergeProblem& problem);
  ~AttentionMerge();
  AttentionMerge(AttentionMerge&&) noexcept;
  AttentionMerge& operator=(AttentionMerge&&) noexcept;

  const AttentionMergePlan& plan() const noexcept;
  /// Enqueues the kernel. Allocates nothing, waits for nothing; may be captured in a CUDA graph.
  /// Errors   InvalidArgument if an address is missing or misaligned; DeviceError
  void run(const AttentionMergeArguments& arguments) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The plan alone. Errors as AttentionMerge's constructor.
AttentionMergePlan plan_attention_merge(const Device& device, const AttentionMergeProblem& problem);

}  // namespace tilewright
