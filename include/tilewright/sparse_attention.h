// Attention of DeepSeek-V4 and V3.2 over chosen rows of paged caches: decoding, prefill, sliding
// windows.
#pragma once

#include "tilewright/cache.h"
#include "tilewright/device.h"
#include "tilewright/plan.h"
#include "tilewright/tensor.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace tilewright {

/// What has a length of its own: how many entries of a list are valid.
enum class SparseLengths {
  kFull,      ///< none: all topk entries are valid
  kPerBatch,  ///< lengths [batch]
  kPerQuery,  ///< lengths [batch, q_len]
};

/// A cache, and the rows of it that each query sees: indices [batch, q_len, topk] of int32, page *
/// page_size + slot. Entries from the length on, negative ones and those that no page holds are
/// masked. A row listed twice counts twice.
struct SparseList {
  KvCacheLayout cache = {};
  std::int64_t topk = 0;          ///< 0: there is no such list
  std::int64_t index_stride = 0;  ///< elements from query to query; 0: topk
  SparseLengths lengths = SparseLengths::kFull;
};

/// out[b,i,h,:] = sum_j p_j x_j,  p_j = exp(s_j) / (exp(sink[h]) + sum_j exp(s_j)),
/// s_j = scale * q[b,i,h,:] . x_j over the rows x_j of both lists together
/// lse[b,i,h] = ln sum_j exp(s_j), max_logits[b,i,h] = max_j s_j, both without the sink
///
/// Decoding: a window and a list of compressed rows. Prefill: batch 1, one query per token, bf16
/// rows; sparse_prefill_problem() fills that in. A sliding window is the list of its rows, which
/// KvCache::list() (cache_writer.h) makes on the device, as those of all compressed rows.
///
/// V3 and V3.2, head_dim 576: s_j of all 576 numbers of q and x_j, and the values are the first 512
/// of x_j. Formats of their caches: kBf16, kFp8.
///
/// Shapes   q [batch, q_len, heads, head_dim], out [batch, q_len, heads, 512] bf16; lse, max_logits
///          [batch, q_len, heads] f32
/// Layout   dimensions of a head contiguous, rows 16-byte aligned; other strides free
/// Empty    a query without a valid row: out 0, lse and max_logits -inf (see positive_empty_lse).
///          sink +inf: out 0; -inf: as without a sink
/// Units    scale is dimensionless; lse, max_logits and sink are natural logarithms
/// Source   FlashMLA, flash_mla_with_kvcache and flash_mla_sparse_fwd
struct SparseAttentionProblem {
  std::int64_t batch = 1, q_len = 1;
  std::int64_t heads = 0;                   ///< 1 to 128
  std::optional<double> scale = {};         ///< > 0; head_dim^-0.5 if absent
  SparseList window = {}, compressed = {};  ///< of one cache format
  bool has_sink = false, has_lse = false, has_max_logits = false;
  Strides q_strides = {}, out_strides = {};
  Strides lse_strides = {};  ///< of lse and max_logits
  /// "auto", or one that a plan lists.
  std::string kernel = "auto";
  bool positive_empty_lse = false;  ///< lse of a query without a valid row: +inf, as FlashMLA's
  std::int64_t head_dim = 512;      ///< of q and of the rows as keys: 512, or 576
};

/// Attention of `tokens` queries over rows [num_rows, head_dim] of bf16, each with its own list of
/// `topk`.
SparseAttentionProblem sparse_prefill_problem(std::int64_t tokens, std::int64_t heads,
                                              std::int64_t num_rows, std::int64_t topk,
                                              std::int64_t head_dim = 512);

/// flops and bytes are those of full lists: 2 * (head_dim + 512) for each head, query and entry;
/// rows of all lists, q and out.
struct SparseAttentionPlan : Plan {
  SparseAttentionProblem problem;  ///< with all defaults filled in
  int groups = 0;                  ///< CTAs or clusters that share the work
  int head_slots = 0;         ///< heads that the kernel multiplies; beyond `heads` they are padding
  bool has_schedule = false;  ///< else groups take whole queries in turn
};

/// Device addresses of a list.
struct SparseListArguments {
  const void* pages = nullptr;            ///< 16-byte aligned
  const std::int32_t* indices = nullptr;  ///< [batch, q_len, topk]
  const std::int32_t* lengths = nullptr;  ///< as SparseLengths says
};

/// Device addresses, and the stream to work on.
struct SparseAttentionArguments {
  const void* q = nullptr;
  SparseListArguments window = {}, compressed = {};
  void* out = nullptr;
  float* lse = nullptr;         ///< if has_lse
  float* max_logits = nullptr;  ///< if has_max_logits
  const float* sink = nullptr;  ///< [heads] if has_sink
  void* workspace = nullptr;    ///< workspace_bytes
  /// The workspace still holds what the last run() with this plan and the same lengths put there:
  /// its schedule is used again. Without lengths, and for all layers of a model but the first.
  bool reuses_schedule = false;
  void* stream = nullptr;  ///< CUstream; null: the default stream
};

/// A plan with its kernels loaded on a device.
///
/// Thread   run() may be called from several threads if workspaces and outputs differ
class SparseAttention {
 public:
  /// Errors   InvalidArgument if the problem makes no sense (the message names field, value, rule);
  ///          Unsupported if no kernel fits, or the named one does not (the message lists why)
  SparseAttention(const Device& device, const SparseAttentionProblem& problem);
  ~SparseAttention();
  SparseAttention(SparseAttention&&) noexcept;
  SparseAttention& operator=(SparseAttention&&) noexcept;

  const SparseAttentionPlan& plan() const noexcept;
  /// Enqueues the kernels. Allocates nothing, waits for nothing; may be captured in a CUDA graph.
  /// Lengths are read on the device alone.
  /// Errors   InvalidArgument if an address is missing or misaligned; DeviceError
  void run(const SparseAttentionArguments& arguments) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The plan alone. Errors as SparseAttention's constructor.
SparseAttentionPlan plan_sparse_attention(const Device& device,
                                          const SparseAttentionProblem& problem);

/// The problem with every default filled in: scale, strides, layouts of caches.
/// Errors   InvalidArgument naming field, value, rule and remedy
SparseAttentionProblem complete(const SparseAttentionProblem& problem);

}  // namespace tilewright
