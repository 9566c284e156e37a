// Work that goes on behind the back of the thread that started it: when it takes effect, and what
// the thread knows about it.
#pragma once

#include "sim/async/bulk_groups.h"
#include "sim/async/mbarrier.h"
#include "sim/event/observer.h"
#include "sim/memory/access.h"
#include "sim/state/warp.h"

#include <array>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

namespace tilewright::sim {

/// The copies of a warp's threads that are under way. Threads that never had one cost nothing.
struct WarpAsync {
  std::array<std::unique_ptr<CopyGroups>, kLanes> cp_async, bulk;
};

/// Wait::a of WaitKind::kAsync.
enum class AsyncGroups : std::uint64_t { kCpAsync, kBulk, kWgmma };

inline bool is_eager(const Warp& warp) {
  return warp.grid->options.async_timing == AsyncTiming::kEager;
}

/// Until some asynchronous work of the cluster has taken effect.
inline Wait wait_for_async(const Warp& warp, AsyncGroups groups) {
  return {WaitKind::kAsync, static_cast<std::uint64_t>(groups), warp.cta->cluster->num_async_done};
}

/// Runs the work now, or leaves it to the engine to choose the moment.
void start_async(Warp& warp, std::function<void()> work);

CopyGroups& cp_async_groups(Warp& warp, int lane);
CopyGroups& bulk_groups(Warp& warp, int lane);
/// The same, or nullptr if the thread never had a copy under way.
CopyGroups* find_cp_async_groups(Warp& warp, int lane);
CopyGroups* find_bulk_groups(Warp& warp, int lane);

/// An mbarrier that asynchronous work or an instruction of one lane acts on.
struct MbarrierPlace {
  std::byte* object = nullptr;
  std::uint32_t address = 0;  ///< rank << 24 | offset
};

/// Errors   FaultError if there is no room for an mbarrier at the address
MbarrierPlace find_mbarrier(Warp& warp, int lane, AddressSpace space, std::uint64_t address);
/// At the same offset in the shared memory of another CTA of the cluster.
MbarrierPlace mbarrier_in_rank(Warp& warp, int lane, const MbarrierPlace& place,
                               std::uint32_t rank);

/// Faults if what is written to shared memory and the mbarrier on which it completes are in
/// different CTAs.
void check_same_cta(std::string_view name, std::uint64_t data, const MbarrierPlace& mbarrier,
                    int lane);

/// Faults with the instruction's name and the state of the barrier, if there is an error.
void check_mbarrier(MbarrierError error, std::string_view name, const MbarrierPlace& place,
                    std::uint32_t lanes);

/// complete_tx by asynchronous work that `warp` started.
void complete_bytes(Warp& warp, const Insn& insn, int lane, const MbarrierPlace& place,
                    std::uint32_t bytes);

/// Tells the observer of an operation, if there is one.
/// Returns  its token
std::uint64_t issue_async(Warp& warp, const Insn& insn, const AsyncOperation& operation);
void finish_async(Warp& warp, const Insn& insn, std::uint64_t token);

}  // namespace tilewright::sim
