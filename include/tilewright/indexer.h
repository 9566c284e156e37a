// DeepSeek-V4's lightning indexer: which compressed entries a token attends to.
#pragma once

#include "tilewright/cache_writer.h"
#include "tilewright/compressor.h"
#include "tilewright/format.h"
#include "tilewright/plan.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace tilewright {

/// query[t,h,:] = bf16(Hadamard(bf16(rotate(q[t,h,:], positions[t]))) * 128^-0.5), quantised
/// logit[t,j]   = sum_h relu(query[t,h,:] . key[j,:]) * weights[t,h] * (128 * heads)^-0.5
/// rows[t,:]    = the topk entries with the largest logits of those that t sees, as rows of the
///                cache that attention reads, in ascending order of entries; then -1
///
/// Token t sees the entries j < (positions[t] + 1) / ratio, or j < lengths[t]; all of them are
/// selected if they are no more than topk. NaN counts as -inf, in quantised values and scales of
/// keys as well; ties go to the lower entry. A token with a position < 0 sees nothing, whatever its
/// length.
///
/// Numbers  the transform in fp32, rounded once to bf16; products of quantised values summed in
///          fp32, on Hopper those of e4m3 with 13 fraction bits (docs/06-deepseek-v4.md)
/// Source   DeepSeek-V3.2 and V4: lightning indexer
struct IndexerProblem {
  /// Of queries and keys: kFp8, e4m3 with a power of two for each 128 (CompressorKind::kIndexFp8),
  /// or kMxfp4, e2m1 with a power of two for each 32 (CompressorKind::kIndexMxfp4).
  NumberFormat format = NumberFormat::kMxfp4;
  std::int64_t heads = 64;  ///< 1 to 64
  std::int64_t topk = 512;  ///< 1 to 2048
  std::int64_t ratio = 4;   ///< tokens that an entry stands for
  /// Most entries of a sequence; entries beyond are not read.
  std::int64_t max_len = 0;
  /// Pages of keys, as Compressor writes them; the layout's format does not count.
  KvCacheLayout keys = {};
  /// Cache whose rows are selected; only sizes count. num_pages 0: rows are entries.
  KvCacheLayout rows = {};
  /// Write -inf to the logits of entries that a token does not see, instead of leaving them
  /// unwritten: for inspection.
  bool fill_logits = false;
};

/// What a call of given size launches; there is nothing to choose. The schedule is listed, which a
/// call may reuse instead.
struct IndexerPlan : Plan {
  IndexerProblem problem;  ///< with all defaults filled in
};

struct IndexerArguments {
  std::int64_t tokens = 0;
  SequenceBatch sequences;                  ///< starts are not used
  const std::int32_t* positions = nullptr;  ///< [tokens]; < 0: skipped
  const std::int32_t* lengths = nullptr;    ///< [tokens] or null: by the positions
  const void* q = nullptr;                  ///< bf16 [tokens, heads, 128]
  /// Elements, multiples of 8; 0: contiguous.
  std::int64_t q_token_stride = 0, q_head_stride = 0;
  const void* weights = nullptr;       ///< [tokens, heads], not scaled; may be negative
  DType weights_dtype = DType::kBF16;  ///< or kF32
  std::int64_t weights_stride = 0;     ///< elements; 0: heads
  /// One table, rope_table() from position 0. A token with a position beyond is skipped.
  RotaryTable rope = {};
  const void* key_pages = nullptr;  ///< the cache of keys, 16-byte aligned
  SequencePages key_table;          ///< pages of the sequences' keys
  SequencePages row_table;          ///< pages of the cache that attention reads
  std::int32_t* rows = nullptr;     ///< [tokens, topk]
  std::int64_t rows_stride = 0;     ///< elements; 0: topk
  std::int32_t* counts = nullptr;   ///< [tokens] how many rows there are; or null
  void* workspace = nullptr;        ///< workspace_bytes(), 256-byte aligned
  /// The last run with this workspace had the same lengths, as in the layers of a step: its
  /// schedule is used again.
  bool reuses_schedule = false;
  void* stream = nullptr;  ///< CUstream; null: the default stream
};

