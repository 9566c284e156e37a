// Counts what a launch does.
#pragma once

#include "sim/check/observer.h"
#include "sim/program/code.h"
#include "sim/report/footprint.h"
#include "sim/report/tensor_work.h"
#include "sim/report/usage.h"

#include <vector>

namespace tilewright::sim {

/// One per launch.
class UsageObserver final : public Observer {
 public:
  explicit UsageObserver(const KernelCode& code);

  void executing(Warp& warp, const Insn& insn, std::uint32_t active) override;
  void shared_access(Warp& warp, const Insn& insn, const WarpAccess& access) override;
  void global_access(Warp& warp, const Insn& insn, const WarpAccess& access) override;
  void local_access(Warp& warp, const Insn& insn, const WarpAccess& access) override;
  std::uint64_t async_issued(Warp& warp, const Insn& insn,
                             const AsyncOperation& operation) override;
  void mbarrier(Warp& warp, const Insn& insn, const MbarrierEvent& event) override;
  void barrier(Warp& warp, const Insn& insn, std::uint32_t lanes,
               const BarrierEvent& event) override;

  /// What was counted so far.
  KernelUsage result(const Machine& machine, const Launch& launch) const;

 private:
  Usage& usage(const Insn& insn) { return usages_[insn.syntax]; }
  void add_global(Usage& usage, const WarpAccess& access);

  const KernelCode& code_;
  std::vector<Usage> usages_;            ///< by Insn::syntax
  std::vector<InsnClass> classes_;       ///< likewise
  std::vector<TensorWork> tensor_work_;  ///< likewise
  std::vector<std::uint8_t> is_first_;   ///< of the instructions that one of the text became
  Footprint footprint_;
  bool has_waited_ = false, has_polled_ = false;  ///< some lane, in the instruction that runs
};

}  // namespace tilewright::sim
