// What instructions tell the checkers: every access, every event that orders accesses.
//
// Handlers call these when Warp::observer is not null, after they have validated an access and
// before it takes effect. A checker overrides what it needs. Pointers and spans live only during
// the call; a Warp and an Insn live as long as the launch.
#pragma once

#include "sim/async/tensor_map.h"
#include "sim/state/warp.h"
#include "sim/tensor/shared_descriptor.h"
#include "sim/tensor/tensor_memory.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tilewright::sim {

struct TensorCopy;  // async/tensor_copy.h

enum class AccessKind : std::uint8_t { kRead, kWrite, kAtomic };

/// Memory semantics of an access or a fence.
enum class MemorySemantics : std::uint8_t {
  kWeak,
  kVolatile,
  kRelaxed,
  kAcquire,
  kRelease,
  kAcquireRelease,
  kSequential,
};

enum class MemoryScope : std::uint8_t { kNone, kCta, kCluster, kGpu, kSystem };

struct MemoryOrder {
  MemorySemantics semantics = MemorySemantics::kWeak;
  MemoryScope scope = MemoryScope::kNone;
};

/// One access of a warp by load, store, atomic, ldmatrix or stmatrix: the generic proxy.
struct WarpAccess {
  AccessKind kind = AccessKind::kRead;
  MemoryOrder order;
  std::uint32_t lanes = 0;
  std::uint32_t bytes = 0;  ///< per lane, all elements of a vector together
  /// 32 of them; only those of `lanes` mean something. Shared: rank << 24 | offset, the reserved
  /// bytes included. Global: the address. Local: the offset in the thread's local memory.
  const std::uint64_t* addresses = nullptr;
  /// Known to be of all lanes, with their bytes side by side; false says nothing.
  bool is_run = false;

  bool is_strong() const {
    return kind == AccessKind::kAtomic || order.semantics != MemorySemantics::kWeak;
  }
};

/// Asynchronous operations that touch memory on their own.
enum class AsyncKind : std::uint8_t {
  kCpAsync,           ///< cp.async: generic proxy, completes by group or mbarrier
  kBulkCopy,          ///< cp.async.bulk
  kTensorCopy,        ///< cp.async.bulk.tensor
  kBulkReduce,        ///< cp.reduce.async.bulk
  kTensorReduce,      ///< cp.reduce.async.bulk.tensor
  kStoreAsync,        ///< st.async, red.async
  kWgmma,             ///< its shared memory operands
  kTensorMapCopy,     ///< tensormap.cp_fenceproxy
  kTensorMapRead,     ///< of a tensor map in global memory, by the copy that uses it
  kTensorMma,         ///< tcgen05.mma: its shared memory operands
  kTensorMemoryCopy,  ///< tcgen05.cp: its source; tcgen05.shift: nothing
};

enum class Proxy : std::uint8_t { kGeneric, kAsync, kTensorMap };

/// A run of bytes that an asynchronous operation reads or writes.
struct AsyncRange {
  AccessKind kind = AccessKind::kRead;
  Proxy proxy = Proxy::kAsync;
  bool is_shared = false;
  std::uint64_t address = 0;  ///< shared: rank << 24 | offset
  std::uint64_t bytes = 0;
};

/// How the issuing threads learn that it is done.
enum class AsyncCompletion : std::uint8_t {
  kNone,
  kMbarrier,
  kBulkGroup,
  kCpAsyncGroup,
  kWgmmaGroup,
  kTensorCommit,  ///< the next tcgen05.commit of the thread
};

struct AsyncOperation {
  AsyncKind kind = AsyncKind::kBulkCopy;
  AsyncCompletion completion = AsyncCompletion::kNone;
  std::uint64_t mbarrier = 0;  ///< rank << 24 | offset of the barrier that completes it, or 0
  std::uint32_t lanes = 0;     ///< that issued it; one, but for wgmma all
  bool is_repeat = false;      ///< for a further receiver of a multicast: the source is read once
  std::span<const AsyncRange> ranges;
  /// Of kTensorCopy and kTensorReduce: where each element goes
  const TensorCopy* tensor = nullptr;
  /// Of kTensorMma, and of kWgmma once, by the first warp, for the whole warpgroup: A and B as far
  /// as they lie in shared memory
  std::span<const SharedOperand> operands;
  /// Of kWgmma: likewise, but of A the rows of this warp
  std::span<const SharedOperand> warp_operands;
};

enum class MbarrierAction : std::uint8_t {
  kInit,
  kInvalidate,
  kExpect,       ///< expect_tx
  kComplete,     ///< complete_tx, by an instruction or by asynchronous work
  kArrive,       ///< also arrive_drop; releases, unless order says relaxed
  kWaitSuccess,  ///< test_wait or try_wait that said true; acquires
  kWaitFailure,
};

