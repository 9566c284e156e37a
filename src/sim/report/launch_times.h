// How long the simulator itself took, for TILEWRIGHT_SIM_TIMES: processor time, not the GPU's.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace tilewright::sim {

/// Processor time of this process so far, in seconds, of all its threads.
double processor_seconds();

/// Thread   not safe
class LaunchTimes {
 public:
  void add_load(double seconds);
  void add_launch(const std::string& kernel, double seconds);
  /// What the prediction of a launch's time took, beside the launch
  void add_prediction(double seconds);
  /// A line for each kernel, those that took longest first, and one for the translation of modules
  /// and for predictions.
  std::string text() const;

 private:
  struct Time {
    std::uint64_t count = 0;
    double seconds = 0;
  };
  static std::string line(std::string_view what, const Time& time);

  std::map<std::string, Time> kernels_;
  Time loads_, predictions_;
};

}  // namespace tilewright::sim
