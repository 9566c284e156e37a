// What CTAs did, in the short form that the timing model plays again: instructions by number, and
// what is known of them only when they run.
#pragma once

#include "sim/state/launch.h"

#include <cstdint>
#include <vector>

namespace tilewright::sim {

/// TraceEvent::shared_units counts these.
inline constexpr std::uint32_t kSharedUnitBytes = 16;

/// TraceEvent::area of what is in no allocation.
inline constexpr std::uint16_t kNoArea = 0xffff;

enum class TraceKind : std::uint8_t {
  kShared,  ///< a: wavefronts
  kGlobal,  ///< a: sectors; b: lines of 128 bytes; area; is_write
  kLine,    ///< of the kGlobal before it, a load: b: number of a line that it reads, of all areas
  kRemoteShared,  ///< a load or store of another CTA's shared memory. a: wavefronts
  kLocal,         ///< a: bytes of all lanes
  kCopyIn,        ///< TMA, to shared memory. a: bytes, as the mbarrier b counts them; shared_units;
                  ///< area; is_repeat; rank
  kCopyOut,       ///< TMA, from shared memory: of a bulk group. a: bytes; area
  kThreadCopy,    ///< cp.async. a: bytes; b: lines; area
  kStoreAsync,    ///< st.async: a: bytes; b: mbarrier
  kCopyCommit,    ///< of cp.async
  kCopyWait,      ///< a: groups that may stay open
  kCopyArrive,    ///< cp.async.mbarrier.arrive. b: mbarrier; a: lanes
  kBulkCommit,
  kBulkWait,  ///< a: groups that may stay open; is_read: until they are read
  kWgmma,     ///< a: n; b: k; is_shared: A is in shared memory
  kWgmmaCommit,
  kWgmmaWait,      ///< a: groups that may stay open
  kMbarrierInit,   ///< a: count; b: mbarrier
  kExpect,         ///< a: bytes; b: mbarrier
  kArrive,         ///< a: count; b: mbarrier
  kComplete,       ///< a: bytes, by an instruction; b: mbarrier
  kMbarrierWait,   ///< a: parity; b: mbarrier
  kBarrierArrive,  ///< a: id; b: generation
  kBarrierWait,    ///< likewise
  kClusterArrive,  ///< b: generation
  kClusterWait,    ///< b: generation
  kGridArrive,     ///< at the barrier of a cooperative launch. b: generation, from 1
  kGridPoll,       ///< until all CTAs have come to it. b: generation
  kNothing,        ///< a wait that other lanes of the warp do later
  kProxyFence,
  kMemoryFence,
  kGridWait,      ///< for the launch before: griddepcontrol.wait
  kGridTrigger,   ///< the launch behind may start
  kTensorMma,     ///< tcgen05.mma. a: m << 16 | n; b: k; is_shared; is_pair: of two CTAs
  kTensorCommit,  ///< b: mbarrier at which it arrives
  kTensorAccess,  ///< tcgen05.ld or st (is_write). a: cells of a lane
  kTensorWait,    ///< for all stores (is_write) or loads
  kTensorAlloc,
};

struct TraceEvent {
  TraceKind kind = TraceKind::kShared;
  bool is_write = false;  ///< also: atomic, of kShared
  bool is_read = false;
  bool is_shared = false;
  bool is_repeat = false;  ///< a multicast at a further receiver
  bool is_pair = false;
  std::uint8_t rank = 0;   ///< of the CTA whose shared memory gets the bytes
  std::uint16_t area = 0;  ///< the allocation, by number in Trace::areas
  /// Of shared memory that a copy takes or fills, 16 bytes each. More than its bytes where they are
  /// spread: 16 codes of 4 bits get 16 bytes, and a swizzled row gets the whole span.
  std::uint16_t shared_units = 0;
  std::uint32_t a = 0;
  std::uint64_t b = 0;  ///< of an mbarrier: rank << 24 | offset
};

struct TraceOp {
  std::uint32_t insn = 0;         ///< KernelCode::insns
  std::uint32_t first_event = 0;  ///< its events reach to those of the next
};

struct WarpTrace {
  std::vector<TraceOp> ops;
  std::vector<TraceEvent> events;
};

struct CtaTrace {
  std::uint64_t linear_index = 0;
  Dim3 index;
  std::uint32_t rank = 0;  ///< in its cluster
  std::vector<WarpTrace> warps;
  std::uint64_t num_ops = 0;
};

/// An allocation that CTAs touched.
struct TracedArea {
  std::uint64_t id = 0, size_bytes = 0;
  double requested_bytes = 0;  ///< by the CTAs that were traced
  double distinct_bytes = 0;   ///< likewise: each CTA's own, summed
  double union_bytes = 0;      ///< of all of them together
  double written_bytes = 0;    ///< of the requested ones
  bool is_variable = false;    ///< of the module: a table that all launches of the kernel read
  bool is_held = false;        ///< by L2 as the launch begins: L2Contents
};

/// Clusters that were traced, their CTAs by rank.
struct LaunchTrace {
  std::vector<std::vector<CtaTrace>> clusters;
  std::vector<TracedArea> areas;
  std::uint64_t num_clusters = 0;  ///< of the launch
};

}  // namespace tilewright::sim
