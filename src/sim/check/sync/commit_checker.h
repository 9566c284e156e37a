// The sync check of tcgen05.commit: a CTA must not end while a commit of another CTA may still
// arrive at one of its mbarriers, whose bytes may be a third one's by then. Its own threads have
// waited for the pipe's last work before they give back their columns, which tmem looks after.
//
// The tensor pipe of a thread works in order: a commit has arrived, too, when a later one has been
// waited for, or one with no work in between. The wait may be another CTA's, if that one arrives
// afterwards at what the CTA waits for: an mbarrier, or the cluster's barrier.
//
// Strict wants a wait for the commit itself or a later one, of the own CTA's, too.
#pragma once

#include "sim/event/finding.h"
#include "sim/event/observer.h"

#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tilewright::sim {

class CommitChecker final : public Observer {
 public:
  CommitChecker(Findings& findings, bool is_strict) : findings_(findings), is_strict_(is_strict) {}

  bool wants_instructions() const override { return false; }
  bool is_thread_safe() const override { return true; }

  void cta_ended(Cta& cta) override;
  void tensor_issued(Warp& warp, const Insn& insn, const TensorOperation& operation) override;
  void tensor_committed(Warp& warp, const Insn& insn, const TensorCommit& commit) override;
  void mbarrier(Warp& warp, const Insn& insn, const MbarrierEvent& event) override;
  void barrier(Warp& warp, const Insn& insn, std::uint32_t lanes,
               const BarrierEvent& event) override;

 private:
  /// Of a pipe, in its order: what was issued to it, and how many commits.
  struct Moment {
    std::uint32_t num_issued = 0, num_commits = 0;
  };
  struct Pipe {
    std::uint32_t num_issued = 0;
    std::vector<Moment> commits;  ///< the moment of each
  };
  struct Commit {
    Execution by;
    Moment moment;
  };
  using Moments = std::map<const Warp*, Moment>;  ///< up to which a pipe is known to be done
  struct CtaState {
    /// By warp and mbarrier, the last that may still come.
    std::map<std::pair<const Warp*, std::uint32_t>, Commit> coming;
    std::map<std::uint32_t, Moments> handed_over;  ///< by mbarrier, to who waits for it
    Moments done;
    std::uint64_t generation = 0;  ///< of the cluster's barrier at which it arrived last
  };
  struct ClusterState {
    std::map<const Warp*, Pipe> pipes;
    std::map<const Cta*, CtaState> ctas;
    std::map<std::uint64_t, Moments> met;  ///< by generation of the cluster's barrier
    std::size_t num_ended = 0;
  };

  static void join(Moments& to, const Moments& from);
  static void learn(CtaState& cta, const Moments& done);
  void check_ended(const Cta& cta, CtaState& state);
  void report(const Cta& cta, std::uint32_t mbarrier, const Commit& commit, bool is_strict);

  Findings& findings_;
  bool is_strict_;
  std::mutex mutex_;
  std::unordered_map<const Cluster*, ClusterState> clusters_;
};

}  // namespace tilewright::sim
