// The sync check: copies out of the shared memory of a CTA, and cp.async into it, that may still be
// under way when the CTA ends. Its memory may belong to another one by then.
#pragma once

#include "sim/event/finding.h"
#include "sim/event/observer.h"

#include <deque>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

namespace tilewright::sim {

class OpenCopies final : public Observer {
 public:
  OpenCopies(Findings& findings, bool is_strict) : findings_(findings), is_strict_(is_strict) {}

  bool wants_instructions() const override { return false; }
  bool is_thread_safe() const override { return true; }

  void cta_started(Cta& cta) override;
  void cta_ended(Cta& cta) override;
  std::uint64_t async_issued(Warp& warp, const Insn& insn,
                             const AsyncOperation& operation) override;
  void group_committed(Warp& warp, const Insn& insn, GroupKind kind, std::uint32_t lanes) override;
  void group_waited(Warp& warp, const Insn& insn, GroupKind kind, std::uint32_t lanes,
                    std::uint32_t num_open) override;
  void mbarrier(Warp& warp, const Insn& insn, const MbarrierEvent& event) override;

 private:
  using Copy = std::optional<Execution>;  ///< the first of a group, if it has any

  /// Groups of a thread (bulk) or warp (cp.async) that were not waited for.
  struct Groups {
    Copy open;                     ///< not committed yet
    bool is_open_awaited = false;  ///< the thread waited, which without a commit is for nothing
    std::deque<Copy> committed;    ///< the oldest first
  };
  /// To the shared memory of a peer: done when the peer has waited for its mbarrier.
  struct ToPeer {
    std::uint32_t mbarrier = 0;
    Execution copy;
  };
  struct State {
    std::unordered_map<std::uint32_t, Groups> bulk;      ///< by thread
    std::unordered_map<std::uint32_t, Groups> cp_async;  ///< by warp
    std::vector<ToPeer> to_peers;
  };

  Groups* find(Warp& warp, GroupKind kind, std::uint32_t lane);
  void report(const Cta& cta, const Groups& groups, bool is_bulk);

  Findings& findings_;
  bool is_strict_;
  std::mutex mutex_;
  std::unordered_map<const Cta*, State> states_;
};

}  // namespace tilewright::sim
