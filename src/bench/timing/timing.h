// Predicted times beside measured ones: points of committed logs, run on a simulated H200 that
// predicts how long they take.
#pragma once

#include "report/terminal.h"

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace tilewright::cli {

/// What is taken of the logs; empty lists: everything.
struct TimingChoice {
  std::vector<std::string> kernels;
  std::vector<std::int64_t> lengths, head_dims;
  std::vector<std::int64_t> rows, features;  ///< of linear layers: m (else batch), and n
  std::string mask = "both";                 ///< "full", "causal", "both"
  double most_us = 3000;                     ///< longer ones take the simulator long
  int sample = 12;                           ///< clusters of a launch that are run
};

enum class TimedOperator : std::uint8_t {
  kAttention,
  kLinear,
  kDecode,
  kSparse,
  kLatent,
  kIndexer,
  kExperts,
  kBlockScaled,
  kQuantize,
  kCompressor,
  kCacheWrite,
  kHyperConnection
};

/// A row of a log that was measured on an H200.
struct TimingPoint {
  std::string shape;  ///< "full d128 n4096", "w4a16 m64 n4096 k4096"
  std::string kernel;
  std::string format;  ///< of sparse attention and the indexer: that of their caches
  TimedOperator timed = TimedOperator::kAttention;
  nlohmann::json problem;
  double measured_us = 0;  ///< median
  double clock_mhz = 0;    ///< at which it was measured
  bool is_clock_counted =
      false;                ///< by the SMs, while it ran; else what the driver said, or a guess
  bool has_single = false;  ///< of experts: an FP8 expert of all tokens beside
  bool is_for_fp8 = false;  ///< of experts: their weights are prepared for activations of FP8
  std::string calibrates;   ///< constants of the model that come from it; "" if none does
};

/// The measured rows of our own kernels that are chosen, of a log of `tilewright ladder`, of
/// `tilewright bench decode`, `sparse`, `indexer` or `moe`, or of bench/linear_peers.py.
/// Errors   InvalidArgument if it is a log of something else
std::vector<TimingPoint> timing_points(const nlohmann::json& log, const TimingChoice& choice);

/// The shape as tables have it, of experts with format and tokens: kernels at the same one are
/// compared with each other.
std::string title_of(const TimingPoint& point);

/// Runs a sample of the CTAs of each point, but of those that calibrate none: they are
/// "calibration" in the result. Returns   {"points": [...], "summary": {...}}; of each
/// point the times, and where the log has counted clocks, the error of the number of clocks, which
/// the prediction of the clock has no part in.
nlohmann::json run_timing(const std::vector<TimingPoint>& points, const TimingChoice& choice);

/// How well predictions fit: mean and largest error, and of kernels at the same shape whether they
/// come in the measured order. `points` as in run_timing(): "shape", "kernel", "predicted_us" and
/// "measured_us".
nlohmann::json timing_summary(const nlohmann::json& points);

std::string timing_table(const nlohmann::json& result, const Style& style);

}  // namespace tilewright::cli
