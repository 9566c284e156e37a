#include "sim/time/l2_contents.h"

#include <algorithm>
#include <cmath>

namespace tilewright::sim {

double touched_bytes(const LaunchTrace& trace, const TracedArea& area) {
  if (trace.clusters.size() == trace.num_clusters) return area.union_bytes;
  const double part =
      static_cast<double>(trace.clusters.size()) / static_cast<double>(trace.num_clusters);
  return std::min(static_cast<double>(area.size_bytes), area.distinct_bytes / part);
}

bool is_written(const TracedArea& area) {
  constexpr double kGoodPart = 1.0 / 3;
  return area.written_bytes > kGoodPart * area.distinct_bytes;
}

double miss_fading(double miss) {
  if (miss <= 0 || miss >= 1) return 0;
  constexpr int kHalvings = 40;
  double low = 0, high = 1 / miss;
  for (int i = 0; i < kHalvings; ++i) {
    const double f = (low + high) / 2;
    (-std::expm1(-f) / f > miss ? low : high) = f;
  }
  return low;
}

void L2Contents::mark(LaunchTrace& trace, double l2_bytes) const {
  for (TracedArea& area : trace.areas) {
    const auto found = written_.find(area.id);
    area.is_held = found != written_.end() && passed_ - found->second <= l2_bytes;
  }
}

void L2Contents::add(const LaunchTrace& trace) {
  if (trace.clusters.empty()) return;
  for (const TracedArea& area : trace.areas) passed_ += touched_bytes(trace, area);
  for (const TracedArea& area : trace.areas) {
    if (is_written(area)) written_[area.id] = passed_;
  }
}

}  // namespace tilewright::sim
