// Logits of the lightning indexer from queries and keys that are quantised already.
#pragma once

#include "tilewright/cache_writer.h"
#include "tilewright/format.h"
#include "tilewright/plan.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace tilewright {

/// logit(t, j) = key_scale[j] * sum_h relu(query[t,h,:] . key[j,:]) * weights[t,h]
///
/// Token t sees the keys starts[t] <= j < ends[t]; logits[t,c] is that of key c, or with
/// is_compressed that of key starts[t] + c. What is not a key that t sees is -inf with fill_logits,
/// else not written; a key whose page is not there has logit -inf.
///
/// Keys     in pages (keys.num_pages > 0), as Compressor writes them and DeepGEMM has them: then
///          all tokens see from key 0 of their sequence on. Or without pages (keys.num_pages 0):
///          codes [num_keys, 128 or 64 bytes] and scales apart, the same for all tokens
/// Scales   fp32 of a key's e4m3 codes: any numbers >= 0, or NaN. Those of e4m3 queries are for
///          the caller to multiply into the weights. ue8m0 for each 32 numbers of MXFP4
/// Numbers  products of codes summed in fp32, on Hopper with 13 fraction bits; NaN stays NaN
/// Source   DeepSeek-V3.2: lightning indexer; DeepGEMM: fp8_mqa_logits, fp8_paged_mqa_logits
struct IndexerLogitsProblem {
  NumberFormat format = NumberFormat::kFp8;  ///< or kMxfp4: of queries and keys
  std::int64_t heads = 64;                   ///< 1 to 64
  std::int64_t max_len = 0;                  ///< most logits of a token
  /// Pages of keys; the layout's format does not count. num_pages 0: keys have no pages.
  KvCacheLayout keys = {.num_pages = 0};
  bool is_compressed = false;  ///< without pages: column 0 is the first key that a token sees
  bool fill_logits = false;
};

/// What a call launches; there is nothing to choose. The schedule is listed, which a call may reuse
/// instead.
struct IndexerLogitsPlan : Plan {
  IndexerLogitsProblem problem;  ///< with all defaults filled in
};

/// Device addresses.
struct IndexerLogitsArguments {
  std::int64_t tokens = 0;
  SequenceBatch sequences;               ///< with pages; starts are not used
  const std::int32_t* starts = nullptr;  ///< [tokens], without pages; null: all 0. < 0 is 0
  /// [tokens]; at most the columns, or num_keys, count, and nothing if it is not above the start.
  /// Below 2^31 - 1.
  const std::int32_t* ends = nullptr;
  const void* q = nullptr;           ///< codes [tokens, heads, 128 or 64 bytes], 16-byte aligned
  const void* q_scales = nullptr;    ///< MXFP4: ue8m0 [tokens, heads, 4], 4-byte aligned
  const float* weights = nullptr;    ///< [tokens, heads]; may be negative
  const void* keys = nullptr;        ///< pages, or codes of keys; 16-byte aligned
  const void* key_scales = nullptr;  ///< without pages: [num_keys] of 4 bytes
  std::int64_t num_keys = 0;         ///< without pages: 1 to 2^30
  SequencePages key_table;           ///< with pages: those of each sequence
  float* logits = nullptr;           ///< [tokens, columns]
  std::int64_t logits_stride = 0;    ///< elements; 0: columns
  std::int64_t columns = 0;          ///< of this call; 0: max_len
  void* workspace = nullptr;         ///< workspace_bytes(), 256-byte aligned
  /// The last run with this workspace had the same starts and ends.
  bool reuses_schedule = false;
  void* stream = nullptr;  ///< CUstream; null: the default stream
};

/// Thread   run() may be called from several threads if workspaces and logits differ
class IndexerLogits {
 public:
  /// Errors   InvalidArgument naming field, value and rule; Unsupported on a device without the
  ///          kernels
  IndexerLogits(const Device& device, const IndexerLogitsProblem& problem);
  ~IndexerLogits();
  IndexerLogits(IndexerLogits&&) noexcept;
  IndexerLogits& operator=(IndexerLogits&&) noexcept;

  const IndexerLogitsProblem& problem() const noexcept;  ///< with defaults filled in
  /// For calls of up to this many tokens of this many sequences; without pages these do not count.
  /// Errors   InvalidArgument for numbers below 0, or above 2^20 tokens and 65535 sequences
  std::size_t workspace_bytes(std::int64_t tokens, std::int64_t batch) const;
  /// Enqueues schedule and logits. Allocates nothing, waits for nothing; may be captured in a CUDA
  /// graph. Bit-exact from run to run.
  /// Errors   InvalidArgument naming field, value and rule; DeviceError
  void run(const IndexerLogitsArguments& arguments) const;
  /// What a call of `tokens` tokens in `batch` sequences launches. Errors as workspace_bytes()
  IndexerLogitsPlan plan(std::int64_t tokens, std::int64_t batch) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The plan alone. Errors as IndexerLogits' constructor and workspace_bytes().
IndexerLogitsPlan plan_indexer_logits(const Device& device, const IndexerLogitsProblem& problem,
                                      std::int64_t tokens, std::int64_t batch);

}  // namespace tilewright
