// What the ladder's log says, in the order in which it is told.
#pragma once

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace tilewright::cli {

/// One result: a kernel on a shape.
struct LadderPoint {
  double tflops = 0;           ///< of the median; 0 without times
  double flops_per_byte = 0;   ///< of operands and results, each moved once; 0 if not known
  double worst_of_bound = -1;  ///< of out and lse; -1 if it was not checked
  double relative_rms = 0;
  std::string refused;  ///< why there is no result
  nlohmann::json counted;

  bool is_refused() const { return !refused.empty(); }
};

/// One kernel, of ours or a peer.
struct LadderKernel {
  std::string name, idea, source;
  bool is_fp8 = false;  ///< its products are of e4m3: twice as many a clock
  bool is_peer() const { return source != "tilewright"; }
  friend bool operator==(const LadderKernel& a, const LadderKernel& b) {
    return a.name == b.name && a.source == b.source;
  }
};

/// All shapes that differ in length only: a plot.
struct LadderGroup {
  std::string title;  ///< "causal, head_dim 128"
  std::int64_t head_dim = 0;
  bool is_causal = false;
  std::vector<std::int64_t> lengths;
  std::vector<std::vector<std::optional<LadderPoint>>> points;  ///< [kernel][length]
};

struct LadderView {
  bool is_simulated = false;
  double ceiling_tflops = 0;  ///< of products of 16 bits
  double ceiling_of(const LadderKernel& kernel) const {
    return kernel.is_fp8 ? fp8_ceiling_tflops() : ceiling_tflops;
  }
  /// Twice as much, but for the rounding of the data sheet: 989 and 1979 on an H200.
  double fp8_ceiling_tflops() const { return std::round(ceiling_tflops * (1979.0 / 989)); }
  std::vector<LadderKernel> kernels;
  std::vector<LadderGroup> groups;
};

/// Errors   ParseError if the log is none, or of another schema
LadderView read_ladder(const nlohmann::json& log);

/// The unit with the largest bound of a simulated result, in seconds, and all of them.
std::vector<std::pair<std::string, double>> ladder_bounds(const LadderPoint& point);

}  // namespace tilewright::cli