struct MbarrierEvent {
  MbarrierAction action = MbarrierAction::kInit;
  MemoryOrder order;
  std::uint32_t lane = 0;
  std::uint32_t lanes = 0;    ///< that run the instruction, this one among them
  std::uint32_t address = 0;  ///< rank << 24 | offset
  std::uint32_t count = 0;    ///< arrivals; of kInit the expected count
  std::int64_t bytes = 0;     ///< transaction count
  std::uint64_t phase = 0;    ///< of kArrive: before it; of waits: the phase that was waited for
  bool is_drop = false;
  bool is_async = false;     ///< by asynchronous work, not by the instruction itself
  std::uint32_t commit = 0;  ///< of kArrive: the warp's tcgen05.commit that it is of, from 1; or 0
};

enum class FenceKind : std::uint8_t {
  kMemory,        ///< membar, fence: order says which
  kMbarrierInit,  ///< fence.mbarrier_init
  kProxyAlias,
  kProxyAsync,  ///< all, or global / shared only, see FenceEvent
  kProxyTensorMapAcquire,
  kProxyTensorMapRelease,
  kWgmma,         ///< wgmma.fence
  kTensorBefore,  ///< tcgen05.fence::before_thread_sync
  kTensorAfter,   ///< tcgen05.fence::after_thread_sync
  kGridWait,      ///< griddepcontrol.wait
  kGridTrigger,   ///< griddepcontrol.launch_dependents
};

struct FenceEvent {
  FenceKind kind = FenceKind::kMemory;
  MemoryOrder order;
  bool is_shared = true, is_global = true;  ///< spaces of kProxyAsync
  std::uint64_t address = 0, bytes = 0;     ///< kProxyTensorMapAcquire: per lane the same or lane 0
};

/// Groups of asynchronous work of a thread or warp.
enum class GroupKind : std::uint8_t { kCpAsync, kBulk, kBulkRead, kWgmma };

enum class BarrierKind : std::uint8_t { kNamed, kCluster, kWarpSync, kGrid };

struct BarrierEvent {
  BarrierKind kind = BarrierKind::kNamed;
  std::uint32_t id = 0;  ///< kNamed: 0..15; kWarpSync: the lane mask
  std::uint64_t generation = 0;
  bool is_arrive = false;  ///< arrived at it
  bool is_passed = false;  ///< waited for it with success
  MemoryOrder order;
};

/// Registers and memory of a wgmma at its issue by one warp.
struct WgmmaEvent {
  std::span<const Row> accumulators;  ///< rows of 32-bit registers, read and written
  std::span<const Row> a_registers;   ///< empty if A is in shared memory
  std::uint64_t a_descriptor = 0;
  std::uint64_t b_descriptor = 0;
  std::uint32_t shape_m = 64, shape_n = 0, shape_k = 0;
  bool reads_accumulators = true;  ///< scale-d
};

/// What a run of cells in Tensor Memory is to an operation.
enum class TensorRole : std::uint8_t { kAccumulator, kA, kScaleA, kScaleB, kCopy, kShift };

/// Cells that an operation of the tensor pipe reads or writes, in the Tensor Memory of one CTA.
struct TensorRegion {
  TensorRole role = TensorRole::kAccumulator;
  /// kAtomic: an accumulator that is added to
  AccessKind kind = AccessKind::kWrite;
  std::uint32_t rank = 0;  ///< of the CTA in the cluster
  std::uint32_t column = 0, num_columns = 0;
  TensorLanes lanes{};  ///< without those that a lane mask disables
  // What the cells are, of kAccumulator and kA: see tensor/mma_layout.h.
  std::uint32_t m = 128;  ///< rows of the instruction, of both CTAs
  std::uint32_t n = 0;    ///< columns of D, of both CTAs
  std::uint32_t k = 0;    ///< of A
  bool is_ws = false;
  std::uint32_t lane_base = 0;  ///< lane of the operand's address
  std::uint32_t element_bits =
      32;                 ///< of an element in its place: 8 for 4- and 6-bit ones in bytes
  std::uint32_t cta = 0;  ///< of the pair: 0 even, 1 odd
};

enum class TensorKind : std::uint8_t { kMma, kCopy, kShift };

/// tcgen05.mma, cp or shift by one thread.
struct TensorOperation {
  TensorKind kind = TensorKind::kMma;
  std::uint32_t cta_group = 1;
  std::uint32_t lane = 0;  ///< the thread in its warp
  std::span<const TensorRegion> regions;
  std::span<const AsyncRange> shared;  ///< what it reads of shared memory
  std::span<const SharedOperand> operands;
};

/// tcgen05.ld or st by a warp. Register r of lane l is cell (lanes[l], column + columns[..]).
struct TensorAccess {
  AccessKind kind = AccessKind::kRead;
  std::uint32_t num_cells = 0;           ///< of each lane
  const TensorAddress* cells = nullptr;  ///< num_cells of lane 0, then of lane 1, ...
  std::span<const Row> rows;             ///< registers
  bool is_packed = false;                ///< register r is the low halves of cells 2r and 2r + 1
};

enum class TensorAllocAction : std::uint8_t { kAlloc, kDealloc, kRelinquish };

