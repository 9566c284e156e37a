// Decode attention: a few new tokens over long caches of keys and values. What to compute, what
// will be launched, and running it. CacheAppend: new tokens in other numbers, written before it.
#pragma once

#include "tilewright/device.h"
#include "tilewright/format.h"
#include "tilewright/plan.h"
#include "tilewright/rotary.h"
#include "tilewright/tensor.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace tilewright {

/// New keys and values, which run() appends to the cache before it attends.
struct DecodeAppend {
  bool is_wanted = false;
  RotaryPairs rotary = RotaryPairs::kNone;  ///< of the first rotary_dim elements of new_k and q
  std::int64_t rotary_dim = 0;
  std::int64_t max_position = 0;  ///< rows of the tables of angles
};

/// out[b,i,h,:] = sum_j p_j v[b,j,g,:],  p_j = exp(s_j) / (exp(sink[h]) + sum_j exp(s_j)),
/// s_j = softcap(scale * q[b,i,h,:] . k[b,j,g,:]) over the visible keys j, g = h / (heads/kv_heads)
/// lse[b,h,i] = ln sum_j exp(s_j), without the sink
///
/// Sequence b has n = lengths[b] keys, read on the device, and with append the q_len that this call
/// adds. Query i stands at key n - q_len + i (bottom-right alignment); causal and the window
/// count from there. With chunks, query i also sees key j only if (n - q_len + i) / chunk and
/// j / chunk are the same whole number (chunked local attention, as Llama 4 has). A row without a
/// visible key gives out = 0, lse = -inf.
///
/// Shapes   q, out [batch, q_len, heads, head_dim] of dtype; caches of kv_dtype [num_pages,
///          page_size, kv_heads, head_dim] with block_table [batch, max_pages], or [batch,
///          max_len, kv_heads, head_dim]; lengths [batch]; lse [batch, heads, q_len]; with append
///          new_k, new_v [batch, q_len, kv_heads, head_dim] of dtype; with rotary pairs two tables
///          of angles (RotaryTable) of max_position rows
/// Sizes    head_dim a multiple of 8 up to 256. What exists is read, and 64, 96, 128, 192 or 256
///          elements are multiplied (Blackwell: 64, 128 or 256), zeros behind the last one
/// Layout   head_dim contiguous, rows 16-byte aligned (e4m3 with a head_dim that is no multiple of
///          16 needs cache_strides with gaps); other strides free, those of keys and values the
///          same. Bytes of rows that no query sees may be anything, NaN included
/// Numbers  e4m3 becomes f16 without loss, and q f16 times a power of two per row; products are
///          accumulated in fp32; exp(s_j) is rounded to the 16 bits that v has (e4m3: f16) before
///          it meets v; new keys are rotated in fp32 and rounded once, to kv_dtype; q to dtype
/// Units    scale and descales are dimensionless; lse and sink are natural logarithms
/// Repeats  bit-exact from run to run. With splits > 0 the result of a sequence does not depend on
///          the other sequences either
/// Source   Dao et al., Flash-Decoding, 2023; paged caches: Kwon et al., vLLM, 2023
struct AttentionDecodeProblem {
  DType dtype = DType::kBF16;     ///< of q, out, new_k and new_v: kBF16 or kF16
  DType kv_dtype = DType::kBF16;  ///< dtype or kF8_E4M3
  std::int64_t batch = 1, q_len = 1, heads = 1, kv_heads = 1;
  std::int64_t head_dim = 0;
  std::int64_t max_len = 0;    ///< keys that a sequence has room for, if there are no pages
  std::int64_t page_size = 0;  ///< keys; 0: no pages
  std::int64_t num_pages = 0, max_pages = 0;  ///< in all, and of a sequence
  std::int64_t table_stride = 0;              ///< elements from sequence to sequence; 0: max_pages
  std::optional<double> scale = {};           ///< > 0; head_dim^-0.5 if absent
  bool causal = true;
  std::int64_t window_left = -1;  ///< visible keys before the query's; -1: all
  double softcap = 0;             ///< c in (0, 4096]: c * tanh(s / c)
  /// Of the quantised values of a cache: kNone, kTensor (one for all keys, one for all values: [1])
  /// or kHead ([batch, kv_heads]).
  ScaleSharing descale = ScaleSharing::kNone;
  bool has_sink = false, has_lse = false;
  DecodeAppend append = {};
  Strides q_strides = {}, out_strides = {}, new_k_strides = {}, new_v_strides = {};
  Strides cache_strides = {};  ///< batch: from page to page, or from sequence to sequence
  /// Splits of the keys of a sequence, each for a CTA; 0: chosen on the device by the lengths.
  std::int64_t splits = 0;
  /// "auto", or one that a plan lists.
  std::string kernel = "auto";
  std::int64_t chunk = 0;  ///< keys of a chunk; 0: all keys are one
};

