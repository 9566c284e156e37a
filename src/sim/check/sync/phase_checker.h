// The sync check: phases of mbarriers that get out of step.
//
// A warp that arrives in a phase after the first must know that the phase before is over, or the
// arrival counts for whichever of the two happens to be open. A warp that waits for a parity must
// come before that parity comes again. Both are asked of what each warp knows: phases that
// have ended and arrivals, passed on by everything that orders threads.
#pragma once

#include "sim/event/finding.h"
#include "sim/event/observer.h"

#include <array>
#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tilewright::sim {

class PhaseChecker final : public Observer {
 public:
  /// Without `reports` it only follows what the warps know.
  PhaseChecker(Findings& findings, bool reports) : findings_(findings), reports_(reports) {}

  /// Whether the warp knows that the launches before this one have ended, by griddepcontrol.wait of
  /// its own or of an agent that it has met since.
  bool knows_grids_before(const Warp& warp);

  bool wants_instructions() const override { return false; }
  bool is_thread_safe() const override { return true; }

  void cta_started(Cta& cta) override;
  void cta_ended(Cta& cta) override;
  void launch_ended(Grid& grid) override;
  void shared_access(Warp& warp, const Insn&, const WarpAccess& access) override {
    if (access.order.semantics != MemorySemantics::kWeak) polled(warp, access);
  }
  void global_access(Warp& warp, const Insn&, const WarpAccess& access) override {
    if (access.order.semantics != MemorySemantics::kWeak) polled(warp, access);
  }
  void mbarrier(Warp& warp, const Insn& insn, const MbarrierEvent& event) override;
  void barrier(Warp& warp, const Insn& insn, std::uint32_t lanes,
               const BarrierEvent& event) override;
  void fence(Warp& warp, const Insn& insn, std::uint32_t lanes, const FenceEvent& event) override;

 private:
  /// By agent: of a warp the arrivals, of an mbarrier the phases that have ended.
  class Knowledge {
   public:
    std::uint32_t of(std::uint32_t agent) const {
      return agent < times_.size() ? times_[agent] : 0;
    }
    void raise(std::uint32_t agent, std::uint32_t time);
    void join(const Knowledge& other);
    void clear() { times_.clear(); }

   private:
    std::vector<std::uint32_t> times_;
  };

  struct Arrival {
    std::uint32_t agent = 0, time = 0;
    Execution by;
  };
  struct Phase {
    std::vector<Arrival> arrivals;  ///< the last of each warp
    bool has_bytes = false;
  };
  struct Barrier {
    std::uint32_t agent = 0;
    std::uint32_t first = 0;   ///< phases that had ended when it was initialised
    std::uint32_t number = 0;  ///< that have ended, over all initialisations
    bool parity = false;
    bool is_told = false;
    Phase phase;
    std::array<Phase, 3> past;     ///< the last one first
    Knowledge current, completed;  ///< of arrivals: in this phase, in the one before
    Execution init;
  };
  struct Rendezvous {
    std::uint64_t generation = ~std::uint64_t{0};
    Knowledge met;
  };
  /// Whose lane arrived last, and by which instruction.
  struct LastArrival {
    std::uint32_t agent = 0, lane = 0;
    const Insn* insn = nullptr;
  };
  struct ClusterState {
    std::unordered_map<std::uint32_t, Barrier> barriers;  ///< by rank << 24 | offset
    std::unordered_map<std::uint32_t, Knowledge> warps;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::array<Rendezvous, 2>> named;
    std::array<Rendezvous, 2> cluster;
    Knowledge truth;  ///< what there is to know
    LastArrival last;
    std::uint32_t num_agents = 0, num_live = 0;
  };

  ClusterState* find(const Warp& warp);
  void polled(Warp& warp, const WarpAccess& access);
  void learn_all(ClusterState& state, const Warp& warp);
  static void init(ClusterState& state, Barrier& barrier, Knowledge& own, const Execution& by);
  static bool knows(const Knowledge& own, const Phase& phase);
  static std::uint32_t num_known(const Knowledge& own, const Barrier& barrier);
  void arrive(ClusterState& state, Barrier& barrier, Warp& warp, const Insn& insn,
              const MbarrierEvent& event);
  void wait(Barrier& barrier, Knowledge& own, Warp& warp, const Insn& insn,
            const MbarrierEvent& event);
  static void notice_phase(ClusterState& state, Barrier& barrier, Knowledge& own, const Warp& warp,
                           std::uint32_t address);

  Findings& findings_;
  bool reports_;
  bool is_any_told_ = false;  ///< some warp has executed griddepcontrol.wait
  std::mutex mutex_;
  std::unordered_map<const Cluster*, ClusterState> states_;
};

}  // namespace tilewright::sim
