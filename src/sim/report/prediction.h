// How long the timing model says that a launch takes, and why: plain data for reports.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright::sim {

/// What warps wait for.
enum class WaitCause : std::uint8_t {
  kOperand,      ///< the result of an earlier instruction
  kSharedData,   ///< ... of a load from shared memory, or a shuffle
  kGlobalData,   ///< ... of a load from global memory
  kPipe,         ///< the unit is busy
  kIssue,        ///< another warp issues
  kTensorQueue,  ///< tensor cores accept no more
  kTensor,       ///< products
  kMbarrier,
  kNamedBarrier,
  kClusterBarrier,
  kGridBarrier,  ///< of a cooperative launch
  kCopies,       ///< cp.async, bulk groups, tcgen05.ld and st
  kCode,         ///< the instruction itself is fetched
  kOwn,          ///< what the instruction itself takes: branches, fences, the issue of copies
};
inline constexpr std::size_t kNumWaitCauses = static_cast<std::size_t>(WaitCause::kOwn) + 1;

/// Units of an SM, or its share of the chip's.
enum class TimedUnit : std::uint8_t {
  kTensor,
  kSpecial,
  kFma,
  kAlu,
  kDouble,
  kIssue,
  kShared,
  kL2,
  kHbm,
};
inline constexpr std::size_t kNumTimedUnits = static_cast<std::size_t>(TimedUnit::kHbm) + 1;

/// "mbarrier", "named barrier"
std::string_view name_of(WaitCause cause) noexcept;
/// "tensor", "special function"
std::string_view name_of(TimedUnit unit) noexcept;

/// A stretch of time of one warp, or of the tensor cores.
struct TimelineSpan {
  double begin = 0, end = 0;  ///< clocks from the start of the CTA's SM
  std::int32_t warp = 0;      ///< in the CTA; -1: the tensor cores
  WaitCause cause = WaitCause::kOwn;
  std::uint32_t line = 0;  ///< of PTX
  /// Of a wait at a barrier: the warp of the CTA whose arrival, or whose copy, ended it; -1: none
  std::int32_t ended_by = -1;
};

/// One launch, or several summed.
struct Prediction {
  double seconds = 0;                          ///< all of it
  double launch_seconds = 0;                   ///< of it: until the first instruction runs
  double clock_hz = 0;                         ///< at which it runs: products lower it
  std::array<double, kNumTimedUnits> busy{};   ///< seconds of each unit on the SM that ends last
  std::array<double, kNumWaitCauses> waits{};  ///< shares of the warps' time, weighted by seconds
  std::map<std::uint32_t, std::array<double, kNumWaitCauses>> lines;  ///< likewise, by line of PTX
  std::uint64_t num_launches = 0;
  std::uint64_t num_traced = 0, num_ctas = 0;  ///< CTAs that were looked at, and all
  std::uint64_t num_left_out = 0;              ///< CTAs that did not run: a sample did
  std::vector<TimelineSpan> timeline;          ///< of the last launch
  std::string problem;                         ///< why there is none; "" if there is
  bool has_machine_code = false;  ///< costs and order of instructions are those of a cubin
  std::string note;               ///< why not, if there is one

  void add(const Prediction& other);
};

/// What is said beside every predicted time.
inline constexpr std::string_view kPredictionNote =
    "predicted by a model, not measured: costs of instructions, constants of the device from "
    "measurements and public sources";

}  // namespace tilewright::sim
