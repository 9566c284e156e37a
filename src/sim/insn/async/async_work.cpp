#include "sim/insn/async/async_work.h"

#include "sim/exec/random_timing.h"
#include "sim/memory/access_fault.h"

#include <fmt/format.h>

namespace tilewright::sim {
namespace {

WarpAsync& state_of(Warp& warp) {
  if (!warp.async) warp.async = std::make_shared<WarpAsync>();
  return *warp.async;
}

CopyGroups& groups_of(std::unique_ptr<CopyGroups>& groups) {
  if (!groups) groups = std::make_unique<CopyGroups>();
  return *groups;
}

}  // namespace

void start_async(Warp& warp, std::function<void()> work) {
  const bool is_at_once = is_random(*warp.grid) && random_below(*warp.cta->cluster, 4) == 0;
  if (is_eager(warp) || is_at_once) {
    work();
  } else {
    warp.cta->cluster->pending.push_back(std::move(work));
  }
}

CopyGroups& cp_async_groups(Warp& warp, int lane) {
  return groups_of(state_of(warp).cp_async[static_cast<std::size_t>(lane)]);
}

CopyGroups& bulk_groups(Warp& warp, int lane) {
  return groups_of(state_of(warp).bulk[static_cast<std::size_t>(lane)]);
}

CopyGroups* find_cp_async_groups(Warp& warp, int lane) {
  return warp.async ? warp.async->cp_async[static_cast<std::size_t>(lane)].get() : nullptr;
}

CopyGroups* find_bulk_groups(Warp& warp, int lane) {
  return warp.async ? warp.async->bulk[static_cast<std::size_t>(lane)].get() : nullptr;
}

MbarrierPlace find_mbarrier(Warp& warp, int lane, AddressSpace space, std::uint64_t address) {
  const Range range = resolve_range(warp, static_cast<std::uint32_t>(lane), space, address, 8, 8,
                                    AccessKind::kAtomic);
  if (!range.is_shared) {
    fault_wrong_space(AddressSpace::kSharedCluster, AccessKind::kAtomic, address, 1u << lane);
  }
  return {range.data, static_cast<std::uint32_t>(range.address)};
}

MbarrierPlace mbarrier_in_rank(Warp& warp, int lane, const MbarrierPlace& place,
                               std::uint32_t rank) {
  const std::uint32_t offset = place.address & ((1u << kSharedRankShift) - 1);
  return find_mbarrier(warp, lane, AddressSpace::kSharedCluster, rank << kSharedRankShift | offset);
}

void check_same_cta(std::string_view name, std::uint64_t data, const MbarrierPlace& mbarrier,
                    int lane) {
  const std::uint32_t data_rank = static_cast<std::uint32_t>(data) >> kSharedRankShift;
  const std::uint32_t mbarrier_rank = mbarrier.address >> kSharedRankShift;
  if (data_rank == mbarrier_rank) return;
  fault(
      FaultKind::kInvalidAddressSpace, 1U << lane,
      fmt::format("{}: the data go to the CTA of rank {}, and the mbarrier is in that of rank {}; "
                  "both must be in one CTA",
                  name, data_rank, mbarrier_rank));
}

void check_mbarrier(MbarrierError error, std::string_view name, const MbarrierPlace& place,
                    std::uint32_t lanes) {
  if (error == MbarrierError::kNone) return;
  fault(FaultKind::kFinding, lanes,
        fmt::format("{} by {} on the mbarrier at shared {:#x} {}; state: {}", name,
                    describe_lanes(lanes), place.address, to_string(error),
                    mbarrier_describe(place.object)));
}

void complete_bytes(Warp& warp, const Insn& insn, int lane, const MbarrierPlace& place,
                    std::uint32_t bytes) {
  Mbarrier before;
  mbarrier_read(place.object, before);
  const MbarrierResult result = mbarrier_complete_tx(place.object, bytes);
  check_mbarrier(result.error, "complete_tx of asynchronous work", place, 1u << lane);
  if (warp.observer == nullptr) return;
  MbarrierEvent event;
  event.action = MbarrierAction::kComplete;
  event.lane = static_cast<std::uint32_t>(lane);
  event.address = place.address;
  event.bytes = bytes;
  event.phase = before.parity ? 1 : 0;
  event.is_async = true;
  warp.observer->mbarrier(warp, insn, event);
}

std::uint64_t issue_async(Warp& warp, const Insn& insn, const AsyncOperation& operation) {
  return warp.observer == nullptr ? 0 : warp.observer->async_issued(warp, insn, operation);
}

void finish_async(Warp& warp, const Insn& insn, std::uint64_t token) {
  if (warp.observer != nullptr) warp.observer->async_done(warp, insn, token);
}

}  // namespace tilewright::sim
