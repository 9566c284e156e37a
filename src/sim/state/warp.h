// The state of what runs: warps, CTAs, clusters, the grid.
#pragma once

#include "sim/async/cluster_barrier.h"
#include "sim/async/named_barrier.h"
#include "sim/host/reused_memory.h"
#include "sim/model/device_model.h"
#include "sim/model/options.h"
#include "sim/state/insn.h"
#include "sim/state/launch.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace tilewright::sim {

struct Cta;
struct Cluster;
struct Grid;
struct KernelCode;          // state/code.h
struct WarpDefinedness;     // state/definedness.h
class DefinednessObserver;  // event/definedness_observer.h
class Findings;             // event/finding.h
class GlobalMemory;         // state/global_memory.h
class Observer;             // event/observer.h
struct WarpAsync;           // insn/async/async_work.h
class TensorMemory;         // tensor/tensor_memory.h
struct TensorColumns;
class TurnOrder;  // exec/turn_order.h

/// What lanes wait for.
enum class WaitKind : std::uint8_t {
  kNone,
  kNamedBarrier,    ///< a: barrier, b: generation that must pass
  kClusterBarrier,  ///< b: generation that must pass
  /// A: shared window address, b: parity that the phase must leave; may end early
  kMbarrier,
  kWarpSync,   ///< a: lanes that must come
  kAsync,      ///< a: kind of own async work, b: how many groups may stay open
  kRegisters,  ///< setmaxnreg.inc. a: of a thread, that it asks for
  kWarpgroup,  ///< b: groups of wgmma that all four warps must have committed
  kWgmma,      ///< b: how many wgmmas all four warps must have come to
  kGridSync,
  kColumns,  ///< tcgen05.alloc and dealloc. a: of two CTAs, b: TensorMemory::version
};

struct Wait {
  WaitKind kind = WaitKind::kNone;
  std::uint64_t a = 0;
  std::uint64_t b = 0;
};

/// Lanes of a warp that are at the same place.
struct LaneGroup {
  std::uint32_t pc = 0;
  std::uint32_t lanes = 0;
  Wait wait;
  bool is_retry = false;           ///< run the instruction again once the wait is over
  bool is_parked = false;          ///< at an .aligned or .sync instruction, for more lanes to come
  std::uint32_t num_timeouts = 0;  ///< times that a try_wait returned without success
};

/// Windows of the generic address space. They are no valid host addresses, so that global memory
/// can be at its own.
inline constexpr std::uint64_t kSharedWindow = 0xfe00'0000'0000'0000;  ///< + rank << 24 | offset
/// + offset, each thread its own
inline constexpr std::uint64_t kLocalWindow = 0xfd00'0000'0000'0000;
inline constexpr std::uint64_t kParamWindow = 0xfc00'0000'0000'0000;  ///< + offset
inline constexpr std::uint64_t kWindowMask = 0xff00'0000'0000'0000;

/// Static shared memory starts here, as on the device.
inline constexpr std::uint32_t kSharedReservedBytes = 1024;
inline constexpr std::uint32_t kSharedRankShift = 24;
/// Of a shared address: the offset in its CTA.
inline constexpr std::uint32_t kSharedOffsetMask = (1U << kSharedRankShift) - 1;

/// A wgmma (or another tensor operation) that was issued and has not taken effect.
struct PendingTensor {
  std::function<void()> apply;
  const Insn* insn = nullptr;
};

/// The same of the CTA's tensor pipe: tcgen05.mma, cp, shift and commit.
struct PipeWork {
  std::function<void()> apply;
  Warp* warp = nullptr;
  const Insn* insn = nullptr;
};

struct alignas(64) Warp {
  std::byte* registers = nullptr;  ///< all rows
  Cta* cta = nullptr;
  Grid* grid = nullptr;
  /// Of the own CTA: byte 0 is shared offset 0 (reserved bytes included)
  std::byte* shared = nullptr;
  std::byte* local = nullptr;      ///< lane l's local memory starts at l * local_bytes
  std::uint32_t shared_bytes = 0;  ///< end of the shared memory, reserved bytes included
  std::uint32_t local_bytes = 0;
  std::uint32_t index = 0;     ///< in the CTA
  std::uint32_t live = 0;      ///< lanes that have not ended
  std::uint32_t existing = 0;  ///< lanes that there ever were
  std::uint32_t jump_pc = 0;
  std::uint32_t jump_lanes = 0;
  Wait wait;                      ///< set by an instruction that returns kWait or kRetry
  std::uint32_t pc = 0;           ///< of the instruction that runs
  std::uint32_t group_lanes = 0;  ///< lanes of the group that runs, before the guard
  bool is_resumed = false;        ///< the instruction runs again after kRetry
  /// ... because nothing else could go on, not because the wait was over
  bool is_timed_out = false;
  Observer* observer = nullptr;  ///< nullptr: nothing is checked or counted
  std::vector<LaneGroup> groups;
  /// The init check looks at instructions with one of these flags before they run
  std::uint16_t undefined_flags = 0;
  bool has_loaded_undefined = false;  ///< the instruction that runs has
  std::shared_ptr<WarpDefinedness> definedness;
  std::deque<std::vector<PendingTensor>> tensor_groups;  ///< committed; the last is open
  std::uint64_t num_tensor_commits = 0;                  ///< wgmma.commit_group
  std::uint64_t num_wgmmas = 0;                          ///< that it has come to
  std::uint64_t last_done_wgmma = 0;     ///< number of the last whose D was set at once
  std::uint64_t num_wgmma_meetings = 0;  ///< of the warpgroup; reported by its first warp
  std::uint32_t allocation_cache_version = 0;
  std::uint64_t cached_begin = 1, cached_end = 0;  ///< the allocation that was used last
  std::uint32_t num_registers = 0;                 ///< of a thread, if setmaxnreg counts them; or 0
  std::uint64_t num_executed = 0;                  ///< warp instructions
  std::uint64_t num_joins = 0;                     ///< groups of lanes that met again
  std::uint64_t num_wakes = 0;                     ///< waits that came to their end
  std::uint32_t num_tensor_pipe_commits = 0;       ///< tcgen05.commit
  /// Copies under way by thread; null until there is one
  std::shared_ptr<WarpAsync> async;

