// How long work on a GPU takes, and at which clock it ran: counted by the SMs, since what drivers
// say is an average that a short call does not change.
#pragma once

#include "tilewright/buffer.h"
#include "tilewright/stream.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <vector>

namespace tilewright::cli {

struct ClockedTime {
  double us = 0;
  double sm_mhz = 0;  ///< the median of the SMs; 0: not known, as on a simulator
};

/// Samples of one thing.
struct ClockedTimes {
  std::vector<double> us, sm_mhz;

  void add(const ClockedTime& time, double calls = 1) {
    us.push_back(time.us / calls);
    if (time.sm_mhz > 0) sm_mhz.push_back(time.sm_mhz);
  }
  /// Members "samples_us" and, where all of them are known, "samples_mhz".
  void write(nlohmann::json& log) const;
};

/// The clock of an SM from its clocks and the device's nanoseconds, before and after: the median of
/// those SMs that have both; 0 without any. Two numbers of an SM, zeros where nothing was written.
double median_sm_mhz(const std::vector<std::uint64_t>& before,
                     const std::vector<std::uint64_t>& after);

/// StreamTimer, with a small kernel before the first event and one after the second, that write
/// down the clock of every SM.
class ClockedTimer {
 public:
  explicit ClockedTimer(const Device& device);
  ~ClockedTimer();
  ClockedTimer(const ClockedTimer&) = delete;
  ClockedTimer& operator=(const ClockedTimer&) = delete;

  /// What `enqueue` puts on the stream, all of which is done when this returns.
  /// Errors   DeviceError
  ClockedTime time(const Stream& stream, const std::function<void()>& enqueue) const;

 private:
  struct Probe;
  Event begin_, end_;
  std::unique_ptr<Probe> probe_;  ///< none where SMs have no clocks
};

}  // namespace tilewright::cli
