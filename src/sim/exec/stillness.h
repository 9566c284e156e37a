// Whether anything still changes: deadlocks among warps that poll are seen by it.
#pragma once

#include "sim/state/warp.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace tilewright::sim {

/// Called for rounds in which no warp came any further. Warps that poll memory run then, too,
/// and what they count may let them go on in the end; but if all registers are as they were a while
/// ago, and again after that, nothing will ever change. Counting comes to an end as well: the more
/// warps there are, the fewer rounds they get.
class Stillness {
 public:
  /// Whether this is a deadlock.
  bool has_stopped(const std::vector<std::unique_ptr<Cluster>>& clusters);
  void start_again() noexcept { num_rounds_ = num_equal_ = 0; }

 private:
  std::uint64_t fingerprint_ = 0;
  std::uint32_t num_rounds_ = 0;
  std::uint32_t num_equal_ = 0;
};

}  // namespace tilewright::sim
