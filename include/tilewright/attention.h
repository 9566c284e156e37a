// Scaled dot-product attention on a device: what to compute, which kernel will, and running it.
#pragma once

#include "tilewright/device.h"
#include "tilewright/format.h"
#include "tilewright/plan.h"
#include "tilewright/tensor.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace tilewright {

/// How e4m3 values lie in memory.
enum class Fp8ValueLayout {
  kRows,  ///< as keys; the kernel transposes them, which costs time
  /// [batch, kv_heads, head_dim, columns], packed sequences [kv_heads, head_dim, columns], as
  /// AttentionPrepare (attention_prepare.h) writes them. A key is a column; in every 16 of them
  /// column 4q + 2h + c holds key 8h + 2q + c. Columns: kv_len rounded up to 16; packed sequence b
  /// begins at column (cu_kv[b] rounded up to 16) + 16 b, of (total_kv rounded up to 16) +
  /// 16 (batch + 1). Columns without a key are zeros. The stride `row` is that of dimensions
  kColumns,
};

/// Where products of e4m3 probabilities and values are summed.
enum class Fp8Accumulation {
  /// kOneLevel while its error is at most a quarter of e4m3's own rounding, which on Hopper is up
  /// to 4096 keys; else kTwoLevel.
  kAuto,
  kOneLevel,  ///< the tensor core over all keys: fastest; Hopper's keeps 13 fraction bits
  kTwoLevel,  ///< the tensor core over 256 keys, fp32 registers over those sums
};

/// Tokens of q, and of k and v, that share a scale if scales are those of blocks.
inline constexpr std::int64_t kFp8QueryBlock = 64, kFp8KeyBlock = 128;

/// Scales of e4m3 operands (a number is its quantised value times descale) and their shapes:
///
///   kTensor  [1]
///   kHead    [batch, kv_heads], of q too: the query heads of a group share one
///   kBlock   q [batch, heads, blocks of 64 tokens], k and v [batch, kv_heads, blocks of 128];
///            blocks count from a sequence's first token, as many as the longest sequence has
struct Fp8Options {
  ScaleSharing scales = ScaleSharing::kTensor;            ///< of e4m3 operands: one of those three
  Fp8ValueLayout v_layout = Fp8ValueLayout::kRows;        ///< of e4m3 operands
  Fp8Accumulation accumulation = Fp8Accumulation::kAuto;  ///< whenever a kernel computes in e4m3
};