/// Costs, flops and bytes are those of full caches. Kernels: "r16" and "r64" take 16 or 64 rows of
/// (query, head) at a time, "r16_tma" has keys copied by TMA; on Blackwell "t16", "t32" and "t64".
struct AttentionDecodePlan : Plan {
  AttentionDecodeProblem problem;  ///< with all defaults filled in
  int tile_rows = 0;  ///< (query, head) pairs of a KV head that are multiplied at a time
  int passes = 0;     ///< over the keys: rows of a KV head / tile_rows
  int groups = 0;     ///< of CTAs that share the keys
  int cluster = 1;    ///< CTAs of a group: they merge in shared memory what each has of a tile
};

/// Device addresses, and the stream to work on.
struct AttentionDecodeArguments {
  const void* q = nullptr;
  void *k_cache = nullptr, *v_cache = nullptr;  ///< written with append only
  const std::int32_t* lengths = nullptr;
  const std::int32_t* block_table = nullptr;               ///< with pages
  const float *k_descale = nullptr, *v_descale = nullptr;  ///< unless kNone
  const void *new_k = nullptr, *new_v = nullptr;           ///< with append
  RotaryTable rope = {};                                   ///< with append and rotary pairs
  void* out = nullptr;
  float* lse = nullptr;         ///< if has_lse
  const float* sink = nullptr;  ///< [heads] if has_sink
  void* workspace = nullptr;    ///< workspace_bytes, of any content
  void* stream = nullptr;       ///< CUstream; null: the default stream
};

/// A plan with its kernels loaded on a device.
///
/// Thread   run() may be called from several threads if workspaces, outputs and caches differ
class AttentionDecode {
 public:
  /// Errors   InvalidArgument if the problem makes no sense (the message names field, value, rule);
  ///          Unsupported if no kernel fits, or the named one does not (the message lists why)
  AttentionDecode(const Device& device, const AttentionDecodeProblem& problem);
  ~AttentionDecode();
  AttentionDecode(AttentionDecode&&) noexcept;
  AttentionDecode& operator=(AttentionDecode&&) noexcept;

