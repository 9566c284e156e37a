// The barrier of a cluster: barrier.cluster.arrive and .wait.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tilewright::sim {

enum class ClusterBarrierError : std::uint8_t {
  kNone,
  kArrivedTwice,       ///< arrives again without having waited
  kWaitWithoutArrive,  ///< waits without having arrived
};

/// "arrives again without having waited": to follow the instruction's name.
const char* to_string(ClusterBarrierError error) noexcept;

/// A generation is complete when every thread that has not exited has arrived. Each thread waits
/// after it has arrived and before it arrives again.
/// Thread   the callers' business: one at a time
class ClusterBarrier {
 public:
  ClusterBarrier(std::uint32_t num_ctas, std::uint32_t num_threads_per_cta);

  struct Result {
    ClusterBarrierError error = ClusterBarrierError::kNone;
    bool is_complete = false;  ///< arrive, exit: a generation, by this; wait: the one waited for
  };

  Result arrive(std::uint32_t cta, std::uint32_t warp, std::uint32_t lanes);
  /// True once the generation of the lanes' arrival is complete; ask again until then.
  Result wait(std::uint32_t cta, std::uint32_t warp, std::uint32_t lanes);
  Result exit(std::uint32_t cta, std::uint32_t warp, std::uint32_t lanes);

  std::uint64_t generation() const noexcept { return generation_; }

  /// "cluster barrier: 96 of 256 threads arrived, missing: CTA 1 warps 0 1 2 3, ..."
  std::string describe() const;

 private:
  struct Warp {
    std::uint32_t live = 0;     // lanes
    std::uint32_t arrived = 0;  // in this generation
    std::uint32_t owing = 0;    // arrived, in this generation or the last, and have not waited
  };

  Warp& warp_of(std::uint32_t cta, std::uint32_t warp) { return warps_[cta * num_warps_ + warp]; }
  bool complete_if_all();

  std::uint32_t num_ctas_;
  std::uint32_t num_warps_;  // per CTA
  std::uint64_t num_missing_ = 0;
  std::uint64_t num_arrived_ = 0;
  std::uint64_t generation_ = 0;
  std::vector<Warp> warps_;
};

}  // namespace tilewright::sim