struct TensorAllocEvent {
  TensorAllocAction action = TensorAllocAction::kAlloc;
  std::uint32_t cta_group = 1;
  std::uint32_t column = 0, num_columns = 0;
};

/// tcgen05.commit by one thread; the arrivals come later as MbarrierEvent.
struct TensorCommit {
  std::uint32_t cta_group = 1;
  std::uint32_t lane = 0;
  std::uint32_t mbarrier = 0;  ///< rank << 24 | offset of the one that the instruction names
  std::uint32_t number = 0;    ///< of the warp's commits, from 1
  std::span<const std::uint32_t> targets;  ///< likewise: where it arrives
};

/// A warp of a grid.
struct WarpName {
  std::uint64_t cta = 0;  ///< Cta::linear_index
  std::uint32_t warp = 0;
};

/// setmaxnreg by a warp, when it does not wait (any longer).
struct RegisterEvent {
  bool is_inc = false;
  std::uint32_t lanes = 0;
  std::uint32_t count = 0;   ///< of a thread, that it is to have
  std::uint32_t before = 0;  ///< that it had; 0 if they are not counted
};

class Observer {
 public:
  virtual ~Observer() = default;

  /// Whether executing() and executed() are called, which costs as much as an instruction.
  virtual bool wants_instructions() const { return true; }
  /// Whether CTAs may run on several host threads.
  virtual bool is_thread_safe() const { return false; }

  // The life of a launch.
  virtual void launch_started(Grid&) {}
  virtual void launch_ended(Grid&) {}
  virtual void cta_started(Cta&) {}
  virtual void cta_ended(Cta&) {}
  /// Before each warp instruction; `active` are the lanes whose guard holds.
  virtual void executing(Warp&, const Insn&, std::uint32_t /*active*/) {}
  /// After it.
  virtual void executed(Warp&, const Insn&, std::uint32_t /*active*/) {}

  // Memory, by the generic proxy.
  virtual void shared_access(Warp&, const Insn&, const WarpAccess&) {}
  virtual void global_access(Warp&, const Insn&, const WarpAccess&) {}
  virtual void local_access(Warp&, const Insn&, const WarpAccess&) {}

  // Asynchronous work. The token of async_issued comes back with async_done, when the bytes have
  // moved (at once if the timing is eager); the threads may rely on it only after the completion.
  virtual std::uint64_t async_issued(Warp&, const Insn&, const AsyncOperation&) { return 0; }
  virtual void async_done(Warp&, const Insn&, std::uint64_t /*token*/) {}
  virtual void group_committed(Warp&, const Insn&, GroupKind, std::uint32_t /*lanes*/) {}
  /// The lanes know that at most `num_open` of their newest groups are not done.
  virtual void group_waited(Warp&, const Insn&, GroupKind, std::uint32_t /*lanes*/,
                            std::uint32_t /*num_open*/) {}

  // What orders.
  virtual void mbarrier(Warp&, const Insn&, const MbarrierEvent&) {}
  virtual void fence(Warp&, const Insn&, std::uint32_t /*lanes*/, const FenceEvent&) {}
  virtual void barrier(Warp&, const Insn&, std::uint32_t /*lanes*/, const BarrierEvent&) {}
  /// An .aligned instruction whose guard holds in some lanes only.
  virtual void guarded_apart(Warp&, const Insn&, std::uint32_t /*active*/) {}
  virtual void registers_set(Warp&, const Insn&, const RegisterEvent&) {}
  /// shfl, vote, match, redux, mma.sync, ldmatrix and so on: lanes that met, without memory order.
  virtual void lanes_met(Warp&, const Insn&, std::uint32_t /*lanes*/) {}

  /// For the report of a deadlock: lines with what is known of an mbarrier of the CTA, by offset.
  virtual std::vector<std::string> describe_mbarrier(const Cta&, std::uint32_t /*offset*/) {
    return {};
  }

  /// For the same: the warps that arrived in the phase before and not in this one.
  virtual std::vector<WarpName> missing_at_mbarrier(const Cta&, std::uint32_t /*offset*/) {
    return {};
  }

  // Tensor work.
  /// All four warps have come to a wgmma, and none has gone on. Then each reports its issue.
  virtual void warpgroup_met(Warp&, const Insn&) {}
  virtual void wgmma_issued(Warp&, const Insn&, const WgmmaEvent&) {}

  // Tensor Memory. Allocations are reported when they have been made.
  virtual void tensor_allocated(Warp&, const Insn&, const TensorAllocEvent&) {}
  virtual void tensor_access(Warp&, const Insn&, const TensorAccess&) {}
  /// tcgen05.wait::ld or wait::st
  virtual void tensor_waited(Warp&, const Insn&, AccessKind) {}
  virtual void tensor_issued(Warp&, const Insn&, const TensorOperation&) {}
  virtual void tensor_committed(Warp&, const Insn&, const TensorCommit&) {}
};

}  // namespace tilewright::sim
