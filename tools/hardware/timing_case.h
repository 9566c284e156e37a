// Timing probes: which pieces of code are timed, under which conditions, and what was read.
//
// The constants of the simulator's timing model (sim/time/time_parameters.cpp) are held to a
// recording of these.
#pragma once

#include "device/device.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tilewright::hardware {

/// What one sample of a probe is.
enum class Reading : std::uint8_t {
  kSpan,   ///< clocks from the first begin to the last end of a CTA's warps; of the first CTA
  kMean,   ///< the same of all CTAs, their mean
  kWarps,  ///< clocks of each warpgroup's first warp: a list
  kMarks,  ///< clocks from the first mark of the first warp to each other: a list
  kGaps,   ///< clocks from the end of a CTA to the begin of the next one on its SM
  kMicroseconds,  ///< of a launch, between two events
  kPlaces,  ///< of launches in a graph, 5000 clocks each: SMs that have CTAs, and the most of one
  kClock,   ///< MHz and microseconds by the marks of all CTAs, their mean: a list
};

/// What L2 holds before a launch.
enum class Caches : std::uint8_t {
  kWarm,       ///< what an earlier launch of the same left
  kDirty,      ///< lines of other memory that were written
  kClean,      ///< lines of other memory that were read
  kOtherCode,  ///< the same, and the SMs have run 256 KiB of other code
};

struct TimingCase {
  std::string name;
  std::string kernel;  ///< without "timing_probe_"
  std::uint32_t blocks = 1, threads = 32, cluster = 1, shared_bytes = 0;
  std::uint32_t iterations = 20, stride = 0, count = 0;  ///< TimingProbeParams
  std::uint64_t memory_bytes = 4096;
  bool is_dependent = false;  ///< of kPlaces: a launch may begin before the one before it ends
  bool has_zeros = false;     ///< operands are zeros where they would be drawn
  Caches caches = Caches::kWarm;
  Reading reading = Reading::kSpan;
  std::uint32_t num_marks = 2;  ///< of kMarks
  std::uint32_t launches = 1;   ///< each gives samples
  double operations = 1;        ///< that one sample is of: of a warp, or bytes
};

/// All of them, in the order in which they are run.
std::vector<TimingCase> timing_cases();

struct TimingSamples {
  /// One list per sample; of one number unless the reading is a list
  std::vector<std::vector<double>> values;
};

/// Runs cases, with memory that they share.
class TimingRunner {
 public:
  explicit TimingRunner(const device::Device& device);
  ~TimingRunner();
  TimingRunner(const TimingRunner&) = delete;
  TimingRunner& operator=(const TimingRunner&) = delete;

  /// Errors   as Kernel::launch
  TimingSamples run(const TimingCase& timing);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Microseconds of launches that do nothing: `name`, and samples of so many launches each.
struct LaunchSamples {
  std::string name;
  double launches = 1;
  std::vector<double> microseconds;
};
std::vector<LaunchSamples> time_launches(const device::Device& device);

}  // namespace tilewright::hardware
