// Attention whose values are keys as well: decoding of DeepSeek-V3 and R1 over all keys (MLA), and
// other heads with a narrow key and a wide value.
#pragma once

#include "tilewright/device.h"
#include "tilewright/plan.h"
#include "tilewright/tensor.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace tilewright {

/// s_j = scale * (q[b,i,h,:] . k[b,j,g,:] + qv[b,i,h,:] . v[b,j,g,:]),  g = h / (heads / kv_heads)
/// out[b,i,h,:] = sum_j p_j v[b,j,g,:],  p_j = exp(s_j) / (exp(sink[h]) + sum_j exp(s_j))
/// lse[b,h,i] = ln sum_j exp(s_j), without the sink
///
/// Sequence b has n = lengths[b] keys, read on the device. Query i stands at key n - q_len + i
/// (bottom-right alignment), up to which it sees with causal. A row without a visible key gives
/// out = 0, lse = -inf (see positive_empty_lse). Without qv only k makes scores.
///
/// DeepSeek-V3 keeps rows of 576: 512 numbers that are v, then the 64 of k, and heads of 576
/// likewise. mla_decode_problem() has the strides of that; k is then v + 512, q is qv + 512.
///
/// Shapes   q [batch, q_len, heads, 64], qv, out [batch, q_len, heads, value_dim], all of dtype;
///          k [num_pages, page_size, kv_heads, 64], v [.., value_dim] with block_table [batch,
///          max_pages], or [batch, max_len, kv_heads, ..]; lengths [batch]; lse [batch, heads,
///          q_len] f32; sink [heads] f32
/// Layout   dimensions of a head contiguous, rows 16-byte aligned; other strides free. Bytes of
///          rows that no query sees may be anything, NaN included
/// Numbers  products are accumulated in fp32; exp(s_j) is rounded to dtype before it meets v
/// Units    scale is dimensionless; lse and sink are natural logarithms
/// Repeats  bit-exact from run to run
/// Source   DeepSeek-V2, 2024 (MLA); FlashMLA, flash_mla_with_kvcache; FlashAttention-3, qv
struct LatentAttentionProblem {
  DType dtype = DType::kBF16;  ///< kBF16 or kF16
  std::int64_t batch = 1, q_len = 1, heads = 1, kv_heads = 1;
  std::int64_t value_dim = 512;  ///< 256 or 512
  bool has_qv = true;
  std::int64_t max_len = 0;    ///< keys that a sequence has room for, if there are no pages
  std::int64_t page_size = 0;  ///< keys: 8, 16, 32 or a multiple of 64; 0: no pages
  std::int64_t num_pages = 0, max_pages = 0;  ///< in all, and of a sequence
  std::int64_t table_stride = 0;              ///< elements from sequence to sequence; 0: max_pages
  /// > 0; (64 + value_dim)^-0.5 if absent, 1/8 without qv.
  std::optional<double> scale = {};
  bool causal = true;
  bool has_sink = false, has_lse = false;
  bool positive_empty_lse = false;  ///< lse of a row without a visible key: +inf, as FlashMLA's
  Strides q_strides = {}, qv_strides = {}, out_strides = {};
  Strides lse_strides = {};
  Strides k_strides = {}, v_strides = {};  ///< batch: from page to page, or sequence to sequence
  /// "auto", or one that a plan lists.
  std::string kernel = "auto";
};

/// Decoding of DeepSeek-V3 over bf16 pages [num_pages, page_size, 576], q [batch, q_len, heads,
/// 576], and scale 576^-0.5; a model with YaRN has another.
LatentAttentionProblem mla_decode_problem(std::int64_t batch, std::int64_t q_len,
                                          std::int64_t heads, std::int64_t num_pages,
                                          std::int64_t max_pages, std::int64_t page_size = 64);

/// flops and bytes are those of full caches.
struct LatentAttentionPlan : Plan {
  LatentAttentionProblem problem;  ///< with all defaults filled in
  int tile_rows = 0;          ///< (query, head) pairs of a KV head that are multiplied at a time
  int tiles = 0;              ///< of a sequence and KV head
  int groups = 0;             ///< of CTAs that share the work
  bool has_schedule = false;  ///< else groups take whole tiles in turn
};

/// Device addresses, and the stream to work on.
struct LatentAttentionArguments {
  const void* q = nullptr;
  const void* qv = nullptr;  ///< if has_qv
  const void *k = nullptr, *v = nullptr;
  const std::int32_t* lengths = nullptr;
  const std::int32_t* block_table = nullptr;  ///< with pages
  void* out = nullptr;
  float* lse = nullptr;         ///< if has_lse
  const float* sink = nullptr;  ///< [heads] if has_sink
  void* workspace = nullptr;    ///< workspace_bytes
  /// The workspace still holds what the last run() with this plan and the same lengths put there:
  /// its schedule is used again.
  bool reuses_schedule = false;
  void* stream = nullptr;  ///< CUstream; null: the default stream
};

/// A plan with its kernels loaded on a device.
///
/// Thread   run() may be called from several threads if workspaces and outputs differ
class LatentAttention {
 public:
  /// Errors   InvalidArgument if the problem makes no sense (the message names field, value, rule);
  ///          Unsupported if no kernel fits, or the named one does not (the message lists why)
  LatentAttention(const Device& device, const LatentAttentionProblem& problem);
  ~LatentAttention();
  LatentAttention(LatentAttention&&) noexcept;
  LatentAttention& operator=(LatentAttention&&) noexcept;

  const LatentAttentionPlan& plan() const noexcept;
  /// Enqueues the kernels. Allocates nothing, waits for nothing; may be captured in a CUDA graph,
  /// which then uses the lengths and pages that it finds when it runs. A length below 0 counts as
  /// 0, one beyond the room as all of it; keys of table entries that name no page are zeros.
  /// Errors   InvalidArgument if an address is missing or misaligned; DeviceError
  void run(const LatentAttentionArguments& arguments) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The plan alone. Errors as LatentAttention's constructor.
LatentAttentionPlan plan_latent_attention(const Device& device,
                                          const LatentAttentionProblem& problem);

/// The problem with every default filled in: scale, strides, table_stride.
/// Errors   InvalidArgument naming field, value, rule and remedy
LatentAttentionProblem complete(const LatentAttentionProblem& problem);

}  // namespace tilewright
