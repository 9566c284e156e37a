// Predicted times as data and for people.
#pragma once

#include "sim/report/prediction.h"

#include <array>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

namespace tilewright::sim {

/// {"us", "launch_us", "launches", "ctas", "ctas_traced", "busy_us": by unit, "wait_us": by cause},
/// or {"problem"} if there is none.
nlohmann::json prediction_json(const Prediction& prediction);

/// The causes of one line of PTX, in microseconds: {"mbarrier": 12.3}; what is nothing is left out.
nlohmann::json line_wait_json(const std::array<double, kNumWaitCauses>& causes);

/// Two indented lines: the time with its parts, and what warps wait for.
std::string prediction_text(const Prediction& prediction);

/// Predictions by kernel, in the order of their first launch. Thread   not safe
class PredictionList {
 public:
  void add(const std::string& kernel, const Prediction& prediction);
  /// A table of all, the longest first, with their sum.
  std::string text() const;

 private:
  std::vector<std::pair<std::string, Prediction>> kernels_;
};

/// The timeline in the format of Chrome's and Perfetto's traces: a row for each warp and one for
/// the tensor cores, microseconds.
nlohmann::json timeline_json(const std::string& kernel, const Prediction& prediction);

}  // namespace tilewright::sim
