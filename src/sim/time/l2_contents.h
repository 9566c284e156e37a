// What launches have left in L2.
#pragma once

#include "sim/time/trace.h"

#include <cstdint>
#include <unordered_map>

namespace tilewright::sim {

/// Bytes of the area that the whole launch touches, each counted once.
double touched_bytes(const LaunchTrace& trace, const TracedArea& area);

/// Whether the launch writes a good part of what it touches of the area, as of results and of
/// workspaces: what it reads there others of it may have written before.
bool is_written(const TracedArea& area);

/// How fast misses become fewer in an area of which the part `miss` of all requests misses: if they
/// come to its lines in no order, the chance that one is the first at its line is e^-fx behind the
/// part x of them, and of all it is (1 - e^-f) / f. Returns   f; 0 if none or all miss
double miss_fading(double miss);

/// Allocations that kernels have written: L2 holds them until as many bytes as it has room for were
/// touched since. What only the host has written is not in it.
class L2Contents {
 public:
  /// Says of the areas whether L2 holds them (TracedArea::is_held) as a launch begins.
  void mark(LaunchTrace& trace, double l2_bytes) const;
  /// After the launch.
  void add(const LaunchTrace& trace);

 private:
  std::unordered_map<std::uint64_t, double> written_;  ///< by allocation: passed_ at that time
  double passed_ = 0;                                  ///< bytes that launches have touched
};

}  // namespace tilewright::sim
