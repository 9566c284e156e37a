// Intermediate values of a step, copied from the device to be compared.
#pragma once

#include "tilewright/tensor.h"

#include "model/kernel_runner/memory.h"
#include "model/model.h"
#include "model/sequences.h"

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

namespace tilewright::model {

/// Rows of a tensor on the device, one for each token of the step.
struct TappedRows {
  const void* data;
  DType dtype;
  std::vector<std::int64_t> shape;  ///< of a row
  std::int64_t stride = 0;          ///< elements from row to row; 0: contiguous
  std::int64_t inner_stride = 0;    ///< from shape[0] to shape[0]; 0: contiguous
};

/// Tells a sink of the stages of one step. Waits for the device at every stage: for comparisons,
/// not for speed.
class StageTap {
 public:
  StageTap(const Device& device, const StageSink& sink, std::vector<NewTokens> tokens)
      : device_(device), sink_(sink), tokens_(std::move(tokens)) {}

  using Change = std::function<void(std::vector<double>&)>;
  /// `change` is applied to all values first.
  void rows(std::string_view name, std::int64_t layer, const TappedRows& rows,
            const Change& change = {}) const;
  /// `rows`, or their sum with `more`, which the kernels add only where they use it.
  void sum_of_rows(std::string_view name, std::int64_t layer, const TappedRows& rows,
                   const TappedRows* more) const;
  /// Rows of a cache as they are stored: kv_fp8, kv_scale, kv_rope (fp8), else kv; or comp_...
  void window_rows(std::int64_t layer, const KernelMemory& memory) const;
  void entries(std::int64_t layer, const CompressedCache& cache, const ByteArray& pages) const;
  /// The keys of the indexer as numbers: idx_k.
  void index_keys(std::int64_t layer, const CompressedCache& cache, const ByteArray& pages,
                  bool is_fp8) const;
  /// Its queries of mxfp4: idx_q.
  void index_queries(std::int64_t layer, const IndexerResults& results, std::int64_t heads) const;
  /// Of the entries that a token sees; -inf for others: idx_scores.
  void index_scores(std::int64_t layer, const IndexerResults& results) const;
  /// Cache rows that tokens chose, as entries in ascending order, -1 last: idx_selected.
  void selection(std::int64_t layer, const CompressedCache& cache, const IntArray& list,
                 const IntArray& lengths, std::int64_t list_len) const;

 private:
  struct CacheRows;
  std::vector<double> fetch_rows(const NewTokens& tokens, const TappedRows& rows) const;
  void emit(std::string_view name, std::int64_t layer, const NewTokens& tokens,
            std::int64_t first_row, std::vector<std::int64_t> shape,
            const std::vector<double>& values) const;
  void cache_rows(std::string_view prefix, std::int64_t layer, const CacheRows& rows) const;

  const Device& device_;
  const StageSink& sink_;
  std::vector<NewTokens> tokens_;
};

}  // namespace tilewright::model
