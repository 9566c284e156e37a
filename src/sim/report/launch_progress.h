// A line now and then for programs that launch one kernel over and over, as benchmarks do: on the
// simulator that takes long, and nothing else says what is going on.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace tilewright::sim {

/// Thread   not safe
class LaunchProgress {
 public:
  /// Times in seconds, from any start.
  explicit LaunchProgress(double now) : told_at_(now) {}

  /// After a launch: "sim: 312 launches of kernel so far", or "" for silence. A kernel is told of
  /// once it has 100 launches, 300, 1000, 3000 and so on, and nothing within 10 s of the last line
  /// or of the start.
  std::string launched(const std::string& kernel, double now);

 private:
  struct Count {
    std::uint64_t now = 0, next = 100;
    bool is_power = true;  ///< `next` is one of ten
  };

  std::map<std::string, Count> kernels_;
  double told_at_;
};

}  // namespace tilewright::sim
