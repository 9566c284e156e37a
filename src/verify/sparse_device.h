// Sparse attention on a device: operands in its memory, runs and times, and FlashMLA beside it.
#pragma once

#include "tilewright/buffer.h"
#include "tilewright/stream.h"

#include "verify/clock/clocked_timer.h"
#include "verify/sparse_data.h"

#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace tilewright::cli {

/// The operands of a SparseData, and room for results.
class SparseOperands {
 public:
  SparseOperands(const Device& device, const SparseData& data);

  /// With a set of indices. Workspace is that of the plan, which must be prepared.
  SparseAttentionArguments arguments(std::size_t set) const;
  void prepare(const SparseAttentionPlan& plan);

  std::size_t sets() const { return sets_; }
  const SparseData& data() const { return data_; }
  const Stream& stream() const { return stream_; }
  /// Some queries against float64.
  nlohmann::json check(std::int64_t queries, std::size_t set) const;
  void poison();

  /// Microseconds of what `work` enqueues.
  double time_us(const std::function<void()>& work) const { return timer_.time_us(stream_, work); }
  /// Of a graph of several calls that take the sets in turn, per call. Adds runs_per_sample.
  ClockedTimes measure(const std::function<void(std::size_t set)>& enqueue, int samples,
                       nlohmann::json& log) const;

 private:
  struct List {
    std::unique_ptr<Buffer> pages, lengths;
    std::vector<Buffer> indices;
    SparseListArguments arguments(std::size_t set) const;
  };
  List upload(const SparseListData& list) const;

  const Device& device_;
  const SparseData& data_;
  std::size_t sets_;
  Stream stream_;
  StreamTimer timer_;
  Buffer q_, sink_, out_, lse_;
  List window_, compressed_;
  std::unique_ptr<Buffer> workspace_;
};

/// FlashMLA behind a C interface in a shared library of the user's: see docs/05-benchmarks.md.
/// Heads below 64 are padded to 64, which is what its users do.
class FlashMlaPeer {
 public:
  /// Errors   InvalidArgument if the file is no such library
  explicit FlashMlaPeer(const std::string& file);
  ~FlashMlaPeer();
  FlashMlaPeer(const FlashMlaPeer&) = delete;
  FlashMlaPeer& operator=(const FlashMlaPeer&) = delete;

  /// Why it cannot do a problem; empty if it can.
  static std::string obstacle(const SparseAttentionProblem& problem);
  /// Runs, checks and times; a sample of the log without its description.
  nlohmann::json run(const Device& device, const SparseData& data, int samples) const;

 private:
  void* library_ = nullptr;
  void* decode_ = nullptr;   // flashmla_decode_flags
  void* prefill_ = nullptr;  // flashmla_prefill
};

}  // namespace tilewright::cli