/// One kernel each.
enum class IndexerStep {
  kQuery,     ///< queries quantised, their scales multiplied into weights
  kSchedule,  ///< work items of the CTAs, by lengths that are known on the device alone
  kLogits,
  kSelect,
};

/// What a run leaves in the workspace.
struct IndexerResults {
  const void* codes;           ///< [tokens, heads, 128 or 64 bytes]
  const std::uint8_t* scales;  ///< MXFP4: ue8m0 [tokens, heads, 4]
  const float* weights;        ///< [tokens, heads] scaled, for FP8 with the queries' scales
  const float* logits;         ///< [tokens, logits_stride]
  std::int64_t logits_stride;
};

/// Thread   run() may be called from several threads if workspaces and outputs differ
class Indexer {
 public:
  /// Errors   InvalidArgument naming field, value and rule; Unsupported on a device without the
  ///          kernels
  Indexer(const Device& device, const IndexerProblem& problem);
  ~Indexer();
  Indexer(Indexer&&) noexcept;
  Indexer& operator=(Indexer&&) noexcept;

  const IndexerProblem& problem() const noexcept;  ///< with defaults filled in
  std::size_t key_cache_bytes() const noexcept;    ///< of all pages of keys
  /// For calls of up to this many tokens of this many sequences. Most of it are logits, 4 bytes for
  /// every token and entry of max_len: give long prompts in chunks.
  std::size_t workspace_bytes(std::int64_t tokens, std::int64_t batch) const;
  /// Enqueues the steps. Allocates nothing, waits for nothing; may be captured in a CUDA graph.
  /// Bit-exact from run to run.
  /// Errors   InvalidArgument naming field, value and rule; DeviceError
  void run(const IndexerArguments& arguments) const;
  /// One step alone, after those before it.
  void run(const IndexerArguments& arguments, IndexerStep step) const;
  IndexerResults results(const IndexerArguments& arguments) const;
  /// What a call of `tokens` tokens in `batch` sequences launches, and the workspace that it needs.
  /// Errors   InvalidArgument for numbers below 0
  IndexerPlan plan(std::int64_t tokens, std::int64_t batch) const;
  /// The plan's text.
  std::string to_string(std::int64_t tokens, std::int64_t batch) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The plan alone. Errors as Indexer's constructor.
IndexerPlan plan_indexer(const Device& device, const IndexerProblem& problem, std::int64_t tokens,
                         std::int64_t batch);

/// What a layer stores between its projections and its attention, in one launch. These calls do not
/// depend on each other, and have one stream: KvCache::write(), the run() of a
/// compressor of kCsa or kHca, and of a CSA layer that of its indexer's keys and the indexer's step
/// kQuery.
struct LayerRowsArguments {
  const KvCache* cache = nullptr;
  KvWriteArguments write = {};
  const Compressor* compressor = nullptr;
  CompressorArguments entries = {};
  const Compressor* keys = nullptr;  ///< of kCsa: kIndexFp8 or kIndexMxfp4; of kHca null
  CompressorArguments of_keys = {};
  const Indexer* indexer = nullptr;  ///< if there are keys
  IndexerArguments queries = {};
};

/// A plan with its kernels loaded on a device.
///
/// Thread   as Compressor
class LayerRows {
 public:
  /// Errors   Unsupported on a device without the kernels
  explicit LayerRows(const Device& device);
  ~LayerRows();
  LayerRows(LayerRows&&) noexcept;
  LayerRows& operator=(LayerRows&&) noexcept;

  /// Enqueues one kernel, with the results of the single calls to the bit; these one after the
  /// other where tokens are many or a compressor takes two launches. Allocates nothing, waits for
  /// nothing; may be captured in a CUDA graph.
  /// Errors   as the single calls; InvalidArgument if operators are missing, do not fit each other
  ///          or have different streams
  void run(const LayerRowsArguments& arguments) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tilewright
