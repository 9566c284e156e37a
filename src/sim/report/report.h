// The report of a machine: counts and bounds of every kernel that it ran.
#pragma once

#include "sim/report/usage.h"

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace tilewright::sim {

/// Kernels in the order of their first launch.
class Report {
 public:
  void add(const KernelUsage& usage);
  const std::vector<KernelUsage>& kernels() const noexcept { return kernels_; }

 private:
  std::vector<KernelUsage> kernels_;
};

/// Every count by the name of its member, times in seconds.
nlohmann::json report_json(const Report& report, const DeviceModel& model);

/// For people: aligned, the busiest lines only, at most 100 columns.
std::string report_table(const Report& report, const DeviceModel& model);

/// What both say about the bounds.
inline constexpr std::string_view kBoundNote =
    "bounds, not times: each unit at its peak rate with all else free; counted in PTX "
    "instructions, "
    "moves not issued; HBM with a cold L2 cache";

}  // namespace tilewright::sim
