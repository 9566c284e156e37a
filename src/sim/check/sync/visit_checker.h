// The sync check of clusters: a CTA must not end while another one may still address its shared
// memory, by loads, stores and atomics, or by an arrival at one of its mbarriers.
//
// The visits of a warp are counted. A CTA knows of those up to some number by what it waits for: an
// mbarrier at which the visitor arrived afterwards, or another thread that knew of it, or a barrier
// of the cluster. Within a CTA, barriers hand on everything; so does a strong read, which may be of
// a flag.
#pragma once

#include "sim/event/finding.h"
#include "sim/event/observer.h"

#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace tilewright::sim {

class VisitChecker final : public Observer {
 public:
  explicit VisitChecker(Findings& findings) : findings_(findings) {}

  bool wants_instructions() const override { return false; }
  bool is_thread_safe() const override { return true; }

  void cta_ended(Cta& cta) override;
  void shared_access(Warp& warp, const Insn& insn, const WarpAccess& access) override;
  void global_access(Warp& warp, const Insn& insn, const WarpAccess& access) override;
  void mbarrier(Warp& warp, const Insn& insn, const MbarrierEvent& event) override;
  void barrier(Warp& warp, const Insn& insn, std::uint32_t lanes,
               const BarrierEvent& event) override;

 private:
  using Counts = std::vector<std::uint32_t>;  ///< by warp of the cluster
  struct Visit {
    Execution by;
    std::uint32_t number = 0;  ///< of the warp's
  };
  struct CtaState {
    std::map<std::size_t, Visit> open;  ///< by warp, the last that the CTA does not know of
    Counts known;
    std::uint64_t generation = 0;  ///< of the cluster's barrier at which it arrived last
  };
  struct ClusterState {
    Counts made;  ///< visits so far
    std::vector<CtaState> ctas;
    std::unordered_map<std::uint32_t, Counts> handed_over;  ///< by mbarrier, to who waits for it
    std::map<std::uint64_t, Counts> met;  ///< by generation of the cluster's barrier
    std::size_t num_ended = 0;
  };

  ClusterState& state_of(const Cluster& cluster);
  void visit(ClusterState& state, Warp& warp, const Insn& insn, std::uint32_t lanes,
             std::uint64_t address);
  static void learn(CtaState& cta, const Counts& counts);
  void report(const Cta& cta, const Visit& visit);

  Findings& findings_;
  std::mutex mutex_;
  std::unordered_map<const Cluster*, ClusterState> clusters_;
};

}  // namespace tilewright::sim
