#include "sim/report/launch_times.h"

#include <algorithm>
#include <ctime>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace tilewright::sim {

double processor_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

void LaunchTimes::add_load(double seconds) {
  ++loads_.count;
  loads_.seconds += seconds;
}

void LaunchTimes::add_launch(const std::string& kernel, double seconds) {
  Time& time = kernels_[kernel];
  ++time.count;
  time.seconds += seconds;
}

void LaunchTimes::add_prediction(double seconds) {
  ++predictions_.count;
  predictions_.seconds += seconds;
}

std::string LaunchTimes::line(std::string_view what, const Time& time) {
  return fmt::format("sim: time {:10.6f} s  {:6}  {}\n", time.seconds, time.count, what);
}

std::string LaunchTimes::text() const {
  std::vector<std::pair<std::string, Time>> sorted(kernels_.begin(), kernels_.end());
  std::ranges::stable_sort(sorted, std::ranges::greater{},
                           [](const auto& entry) { return entry.second.seconds; });
  std::string out;
  for (const auto& [kernel, time] : sorted) out += line(kernel, time);
  if (loads_.count != 0) out += line("(modules translated)", loads_);
  if (predictions_.count != 0) out += line("(times predicted)", predictions_);
  return out;
}

}  // namespace tilewright::sim
