// The lightning indexer on a device: operands in its memory, runs, times, and DeepGEMM beside it.
#pragma once

#include "tilewright/buffer.h"
#include "tilewright/stream.h"

#include "verify/clock/clocked_timer.h"
#include "verify/indexer_data.h"

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace tilewright::cli {

/// The operands of an IndexData, and room for results.
class IndexOperands {
 public:
  IndexOperands(const Device& device, const IndexData& data, const Indexer& indexer);

  /// With a table of pages.
  IndexerArguments arguments(std::size_t table) const;
  std::size_t tables() const { return tables_.size(); }
  const IndexData& data() const { return data_; }
  const Indexer& indexer() const { return indexer_; }
  const Stream& stream() const { return stream_; }
  const Buffer& pages() const { return pages_; }

  /// Some tokens of the last run, which was under this table, against float64.
  nlohmann::json check(std::int64_t tokens, std::size_t table) const;
  /// Logits of others on the codes of the last run: [tokens, stride].
  nlohmann::json check_logits(const Buffer& logits, std::int64_t stride, std::int64_t tokens,
                              std::size_t table) const;

  /// Microseconds of what `work` enqueues.
  double time_us(const std::function<void()>& work) const { return timer_.time_us(stream_, work); }
  /// Of a graph of several calls that take the tables in turn, per call.
  ClockedTimes measure(const std::function<void(std::size_t table)>& enqueue, int samples) const;

 private:
  std::vector<double> found_query(std::int64_t token) const;
  std::vector<double> found_weights(std::int64_t token) const;
  std::vector<double> exact_query(std::int64_t token) const;
  std::vector<double> exact_logits(std::int64_t token, std::size_t table) const;
  std::vector<std::int32_t> exact_rows(std::int64_t token, std::span<const float> logits) const;

  const Device& device_;
  const IndexData& data_;
  const Indexer& indexer_;
  Stream stream_;
  StreamTimer timer_;
  Buffer q_, weights_, rope_, positions_, lengths_, pages_, row_table_;
  Buffer workspace_, rows_, counts_;
  std::vector<Buffer> tables_;
};

/// Tokens spread over a call, at most `count`.
std::vector<std::int64_t> spread_tokens(std::int64_t tokens, std::int64_t count);

/// DeepGEMM behind a C interface in a shared library of the user's: docs/05-benchmarks.md.
class DeepGemmPeer {
 public:
  /// Errors   InvalidArgument if the file is no such library
  explicit DeepGemmPeer(const std::string& file);
  ~DeepGemmPeer();
  DeepGemmPeer(const DeepGemmPeer&) = delete;
  DeepGemmPeer& operator=(const DeepGemmPeer&) = delete;

  /// Why it cannot do a problem; empty if it can.
  static std::string obstacle(const IndexShape& shape);
  /// Logits from the codes that the last run left: runs, checks and times. A sample of the log
  /// without its description.
  nlohmann::json run(const Device& device, const IndexOperands& operands, int samples) const;

 private:
  nlohmann::json run_paged(const Device& device, const IndexOperands& operands, int samples) const;
  nlohmann::json run_contiguous(const Device& device, const IndexOperands& operands,
                                int samples) const;

  void* library_ = nullptr;
  void* paged_ = nullptr;       // deepgemm_paged_mqa_logits
  void* contiguous_ = nullptr;  // deepgemm_mqa_logits
};

}  // namespace tilewright::cli