  template <class T>
  T* row(Row offset) noexcept {
    return reinterpret_cast<T*>(registers + offset);
  }
  std::uint32_t predicate(Row offset) noexcept { return *row<std::uint32_t>(offset); }
  /// Replaces the lanes of `active`.
  void set_predicate(Row offset, std::uint32_t active, std::uint32_t value) noexcept {
    std::uint32_t* mask = row<std::uint32_t>(offset);
    *mask = (*mask & ~active) | (value & active);
  }
};

struct Cta {
  Cluster* cluster = nullptr;
  Grid* grid = nullptr;
  std::uint32_t rank = 0;  ///< in the cluster
  Dim3 index;
  std::uint64_t linear_index = 0;
  std::vector<Warp> warps;
  /// Shared memory, local memory and registers, aligned by hand
  ReusedBytes storage;
  std::byte* shared = nullptr;
  std::uint32_t shared_bytes = 0;  ///< reserved bytes included
  std::uint32_t num_live_threads = 0;
  std::uint32_t num_threads = 0;
  std::unique_ptr<NamedBarriers> barriers;
  std::array<BarrierReduction, kNumNamedBarriers> reductions;  ///< of the last generation
  std::uint32_t free_registers = 0;  ///< the pool: given back by setmaxnreg.dec, and not taken
  bool is_done = false;
  std::deque<PipeWork> tensor_pipe;             ///< issued and not in effect, in order
  std::shared_ptr<TensorMemory> tensor_memory;  ///< null until it is used (tensor_pipe.h)
  /// Of the init check: a byte for each of shared, and of local memory by warp and lane
  std::vector<std::uint8_t, Reused<std::uint8_t>> shared_defined, local_defined;
};

struct Cluster {
  Grid* grid = nullptr;
  std::vector<std::unique_ptr<Cta>> ctas;
  std::unique_ptr<ClusterBarrier> barrier;
  std::deque<std::function<void()>> pending;  ///< asynchronous work that has not taken effect
  std::uint64_t num_async_done = 0;           ///< how many of them have
  std::uint64_t random_state = 0;             ///< random_timing.h
  /// The cluster whose work this one takes over if it asks, or that starts when this one has ended;
  /// from Grid::num_clusters on none.
  std::uint64_t next_claim = 0;
  /// Among the clusters that are resident together: says on which SMs it is, in turns.
  std::optional<std::uint64_t> slot;
  std::uint32_t num_quiet_rounds = 0;  ///< of turns since a warp was woken
  const Warp* running = nullptr;
  bool is_done = false;
  TurnOrder* turn_order = nullptr;  ///< turn_order.h: of the round under way, on several threads
  std::size_t turn = 0;             ///< which one of it this is
};

/// A CTA, warp, lanes and instruction for messages.
struct Where {
  const Warp* warp = nullptr;
  const Insn* insn = nullptr;
  std::uint32_t lanes = 0;
};

/// Thrown by instructions that the device would stop at; the engine adds the place.
class FaultError : public std::runtime_error {
 public:
  FaultError(FaultKind kind, const std::string& message, std::uint32_t lanes = 0)
      : std::runtime_error(message), kind_(kind), lanes_(lanes) {}
  FaultKind kind() const noexcept { return kind_; }
  std::uint32_t lanes() const noexcept { return lanes_; }

 private:
  FaultKind kind_;
  std::uint32_t lanes_;
};

/// Throws FaultError with a formatted message.
[[noreturn]] void fault(FaultKind kind, std::uint32_t lanes, const std::string& message);

/// One launch.
struct Grid {
  const DeviceModel* device = nullptr;
  GlobalMemory* memory = nullptr;
  const KernelCode* code = nullptr;
  const Launch* launch = nullptr;
  Options options;
  std::uint64_t num_clusters = 0;
  /// Clusters i, i + num_seats, i + 2 num_seats ... run one after the other, or the first of them
  /// takes over the others (clusterlaunchcontrol). All of them without such instructions.
  std::uint64_t num_seats = 0;
  /// Clusters that run, ascending, if only the time of the launch is wanted; empty: all do.
  std::vector<std::uint64_t> sample;
  /// For how many clusters each of them stands: what they add to a counter in global memory counts
  /// so often, so that tiles that are drawn from it are a sample as well.
  std::uint64_t stands_for = 1;
  std::uint64_t arena_begin = 0, arena_end = 0;  ///< of GlobalMemory
  std::vector<std::byte> params;                 ///< in the layout of the entry, padded
  std::uint64_t id = 0;
  /// Where a cooperative kernel's CTAs meet; %envreg1 (high half) and %envreg2 say so. Else 0
  std::uint64_t workspace_address = 0;
  std::function<void(std::string_view)> print;  ///< of printf
  Observer* observer = nullptr;
  /// Follows undefined values, if the init check is on: one of the observers
  DefinednessObserver* definedness = nullptr;
  Findings* findings = nullptr;                                            ///< where faults go too
  std::map<std::uint64_t, std::shared_ptr<TensorColumns>> tensor_columns;  ///< by SM
};

}  // namespace tilewright::sim
