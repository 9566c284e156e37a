// Attention on a device: buffers, runs and times.
#pragma once

#include "tilewright/attention.h"
#include "tilewright/buffer.h"
#include "tilewright/stream.h"

#include "verify/attention/data.h"
#include "verify/attention/fp8.h"
#include "verify/clock/clocked_timer.h"

#include <memory>
#include <optional>

namespace tilewright::cli {

/// The operands of a problem in device memory, and room for results.
class AttentionBench {
 public:
  /// Copies the operands to the device.
  AttentionBench(const Device& device, const AttentionData& data);

  /// Makes room for results and workspaces of these plans. Results are poisoned.
  void prepare(const AttentionPlan& plan);
  /// Makes e4m3 operands of those on the device, for problems of that type, and enqueues that.
  void round_operands(const AttentionPrepareProblem& problem);
  /// Enqueues one run; the problem's tensors must lie within the operands.
  void enqueue(const Attention& attention);
  void synchronize() const { stream_.synchronize(); }

  /// One run with a cold cache, by events around the launches.
  ClockedTime time_cold(const Attention& attention);
  /// The same of round_operands().
  double time_cold_rounding_us();
  /// Bytes that are written before a timed run to empty the L2 cache.
  std::size_t flush_bytes() const;

  std::vector<std::uint16_t> read_out(const AttentionProblem& problem) const;
  std::vector<float> read_lse(const AttentionProblem& problem) const;

 private:
  AttentionArguments arguments() const;
  ClockedTime time_cold(const std::function<void()>& enqueue);

  const Device& device_;
  Stream stream_;
  ClockedTimer timer_;
  Buffer q_, k_, v_, sink_, cu_q_, cu_kv_;
  std::unique_ptr<Fp8Operands> rounded_;
  std::unique_ptr<Buffer> out_, lse_, workspace_, flush_;
};

}  // namespace tilewright::cli
