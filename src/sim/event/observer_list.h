// Several observers as one: what the instructions tell goes to each, in order.
#pragma once

#include "sim/event/observer.h"

#include <algorithm>
#include <mutex>
#include <vector>

namespace tilewright::sim {

/// The observers are not owned and outlive the list.
class ObserverList final : public Observer {
 public:
  void add(Observer* observer) { observers_.push_back(observer); }
  /// nullptr if there is no observer; the only one itself; else this.
  Observer* get() noexcept {
    if (observers_.empty()) return nullptr;
    return observers_.size() == 1 ? observers_.front() : this;
  }

  bool wants_instructions() const override {
    return std::ranges::any_of(observers_,
                               [](const Observer* o) { return o->wants_instructions(); });
  }
  bool is_thread_safe() const override {
    return std::ranges::all_of(observers_, [](const Observer* o) { return o->is_thread_safe(); });
  }

  void launch_started(Grid& grid) override { notify(&Observer::launch_started, grid); }
  void launch_ended(Grid& grid) override { notify(&Observer::launch_ended, grid); }
  void cta_started(Cta& cta) override { notify(&Observer::cta_started, cta); }
  void cta_ended(Cta& cta) override { notify(&Observer::cta_ended, cta); }
  void executing(Warp& warp, const Insn& insn, std::uint32_t active) override {
    notify(&Observer::executing, warp, insn, active);
  }
  void executed(Warp& warp, const Insn& insn, std::uint32_t active) override {
    notify(&Observer::executed, warp, insn, active);
  }
  void shared_access(Warp& warp, const Insn& insn, const WarpAccess& access) override {
    notify(&Observer::shared_access, warp, insn, access);
  }
  void global_access(Warp& warp, const Insn& insn, const WarpAccess& access) override {
    notify(&Observer::global_access, warp, insn, access);
  }
  void local_access(Warp& warp, const Insn& insn, const WarpAccess& access) override {
    notify(&Observer::local_access, warp, insn, access);
  }
  std::uint64_t async_issued(Warp& warp, const Insn& insn,
                             const AsyncOperation& operation) override;
  void async_done(Warp& warp, const Insn& insn, std::uint64_t token) override;
  void group_committed(Warp& warp, const Insn& insn, GroupKind kind, std::uint32_t lanes) override {
    notify(&Observer::group_committed, warp, insn, kind, lanes);
  }
  void group_waited(Warp& warp, const Insn& insn, GroupKind kind, std::uint32_t lanes,
                    std::uint32_t num_open) override {
    notify(&Observer::group_waited, warp, insn, kind, lanes, num_open);
  }
  void mbarrier(Warp& warp, const Insn& insn, const MbarrierEvent& event) override {
    notify(&Observer::mbarrier, warp, insn, event);
  }
  void fence(Warp& warp, const Insn& insn, std::uint32_t lanes, const FenceEvent& event) override {
    notify(&Observer::fence, warp, insn, lanes, event);
  }
  void barrier(Warp& warp, const Insn& insn, std::uint32_t lanes,
               const BarrierEvent& event) override {
    notify(&Observer::barrier, warp, insn, lanes, event);
  }
  std::vector<std::string> describe_mbarrier(const Cta& cta, std::uint32_t offset) override {
    std::vector<std::string> out;
    for (Observer* observer : observers_) {
      for (std::string& line : observer->describe_mbarrier(cta, offset)) {
        out.push_back(std::move(line));
      }
    }
    return out;
  }
  std::vector<WarpName> missing_at_mbarrier(const Cta& cta, std::uint32_t offset) override {
    std::vector<WarpName> out;
    for (Observer* observer : observers_) {
      for (const WarpName& name : observer->missing_at_mbarrier(cta, offset)) out.push_back(name);
    }
    return out;
  }
  void guarded_apart(Warp& warp, const Insn& insn, std::uint32_t active) override {
    notify(&Observer::guarded_apart, warp, insn, active);
  }
  void registers_set(Warp& warp, const Insn& insn, const RegisterEvent& event) override {
    notify(&Observer::registers_set, warp, insn, event);
  }
  void lanes_met(Warp& warp, const Insn& insn, std::uint32_t lanes) override {
    notify(&Observer::lanes_met, warp, insn, lanes);
  }
  void warpgroup_met(Warp& warp, const Insn& insn) override {
    notify(&Observer::warpgroup_met, warp, insn);
  }
  void wgmma_issued(Warp& warp, const Insn& insn, const WgmmaEvent& event) override {
    notify(&Observer::wgmma_issued, warp, insn, event);
  }
  void tensor_allocated(Warp& warp, const Insn& insn, const TensorAllocEvent& event) override {
    notify(&Observer::tensor_allocated, warp, insn, event);
  }
  void tensor_access(Warp& warp, const Insn& insn, const TensorAccess& access) override {
    notify(&Observer::tensor_access, warp, insn, access);
  }
  void tensor_waited(Warp& warp, const Insn& insn, AccessKind kind) override {
    notify(&Observer::tensor_waited, warp, insn, kind);
  }
  void tensor_issued(Warp& warp, const Insn& insn, const TensorOperation& operation) override {
    notify(&Observer::tensor_issued, warp, insn, operation);
  }
  void tensor_committed(Warp& warp, const Insn& insn, const TensorCommit& commit) override {
    notify(&Observer::tensor_committed, warp, insn, commit);
  }

 private:
  template <class... Parameters, class... Args>
  void notify(void (Observer::*member)(Parameters...), Args&... args) {
    for (Observer* observer : observers_) (observer->*member)(args...);
  }

  std::vector<Observer*> observers_;
  std::mutex mutex_;                   ///< CTAs may run on several host threads
  std::vector<std::uint64_t> tokens_;  ///< of operation n: from n * number of observers on
  std::vector<std::uint64_t> free_;    ///< operations that are done: their places are used again
};

}  // namespace tilewright::sim
