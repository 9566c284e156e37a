// The sixteen barriers of a CTA: barrier.cta.{sync,arrive,red}, bar.*.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace tilewright::sim {

inline constexpr std::uint32_t kNumNamedBarriers = 16;
inline constexpr std::uint32_t kMaxWarpsOfCta = 32;

enum class BarrierError : std::uint8_t {
  kNone,
  kIdRange,        ///< 16 or more
  kCountMultiple,  ///< a thread count that is 0 or no multiple of the warp size
  kCountMismatch,  ///< another count than the others of this generation
  kArrivedTwice,   ///< a thread that waits in this generation already
  kTooMany,        ///< more threads than the count
};

/// All threads of some warp that come to a barrier by one instruction.
struct BarrierArrival {
  std::uint32_t id = 0;
  std::uint32_t warp = 0;
  std::uint32_t lanes = 0xffffffff;    ///< those that execute it
  std::optional<std::uint32_t> count;  ///< nothing: all threads of the CTA
  bool is_waiting = true;              ///< sync and red; not arrive
  std::uint32_t predicates = 0;        ///< red: the lanes whose predicate is true
};

/// What barrier.red gives every thread of a generation.
struct BarrierReduction {
  std::uint32_t popc = 0;
  bool all = true, any = false;
};

struct BarrierResult {
  BarrierError error = BarrierError::kNone;
  std::string problem;               ///< with the values; "" without error
  std::uint32_t generation = 0;      ///< that the arrival belongs to
  bool is_released = false;          ///< the generation is complete, by this arrival
  std::uint32_t released_warps = 0;  ///< bit w: warp w has lanes that waited for it
  BarrierReduction reduction;        ///< if released
};

/// What the exit of threads released, one for each barrier.
struct BarrierReleases {
  std::uint32_t barriers = 0;  ///< bit i: barrier i
  std::array<std::uint32_t, kNumNamedBarriers> warps{};
  std::array<BarrierReduction, kNumNamedBarriers> reductions{};
};

/// A barrier's generation is complete when its count of threads has arrived; it is ready for the
/// next one at once. A warp counts as 32 threads when all its live lanes are there, so that a last
/// warp that is not full, or has exited lanes, does not hang the others. A generation in which only
/// warps that have exited are missing is complete as well, once all others wait in it. A warp that
/// arrives without waiting may come again in the same generation and counts again.
///
/// A waiting warp is free when generation() is no longer what its arrival returned.
class NamedBarriers {
 public:
  explicit NamedBarriers(std::uint32_t num_threads);

  BarrierResult arrive(const BarrierArrival& arrival);
  BarrierReleases exit(std::uint32_t warp, std::uint32_t lanes);

  std::uint32_t generation(std::uint32_t id) const { return barriers_[id].generation; }
  /// Lanes of the warp that wait at the barrier in its current generation.
  std::uint32_t waiting_lanes(std::uint32_t id, std::uint32_t warp) const {
    return barriers_[id].waiting[warp];
  }
  bool is_idle(std::uint32_t id) const { return barriers_[id].arrived_warps == 0; }

  /// "barrier 3: 64 of 128 threads arrived (warps 0 1), waiting: warps 0"; for deadlock reports.
  std::string describe(std::uint32_t id) const;

 private:
  struct Barrier {
    std::uint32_t expected = 0;  // threads; 0 while idle
    std::uint32_t generation = 0;
    std::uint32_t arrived_warps = 0;     // with at least one lane
    std::uint32_t repeated_threads = 0;  // of warps that have come again since
    std::array<std::uint32_t, kMaxWarpsOfCta> arrived{}, waiting{};  // lanes
    BarrierReduction reduction;
  };

  BarrierError check(const BarrierArrival& arrival, std::uint32_t count) const;
  /// What lanes of a warp count for.
  std::uint32_t counted(std::uint32_t warp, std::uint32_t lanes) const;
  std::uint32_t arrived_threads(const Barrier& barrier) const;
  bool is_complete(const Barrier& barrier) const;
  std::uint32_t release(Barrier& barrier);  // the warps that waited

  std::uint32_t num_warps_ = 0;
  std::array<std::uint32_t, kMaxWarpsOfCta> live_{};  // lanes
  std::array<Barrier, kNumNamedBarriers> barriers_;
};

}  // namespace tilewright::sim
