// Decode attention on a device: operands in its memory, runs, checks and times.
#pragma once

#include "tilewright/buffer.h"
#include "tilewright/stream.h"

#include "verify/clock/clocked_timer.h"
#include "verify/decode_data.h"

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <vector>

namespace tilewright::cli {

class DecodeOperands {
 public:
  /// `sets` copies of the caches, to be taken in turn.
  DecodeOperands(const Device& device, const DecodeData& data, std::size_t sets);

  /// Makes room for results and a workspace, all poisoned.
  void prepare(const AttentionDecodePlan& plan);
  void run(const AttentionDecode& decode, std::size_t set) const;
  void synchronize() const { stream_.synchronize(); }
  const Stream& stream() const { return stream_; }

  /// Some sequences of the last run against float64.
  nlohmann::json check(std::int64_t sequences) const;
  /// Of a call, in graphs of several calls that take the sets in turn.
  ClockedTimes measure(const AttentionDecode& decode, int samples) const;
  std::size_t sets() const { return k_.size(); }

 private:
  void fill(Buffer& cache, std::int64_t first) const;

  const Device& device_;
  const DecodeData& data_;
  Stream stream_;
  Buffer q_, new_k_, new_v_, lengths_, table_, cos_, sin_, sink_, numbers_;
  std::vector<Buffer> k_, v_;
  std::unique_ptr<Buffer> out_, lse_, workspace_;
};

/// Sets of caches that together are larger than the second-level cache several times over.
std::size_t decode_cold_sets(const Device& device, const DecodeData& data);

}  // namespace tilewright::cli
