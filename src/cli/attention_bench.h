// Attention on a device: buffers, runs, times, and what a simulator counts.
#pragma once

#include "tilewright/attention.h"

#include "cli/attention_data.h"
#include "cli/attention_fp8.h"
#include "device/memory.h"

#include <memory>
#include <nlohmann/json_fwd.hpp>
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

  /// One run with a cold cache, in microseconds by events around the launches.
  double time_cold_us(const Attention& attention);
  /// The same of round_operands().
  double time_cold_rounding_us();
  /// Bytes that are written before a timed run to empty the L2 cache.
  std::size_t flush_bytes() const;

  std::vector<std::uint16_t> read_out(const AttentionProblem& problem) const;
  std::vector<float> read_lse(const AttentionProblem& problem) const;

 private:
  AttentionArguments arguments() const;
  template <class Enqueue>
  double time_cold(Enqueue enqueue);

  const Device& device_;
  device::Stream stream_;
  device::Event begin_, end_;
  device::Buffer q_, k_, v_, sink_, cu_q_, cu_kv_;
  std::unique_ptr<Fp8Operands> rounded_;
  std::unique_ptr<device::Buffer> out_, lse_, workspace_, flush_;
};

/// Median, and the order statistics that enclose it with about 95 %.
struct TimeSummary {
  double median_us = 0, low_us = 0, high_us = 0;
};
TimeSummary summarize(std::vector<double> samples_us);

/// What a simulated device counted since the last call, summed over kernels; null on a GPU or if no
/// report was asked for (request_counts). See docs/03-simulator.md for the members.
nlohmann::json take_counts(const Device& device);
/// Before the device is opened: lets simulators count.
void request_counts();

/// "clocks", power and temperature as nvidia-smi says; null without it.
nlohmann::json read_clocks(const Device& device);

}  // namespace tilewright::cli