  const AttentionDecodePlan& plan() const noexcept;
  /// Enqueues the kernels. Allocates nothing, waits for nothing; may be captured in a CUDA graph,
  /// which then uses the lengths, pages and tokens that it finds when it runs. Lengths and table
  /// are also read before the preceding kernels on the stream have ended, to prefetch keys: what is
  /// read then is checked later, so that those kernels may write all of them.
  /// A length below 0 counts as 0, one beyond the room as all of it; new tokens for which there is
  /// no room are not written, and table entries that name no page are not followed: nothing is
  /// read or written out of bounds, but results of such a sequence mean nothing.
  /// The workspace need not be cleared: counters in it carry a tag that only this plan has, and a
  /// counter with another tag is taken to be zero. A counter that was never written is reported by
  /// checkers of uninitialised memory (the simulator's `init`, compute-sanitizer's initcheck): fill
  /// the workspace once, with any value, before such a check.
  /// Errors   InvalidArgument if an address is missing or misaligned; DeviceError
  void run(const AttentionDecodeArguments& arguments) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The plan alone. Errors as AttentionDecode's constructor.
AttentionDecodePlan plan_attention_decode(const Device& device,
                                          const AttentionDecodeProblem& problem);

/// The problem with every default filled in: scale, strides, table_stride, and the keys that a
/// sequence has room for. Needs no device: a program can size its caches before it opens one.
/// Errors   InvalidArgument naming field, value, rule and remedy
AttentionDecodeProblem complete(const AttentionDecodeProblem& problem);

/// Work of one sequence with so many keys, appended ones included, in a complete problem: 4 *
/// head_dim flops for each query, head and key seen; keys and values once, q and out. A plan states
/// that of full caches, since lengths are on the device.
Work count_work(const AttentionDecodeProblem& problem, std::int64_t keys) noexcept;

/// k_cache[b, n + j] = turn(new_k[b, j], o + j),   v_cache[b, n + j] = new_v[b, j],
/// turned_q[b, i] = turn(q[b, i], o + i),          new_lengths[b] = n + new tokens of b
///
/// where n = lengths[b] and o = rotary_lengths[b], or n. turn(x, p) turns pairs of the first
/// rotary_dim elements by the angles at position p; without rotary pairs it is x. It is the step
/// before attention over caches where DecodeAppend does not reach: more or fewer new tokens than
/// queries, packed ones, angles that count from elsewhere, values of another width.
///
/// A length below 0 counts as 0; a token for which there is no room is not written, a table entry
/// that names no page is not followed; positions behind the table of angles count as its last; a
/// new length is at most 2^31 - 1.
///
/// Shapes   new_k [batch, new_len, kv_heads, head_dim], packed [total_new, kv_heads, head_dim] with
///          cu_new [batch + 1]; new_v the same with value_dim; q, turned_q [batch, q_len, heads,
///          head_dim], packed [total_q, heads, head_dim] with cu_q; caches [num_pages, page_size,
///          kv_heads, head_dim or value_dim] with block_table [batch, max_pages], or [batch,
///          max_len, kv_heads, ..]; lengths, rotary_lengths, new_lengths [batch]
/// Layout   elements of a head contiguous, rows 16-byte aligned; other strides free, those of keys
///          and of values apart
/// Numbers  turned in fp32 and rounded once, to kv_dtype, q to dtype; what is not turned and keeps
///          its type is copied bit by bit. An e4m3 cache gets e4m3(x / descale), saturating; with
///          dtype = kF8_E4M3 codes are copied as they are
struct CacheAppendProblem {
  DType dtype = DType::kBF16;     ///< of q, new_k and new_v: kBF16, kF16; kF8_E4M3: codes
  DType kv_dtype = DType::kBF16;  ///< dtype or kF8_E4M3
  std::int64_t batch = 1, kv_heads = 1;
  std::int64_t new_len = 0;                  ///< new tokens of every sequence; 0 if they are packed
  std::int64_t head_dim = 0, value_dim = 0;  ///< multiples of 8; value_dim 0: head_dim
  bool is_packed = false;                    ///< new tokens are, and cu_new says whose they are
  std::int64_t total_new = 0;                ///< rows of packed new_k
  std::int64_t heads = 0;                    ///< of q; 0: no queries are turned
  std::int64_t q_len = 0;                    ///< of every sequence; 0 if they are packed
  bool is_q_packed = false;
  std::int64_t total_q = 0;                   ///< rows of packed q
  std::int64_t max_len = 0;                   ///< keys that a sequence has room for, without pages
  std::int64_t page_size = 0;                 ///< keys; 0: no pages
  std::int64_t num_pages = 0, max_pages = 0;  ///< in all, and of a sequence
  std::int64_t table_stride = 0;              ///< elements from sequence to sequence; 0: max_pages
  /// Of an e4m3 cache: kNone, kTensor ([1] for keys and for values) or kHead ([batch, kv_heads]).
  ScaleSharing descale = ScaleSharing::kNone;
  RotaryPairs rotary = RotaryPairs::kNone;
  std::int64_t rotary_dim = 0;      ///< a multiple of 16 up to head_dim
  std::int64_t max_position = 0;    ///< rows of the tables of angles
  bool has_rotary_lengths = false;  ///< positions count from rotary_lengths
  bool is_one_position = false;     ///< all queries of a sequence turn as its first
  bool has_new_lengths = false;     ///< new_lengths is written
  Strides q_strides = {}, turned_q_strides = {}, new_k_strides = {}, new_v_strides = {};
  Strides k_cache_strides = {}, v_cache_strides = {};  ///< batch: from page to page
};

struct CacheAppendPlan : Plan {
  CacheAppendProblem problem;  ///< with all defaults filled in
};

/// Device addresses, and the stream to work on. Nothing that is written may overlap what is read.
struct CacheAppendArguments {
  const void *q = nullptr, *new_k = nullptr, *new_v = nullptr;  ///< null where there are no rows
  void* turned_q = nullptr;
  void *k_cache = nullptr, *v_cache = nullptr;
  const std::int32_t* lengths = nullptr;
  const std::int32_t* rotary_lengths = nullptr;            ///< if has_rotary_lengths
  std::int32_t* new_lengths = nullptr;                     ///< if has_new_lengths
  const std::int32_t* block_table = nullptr;               ///< with pages
  const std::int32_t *cu_new = nullptr, *cu_q = nullptr;   ///< if packed
  const float *k_descale = nullptr, *v_descale = nullptr;  ///< unless kNone
  RotaryTable rope = {};                                   ///< cos and sin, with rotary pairs
  void* stream = nullptr;                                  ///< CUstream; null: the default stream
};

/// A plan with its kernel loaded on a device.
///
/// Thread   run() may be called from several threads if what is written differs
class CacheAppend {
 public:
  /// Errors   InvalidArgument naming field, value and rule; Unsupported without the kernel
  CacheAppend(const Device& device, const CacheAppendProblem& problem);
  ~CacheAppend();
  CacheAppend(CacheAppend&&) noexcept;
  CacheAppend& operator=(CacheAppend&&) noexcept;

  const CacheAppendPlan& plan() const noexcept;
  /// Enqueues the kernel. Allocates nothing, waits for nothing; may be captured in a CUDA graph,
  /// which then uses the lengths and pages that it finds when it runs.
  /// Errors   InvalidArgument if an address is missing or misaligned; DeviceError
  void run(const CacheAppendArguments& arguments) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The plan alone. Errors as CacheAppend's constructor.
CacheAppendPlan plan_cache_append(const Device& device, const CacheAppendProblem& problem);

}  // namespace tilewright