/// out[b,i,h,:] = sum_j p_j v[b,j,g,:],  p_j = exp(s_j) / (exp(sink[h]) + sum_j exp(s_j)),
/// s_j = softcap(scale * q[b,i,h,:] . k[b,j,g,:]) over the visible keys j, g = h / (heads/kv_heads)
/// lse[b,h,i] = ln sum_j exp(s_j), without the sink
///
/// Not finite  a NaN or an infinity in q or k stays with the rows that see it, and nothing reaches
///          another sequence, head or column of out. One in a value may reach rows of its sequence
///          that the mask keeps it from, in its own column: a tile of keys is multiplied whole, and
///          0 times NaN is NaN. Keep values behind a mask finite. Where k7 or k8 rounds operands of
///          16 bits, it also reaches everything that shares its scale
///
/// Query i of a sequence stands at key position i + kv_len - q_len (bottom-right alignment); causal
/// and the window count from there. A row without a visible key gives out = 0, lse = -inf.
///
/// Chunks (chunk > 0; chunked local attention, as in Llama 4): query i
/// also sees key j only if (i + kv_len - q_len) / chunk and j / chunk are the same whole number.
///
/// Lengths on the device (has_q_lengths, has_kv_lengths): sequence b has q_lengths[b] queries and
/// kv_lengths[b] keys, the first of those that there is room for; a length below 0 counts as 0, one
/// beyond the room as all of it. Rows of out and lse behind them are not written.
///
/// Pages (page_size > 0): key j of sequence b is row j % page_size of page block_table[b, j /
/// page_size] of k and v, and there are kv_lengths[b] of them, at most kv_len. is_packed is then of
/// queries alone. So one call serves prompts in parts and sequences that decode. Entries that name
/// no page stand for keys and values of zeros; what lies in pages behind the last key may be
/// anything, NaN included. Pages, lengths and chunks go with head_dim up to 256.
///
/// Shapes   q [batch, q_len, heads, head_dim]; k [batch, kv_len, kv_heads, head_dim]; v, out as k,
///          q with value_dim; packed sequences: [total, heads, head_dim] with cumulative lengths;
///          pages: k, v [num_pages, page_size, kv_heads, head_dim]. lse [batch, heads, q_len],
///          packed [heads, total_q]
/// Layout   head_dim contiguous, rows 16-byte aligned; other strides free, in multiples of 16 bytes
/// head_dim any multiple of 8 (e4m3: of 16) up to 256, on Blackwell up to 512 for operands of 16
///          bits. One that no kernel has is computed as the next of 64, 128, 256, 512, on Hopper in
///          16 bits also 192, with zeros that tensor copies deliver: operands and out are as they
///          are, products take the time of the wider one. Kernels that neither write results by
///          such copies nor look at the end of a row write them to the workspace first; the plan
///          says both, and its costs have both
/// value_dim another multiple of 8 than head_dim, for operands of 16 bits: up to 192 and 128 by
///          forms of that shape (DeepSeek-V3's prefill; over pages, too), with zeros
///          where both are less; wider pairs by the forms for the wider of the two
/// Units    scale is dimensionless; lse and sink are natural logarithms
/// e4m3     q, k, v are quantised values times descale (kernel k7). If the caller names k7 or k8
///          for operands of 16 bits, they are rounded first, into the workspace: by k7 with a scale
///          per head; by k8 with a scale per block, after q and k are rotated by random signs and a
///          Hadamard transform. "auto" never rounds operands of 16 bits to e4m3
/// Caches   of e4m3 (pages, lengths on the device, chunks), scales of tensors or heads. e4m3
///          queries (kernels k7_pages, sm100_pages_e4m3): products of e4m3, as FlashAttention-3 has
///          them, weights rounded to e4m3. Queries of 16 bits and kv_dtype = kF8_E4M3 (k6_pages,
///          sm100_pages): codes are widened to dtype, exactly, on their way to shared memory, and
///          products are of 16 bits; scales go into scores and results in fp32; on Blackwell
///          head_dim up to 128, or 192 with value_dim up to 128. Nothing but the cache is rounded
///          to e4m3
/// Source   Vaswani et al. 2017; sinks: Xiao et al. 2023, gpt-oss; soft-capping: Gemma 2
struct AttentionProblem {
  DType dtype = DType::kBF16;  ///< of q, k and v: kBF16, kF16 or kF8_E4M3; see kv_dtype
  std::int64_t batch = 1, heads = 1, kv_heads = 1;
  std::int64_t q_len = 0, kv_len = 0;  ///< of every sequence; of the longest if packed
  std::int64_t head_dim = 0;
  std::optional<double> scale = {};  ///< > 0, normal in fp32; head_dim^-0.5 if absent
  bool causal = false;
  std::int64_t window_left = -1, window_right = -1;  ///< visible keys before and after; -1: all
  double softcap = 0;                                ///< c in (0, 4096]: c * tanh(s / c)
  bool has_sink = false, has_lse = false;
  bool is_packed = false;  ///< lengths come as cu_q and cu_kv; with pages as cu_q alone
  std::int64_t total_q = 0, total_kv = 0;  ///< rows of packed tensors
  Strides q_strides = {}, k_strides = {}, v_strides = {}, out_strides = {};
  /// "auto", or one of attention_kernels(): a rung of the ladder on Hopper, "k1" to "k8", or a
  /// variant of one; a stage on Blackwell, "sm100_c"
  std::string kernel = "auto";
  std::optional<DType> out_dtype = {};  ///< of e4m3 operands: kBF16, if absent, or kF16; else dtype
  Fp8Options fp8 = {};
  bool has_q_lengths = false, has_kv_lengths = false;  ///< lengths that only the device knows
  std::int64_t page_size = 0;                          ///< keys; 0: no pages
  std::int64_t num_pages = 0, max_pages = 0;           ///< in all, and of a sequence
  std::int64_t table_stride = 0;  ///< elements from sequence to sequence; 0: max_pages
  std::int64_t value_dim = 0;     ///< of v and out; 0: head_dim
  std::int64_t chunk = 0;         ///< keys of a chunk; 0: all keys are one
  /// Of k and v: dtype, if absent; or kF8_E4M3 beside queries of 16 bits.
  std::optional<DType> kv_dtype = {};
};

