// The sync check: mbarriers that are set up again in use, copies into CTAs that end. Deadlocks,
// wrong counts and their kin stop a kernel; the engine reports those (exec/stop.h).
#pragma once

#include "sim/async/mbarrier.h"
#include "sim/event/finding.h"
#include "sim/event/observer.h"

#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tilewright::sim {

class SyncChecker final : public Observer {
 public:
  SyncChecker(Findings& findings, bool is_strict) : findings_(findings), is_strict_(is_strict) {}

  bool wants_instructions() const override { return false; }
  bool is_thread_safe() const override { return true; }

  void cta_started(Cta& cta) override;
  void cta_ended(Cta& cta) override;
  std::uint64_t async_issued(Warp& warp, const Insn& insn,
                             const AsyncOperation& operation) override;
  void mbarrier(Warp& warp, const Insn& insn, const MbarrierEvent& event) override;
  void barrier(Warp& warp, const Insn& insn, std::uint32_t lanes,
               const BarrierEvent& event) override;
  void guarded_apart(Warp& warp, const Insn& insn, std::uint32_t active) override;
  std::vector<std::string> describe_mbarrier(const Cta& cta, std::uint32_t offset) override;
  std::vector<WarpName> missing_at_mbarrier(const Cta& cta, std::uint32_t offset) override;

 private:
  /// Arrivals of a warp by one instruction.
  struct Arrival {
    Execution by;
    std::uint32_t count = 0;
  };
  /// What a phase has had.
  struct Phase {
    std::vector<Arrival> arrivals;
    std::int64_t expected_bytes = 0, completed_bytes = 0;
  };
  struct Barrier {
    /// Arrivals of the phase before that have no like in this one.
    std::vector<Arrival> missing() const;
    Mbarrier state;
    std::uint64_t number = 0;  ///< of the phase
    Phase phase, before;
    Execution init;
    bool has_copy = false;  ///< asynchronous work completes on it, and no wait since
    Execution copy;
  };
  /// The last arrival of a warp at a named barrier, without waiting there.
  struct NamedArrival {
    std::uint64_t generation = 0;
    Execution by;
  };
  /// What is known of a CTA.
  struct State {
    std::unordered_map<std::uint32_t, Barrier> barriers;  ///< by offset
    /// By barrier and warp; strict only.
    std::map<std::pair<std::uint32_t, std::uint32_t>, NamedArrival> named;
  };

  void init(Warp& warp, const Insn& insn, const MbarrierEvent& event, Cta& cta, State& state);
  static void note(Barrier& barrier, const Warp& warp, const Insn& insn,
                   const MbarrierEvent& event);
  void check_named(const Warp& warp, const Insn& insn, std::uint32_t lanes,
                   const BarrierEvent& event);
  void report(const std::string& kernel, std::string what, std::vector<FindingPlace> places,
              std::string missing, bool is_strict = false);

  Findings& findings_;
  bool is_strict_;
  std::mutex mutex_;
  std::unordered_map<const Cta*, State> states_;
};

}  // namespace tilewright::sim
