#include "sim/report/launch_progress.h"

#include "sim/event/finding.h"

#include <fmt/format.h>

namespace tilewright::sim {

std::string LaunchProgress::launched(const std::string& kernel, double now) {
  constexpr double kSecondsApart = 10;
  Count& count = kernels_[kernel];
  ++count.now;
  if (count.now < count.next || now - told_at_ < kSecondsApart) return {};
  for (; count.next <= count.now; count.is_power = !count.is_power) {
    count.next = count.is_power ? count.next * 3 : count.next / 3 * 10;
  }
  told_at_ = now;
  return fmt::format("sim: {} launches of {} so far\n", count.now, readable_name(kernel));
}

}  // namespace tilewright::sim
