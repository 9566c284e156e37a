// Counts what a launch does.
#pragma once

#include "sim/event/observer.h"
#include "sim/report/footprint.h"
#include "sim/report/tensor_work.h"
#include "sim/report/usage.h"
#include "sim/state/code.h"

#include <memory>
#include <mutex>
#include <vector>

namespace tilewright::sim {

/// One per launch. Each host thread counts for itself; the sums do not depend on the threads.
/// Thread   safe, but for result(), which is for the time after the launch
class UsageObserver final : public Observer {
 public:
  explicit UsageObserver(const KernelCode& code);

  bool is_thread_safe() const override { return true; }
  void executing(Warp& warp, const Insn& insn, std::uint32_t active) override;
  void shared_access(Warp& warp, const Insn& insn, const WarpAccess& access) override;
  void global_access(Warp& warp, const Insn& insn, const WarpAccess& access) override;
  void local_access(Warp& warp, const Insn& insn, const WarpAccess& access) override;
  std::uint64_t async_issued(Warp& warp, const Insn& insn,
                             const AsyncOperation& operation) override;
  void tensor_issued(Warp& warp, const Insn& insn, const TensorOperation& operation) override;
  void mbarrier(Warp& warp, const Insn& insn, const MbarrierEvent& event) override;
  void barrier(Warp& warp, const Insn& insn, std::uint32_t lanes,
               const BarrierEvent& event) override;

  /// What was counted so far.
  KernelUsage result(const DeviceModel& model, const Launch& launch) const;

 private:
  /// What one host thread has counted.
  struct Shard {
    std::vector<Usage> usages;  ///< by Insn::syntax
    Footprint footprint;
    bool has_waited = false, has_polled = false;  ///< some lane, in the instruction that runs

    void add_global(Usage& usage, const WarpAccess& access);
  };

  Shard& shard();  ///< of the calling thread

  const KernelCode& code_;
  const std::uint64_t id_;               ///< of no other observer of this process
  std::vector<InsnClass> classes_;       ///< by Insn::syntax
  std::vector<TensorWork> tensor_work_;  ///< likewise
  std::vector<std::uint8_t> is_first_;   ///< of the instructions that one of the text became
  std::mutex mutex_;                     // of shards_
  std::vector<std::unique_ptr<Shard>> shards_;
};

}  // namespace tilewright::sim
