// Writes down what some CTAs of a launch do.
#pragma once

#include "sim/event/observer.h"
#include "sim/report/footprint.h"
#include "sim/state/code.h"
#include "sim/state/launch.h"
#include "sim/time/trace.h"

#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

namespace tilewright::sim {

/// Which clusters of a launch stand for all: at most so many, in ascending order, spread evenly and
/// with no period that a grid could have as well.
std::vector<std::uint64_t> sample_clusters(std::uint64_t num_clusters, std::uint64_t most);
/// Those by which a sample of `from` clusters becomes one of `to`, in an order in which any first
/// of them are spread evenly, too.
std::vector<std::uint64_t> more_clusters(std::uint64_t num_clusters, std::uint64_t from,
                                         std::uint64_t to);

/// Clusters that run beside a sample, one after the other, for as long as all that ran was little
/// work: a sample of CTAs that end at once says nothing of those that do not.
struct MoreOfSample {
  std::vector<std::uint64_t> clusters;
  std::uint64_t little_work = 0;  ///< warp instructions
};

/// One per launch.
/// Thread   not safe: the CTAs of a launch run on one host thread
class TimeObserver final : public Observer {
 public:
  /// `sample`: clusters that are written down, ascending. Those of `more` are added to the launch's
  /// sample, unless counters in global memory depend on it.
  TimeObserver(const KernelCode& code, const GlobalMemory& memory,
               std::vector<std::uint64_t> sample, MoreOfSample more = {});
  ~TimeObserver() override;

  void cta_started(Cta& cta) override;
  void cta_ended(Cta& cta) override;
  void executing(Warp& warp, const Insn& insn, std::uint32_t active) override;
  void shared_access(Warp& warp, const Insn& insn, const WarpAccess& access) override;
  void global_access(Warp& warp, const Insn& insn, const WarpAccess& access) override;
  void local_access(Warp& warp, const Insn& insn, const WarpAccess& access) override;
  std::uint64_t async_issued(Warp& warp, const Insn& insn,
                             const AsyncOperation& operation) override;
  void group_committed(Warp& warp, const Insn& insn, GroupKind kind, std::uint32_t lanes) override;
  void group_waited(Warp& warp, const Insn& insn, GroupKind kind, std::uint32_t lanes,
                    std::uint32_t num_open) override;
  void mbarrier(Warp& warp, const Insn& insn, const MbarrierEvent& event) override;
  void fence(Warp& warp, const Insn& insn, std::uint32_t lanes, const FenceEvent& event) override;
  void barrier(Warp& warp, const Insn& insn, std::uint32_t lanes,
               const BarrierEvent& event) override;
  void wgmma_issued(Warp& warp, const Insn& insn, const WgmmaEvent& event) override;
  void tensor_allocated(Warp& warp, const Insn& insn, const TensorAllocEvent& event) override;
  void tensor_access(Warp& warp, const Insn& insn, const TensorAccess& access) override;
  void tensor_waited(Warp& warp, const Insn& insn, AccessKind kind) override;
  void tensor_issued(Warp& warp, const Insn& insn, const TensorOperation& operation) override;
  void tensor_committed(Warp& warp, const Insn& insn, const TensorCommit& commit) override;

  /// After the launch, once.
  LaunchTrace take();

 private:
  struct Recorder;

  /// nullptr if the CTA is none of the sample.
  Recorder* recorder(const Warp& warp);
  WarpTrace* trace(const Warp& warp);
  void add(const Warp& warp, const TraceEvent& event);
  std::uint16_t area_of(std::uint64_t address);
  /// Number of a line, the same in every run. After area_of() of an address in its area.
  std::uint64_t line_in_area(std::uint64_t line, std::uint16_t area) const;
  /// Whether the access is one of the grid's barrier, which then is what was written down.
  bool is_grid_barrier(Warp& warp, const Insn& insn, const WarpAccess& access);
  void count_bytes(Recorder& recorder, std::uint16_t area, std::uint64_t address,
                   std::uint64_t bytes);

  const KernelCode& code_;
  const GlobalMemory& memory_;
  void ask_for_more(Grid& grid);

  const MoreOfSample more_;
  std::vector<std::uint64_t> sample_;
  std::map<std::uint64_t, std::vector<CtaTrace>> clusters_;
  std::unordered_map<const Cta*, std::unique_ptr<Recorder>> recorders_;
  const Cta* last_cta_ = nullptr;
  Recorder* last_recorder_ = nullptr;
  std::vector<VariableInfo> variables_;  ///< of the module
  std::vector<TracedArea> areas_;
  std::vector<Footprint> unions_;  ///< by area
  std::uint64_t area_begin_ = 1, area_end_ = 0;
  std::uint16_t last_area_ = 0;
  std::uint64_t num_ops_ = 0;  ///< that were written down
  std::size_t num_asked_ = 0;  ///< of more_
  bool has_atomics_ = false;
};

}  // namespace tilewright::sim
