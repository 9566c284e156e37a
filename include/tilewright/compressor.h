// DeepSeek-V4's compressors: they pool tokens into rows of compressed caches as they arrive. A
// state keeps the last tokens, which can be rolled back.
#pragma once

#include "tilewright/cache_writer.h"
#include "tilewright/plan.h"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace tilewright {

enum class CompressorKind {
  kCsa,         ///< ratio 4, overlapping: width 1024, entries of 512
  kHca,         ///< ratio 128: width 512, entries of 512
  kIndexFp8,    ///< ratio 4, overlapping: width 256, indexer keys of 128 with an fp32 scale
  kIndexMxfp4,  ///< the same keys with four ue8m0 scales
};
std::int64_t compressor_ratio(CompressorKind kind) noexcept;  ///< 4 or 128
std::int64_t compressor_dim(CompressorKind kind) noexcept;    ///< 512 or 128
std::int64_t compressor_width(CompressorKind kind) noexcept;  ///< 1024, 512 or 256
/// Tokens that an entry reads: 8, 128, 8.
std::int64_t compressor_slots(CompressorKind kind) noexcept;

/// Entry j pools the tokens j * ratio .. j * ratio + ratio - 1. Where groups overlap it pools the
/// `ratio` tokens before them as well: these give the first half of the channels, its own tokens
/// the second half.
///
///   e_c   = sum_p kv[p,c] softmax_p(gate[p,c] + ape[p mod ratio, c])       for each channel
///   entry = bf16(rotate(bf16(bf16(e) / rms(bf16(e)) * norm_weight), j * ratio))
///
/// It is written to logical row j of its sequence by the call that brings its last token: encoded
/// in the cache's format (KvWriteArguments), or as a key of the indexer: bf16(Hadamard(entry)),
/// quantised by fp8_1x128_ue8m0 (scale kept as fp32) or mxfp4_ceil.
///
/// The state keeps a row for each of the last `ring` tokens of a sequence. Tokens may come in calls
/// of any size; entries do not depend on how. The last ring - slots + 1 tokens can be rolled back
/// (rejected speculation): continue from a smaller start, and entries that were made too early are
/// made again. A sequence begins at position 0 and reads nothing older: states need no clearing.
///
/// Numbers  fp32 with the roundings to bf16 that the formula has; quantised values to the byte
/// Source   DeepSeek-V4: compressed sparse attention (CSA), heavily compressed attention (HCA)
struct CompressorProblem {
  CompressorKind kind = CompressorKind::kCsa;
  /// Where entries go. For keys of the indexer its format does not count: a page is
  /// [page_size x 128 or 64 bytes][page_size x 4], page_stride_bytes 0: rounded up to 16.
  KvCacheLayout cache = {};
  std::int64_t state_slots = 0;  ///< sequences that the state has room for
  std::int64_t ring = 0;         ///< rows of each; 0: slots + 8. At least slots
  double eps = 1e-6;
};

/// What a call of given size launches; there is nothing to choose.
struct CompressorPlan : Plan {
  CompressorProblem problem;  ///< with all defaults filled in
};

struct CompressorArguments {
  SequenceBatch sequences = {};
  /// No sequence has more new tokens than this: it sizes the launch. Up to ring - slots + 1 of them
  /// take one kernel, more take two.
  std::int64_t max_tokens = 1;
  const float* kv = nullptr;                    ///< [tokens, width] W_kv x
  const float* gate = nullptr;                  ///< [tokens, width] W_gate x
  std::int64_t kv_stride = 0, gate_stride = 0;  ///< elements, multiples of 4; 0: width
  const float* ape = nullptr;                   ///< [ratio, width]
  const void* norm_weight = nullptr;            ///< bf16 [dim], 16-byte aligned
  RotaryTable rope = {};  ///< one table, rope_table() from position 0, 16-byte aligned
  void* state = nullptr;  ///< state_bytes(), 16-byte aligned; need not be initialised
  const std::int32_t* state_slots = nullptr;  ///< [batch]; null: sequence b has slot b. < 0: none
  SequencePages table = {};                   ///< pages of the sequences' entries
  void* pages = nullptr;                      ///< the cache, 16-byte aligned
  void* stream = nullptr;                     ///< CUstream; null: the default stream
};

/// Thread   run() may be called from several threads if states and caches differ
class Compressor {
 public:
  /// Errors   InvalidArgument naming field, value and rule; Unsupported on a device without the
  ///          kernels
  Compressor(const Device& device, const CompressorProblem& problem);
  ~Compressor();
  Compressor(Compressor&&) noexcept;
  Compressor& operator=(Compressor&&) noexcept;

  const CompressorProblem& problem() const noexcept;  ///< with defaults filled in
  /// [state_slots, ring, 2, width] fp32: values, then scores with ape.
  std::size_t state_bytes() const noexcept;
  std::size_t cache_bytes() const noexcept;  ///< of all pages
  /// What a call launches whose `batch` sequences have up to `max_tokens` new tokens.
  /// Errors   InvalidArgument if there are too many for one call
  CompressorPlan plan(std::int64_t batch, std::int64_t max_tokens) const;
  /// Enqueues one kernel, or two. Allocates nothing, waits for nothing; may be captured in a CUDA
  /// graph. Errors   InvalidArgument if an address is missing or misaligned; DeviceError
  void run(const CompressorArguments& arguments) const;
  /// run() of this compressor (kCsa) and of the layer's indexer keys in one kernel, if each call
  /// takes one; else one after the other.
  /// Errors   as run()
  void run_with_keys(const CompressorArguments& arguments, const Compressor& keys,
                     const CompressorArguments& arguments_of_keys) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The plan alone. Errors as Compressor's constructor.
CompressorPlan plan_compressor(const Device& device, const CompressorProblem& problem,
                               std::int64_t batch, std::int64_t max_tokens);

}  // namespace tilewright