/// Costs are estimates: from rates measured on an H200, for a B200 from counts. flops are those of
/// the visible scores, 2 * (head_dim + value_dim) each; exact up to 2^53. The lengths of packed
/// sequences are known on the device alone: flops and bytes are those of sequences of equal length,
/// and of full ones with has_kv_lengths.
struct AttentionPlan : Plan {
  AttentionProblem problem;             ///< with all defaults filled in
  int tile_queries = 0, tile_keys = 0;  ///< of a CTA, and of one step of its loop over keys
  int padded_head_dim = 0;              ///< columns that the kernel computes: head_dim, or more
  int padded_value_dim = 0;             ///< the same of values
  /// In e4m3: what kAuto became, and why.
  Fp8Accumulation accumulation = Fp8Accumulation::kAuto;
  std::string accumulation_reason;
  /// Keys whose products the tensor core adds up before registers do; 0: all of them.
  int accumulation_keys = 0;
};

/// Device addresses, and the stream to work on.
struct AttentionArguments {
  const void *q = nullptr, *k = nullptr, *v = nullptr;
  void* out = nullptr;
  float* lse = nullptr;                                  ///< if has_lse
  const float* sink = nullptr;                           ///< [heads] if has_sink
  const std::int32_t *cu_q = nullptr, *cu_kv = nullptr;  ///< [batch + 1] if is_packed
  void* workspace = nullptr;                             ///< workspace_bytes
  void* stream = nullptr;                                ///< CUstream; null: the default stream
  /// Of e4m3 operands: scales in the shapes that Fp8Options states, positive and finite. That of q
  /// is not read where q is of 16 bits.
  const float *q_descale = nullptr, *k_descale = nullptr, *v_descale = nullptr;
  const float* v_descale_max = nullptr;  ///< kBlock: [batch, kv_heads] largest of a sequence
  const std::int32_t *q_lengths = nullptr,
                     *kv_lengths = nullptr;   ///< [batch], with has_..._lengths
  const std::int32_t* block_table = nullptr;  ///< [batch, max_pages] with pages
};

/// A plan with its kernels loaded on a device.
///
/// Thread   run() may be called from several threads if workspaces and outputs differ
class Attention {
 public:
  /// Errors   InvalidArgument if the problem makes no sense (the message names field, value, rule);
  ///          Unsupported if no kernel fits, or the named one does not (the message lists why)
  Attention(const Device& device, const AttentionProblem& problem);
  ~Attention();
  Attention(Attention&&) noexcept;
  Attention& operator=(Attention&&) noexcept;

  const AttentionPlan& plan() const noexcept;
  /// Enqueues the kernels. Allocates nothing, waits for nothing; may be captured in a CUDA graph.
  /// Errors   InvalidArgument if an address is missing or misaligned; DeviceError
  void run(const AttentionArguments& arguments) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The plan alone. Errors as Attention's constructor.
AttentionPlan plan_attention(const Device& device, const AttentionProblem& problem);

/// The problem with every default filled in: scale, strides, out_dtype, totals of rows. Needs no
/// device: a program can size its buffers before it opens one.
/// Errors   InvalidArgument naming field, value, rule and remedy
AttentionProblem complete(const AttentionProblem& problem);

/// flops and bytes as a plan has them. Where the host knows the lengths of packed sequences, their
/// work is the sum over problems of one sequence each.
Work count_work(const AttentionProblem& problem) noexcept;

/// A kernel that AttentionProblem::kernel can name.
struct AttentionKernelInfo {
  std::string name;             ///< "k6_short"
  std::string idea;             ///< what sets it apart, in a few words
  int compute_capability = 90;  ///< of the devices that it is for: 90, or 100 for 10.x
  bool computes_in_e4m3 = false;
  /// Takes keys in pages and lengths on the device, and is chosen for nothing else: it is no rung.
  bool reads_pages = false;
};
/// All of them: the rungs for Hopper in order, then those for Blackwell.
/// Thread   safe
std::span<const AttentionKernelInfo> attention_kernels();

}  // namespace tilewright
