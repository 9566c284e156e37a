#include "sim/check/order/open_copies.h"

#include "sim/state/code.h"

#include <algorithm>
#include <bit>
#include <utility>

#include <fmt/format.h>

namespace tilewright::sim {

namespace {

bool reads_shared(const AsyncOperation& operation) {
  return std::ranges::any_of(operation.ranges, [](const AsyncRange& range) {
    return range.is_shared && range.kind == AccessKind::kRead;
  });
}

std::uint32_t thread_of(const Warp& warp, std::uint32_t lane) {
  return warp.index * kLanes + lane;
}

}  // namespace

void OpenCopies::cta_started(Cta& cta) {
  const std::lock_guard lock(mutex_);
  states_[&cta] = {};
}

std::uint64_t OpenCopies::async_issued(Warp& warp, const Insn& insn,
                                       const AsyncOperation& operation) {
  const bool is_cp_async = operation.completion == AsyncCompletion::kCpAsyncGroup;
  if (is_cp_async ? !is_strict_ : !reads_shared(operation)) return 0;
  const bool is_to_peer = operation.completion == AsyncCompletion::kMbarrier &&
                          operation.mbarrier >> kSharedRankShift != warp.cta->rank;
  if (!is_cp_async && !is_to_peer && operation.completion != AsyncCompletion::kBulkGroup) return 0;
  const std::lock_guard lock(mutex_);
  State& state = states_[warp.cta];
  const Execution now = execution_of(warp, insn, operation.lanes);
  if (is_to_peer) {
    state.to_peers.push_back({static_cast<std::uint32_t>(operation.mbarrier), now});
    return 0;
  }
  const auto lane = static_cast<std::uint32_t>(std::countr_zero(operation.lanes));
  Groups& groups = is_cp_async ? state.cp_async[warp.index] : state.bulk[thread_of(warp, lane)];
  if (!groups.open) groups.open = now;
  return 0;
}

OpenCopies::Groups* OpenCopies::find(Warp& warp, GroupKind kind, std::uint32_t lane) {
  State& state = states_[warp.cta];
  auto& all = kind == GroupKind::kCpAsync ? state.cp_async : state.bulk;
  const auto at = all.find(kind == GroupKind::kCpAsync ? warp.index : thread_of(warp, lane));
  return at == all.end() ? nullptr : &at->second;
}

namespace {

/// The lanes that groups of this kind are kept for: a warp has those of cp.async in common.
std::uint32_t owners(GroupKind kind, std::uint32_t lanes) {
  return kind == GroupKind::kCpAsync ? lanes & (~lanes + 1) : lanes;
}

}  // namespace

void OpenCopies::group_committed(Warp& warp, const Insn&, GroupKind kind, std::uint32_t lanes) {
  if (kind == GroupKind::kWgmma) return;
  const std::lock_guard lock(mutex_);
  for (std::uint32_t rest = owners(kind, lanes); rest != 0; rest &= rest - 1) {
    Groups* const groups = find(warp, kind, static_cast<std::uint32_t>(std::countr_zero(rest)));
    if (groups == nullptr) continue;
    groups->committed.push_back(std::exchange(groups->open, {}));
    groups->is_open_awaited = false;
  }
}

void OpenCopies::group_waited(Warp& warp, const Insn&, GroupKind kind, std::uint32_t lanes,
                              std::uint32_t num_open) {
  if (kind == GroupKind::kWgmma) return;
  const std::lock_guard lock(mutex_);
  for (std::uint32_t rest = owners(kind, lanes); rest != 0; rest &= rest - 1) {
    Groups* const groups = find(warp, kind, static_cast<std::uint32_t>(std::countr_zero(rest)));
    if (groups == nullptr) continue;
    while (groups->committed.size() > num_open) groups->committed.pop_front();
    if (groups->open) groups->is_open_awaited = true;
  }
}

void OpenCopies::mbarrier(Warp& warp, const Insn&, const MbarrierEvent& event) {
  // The arrival of cp.async.mbarrier.arrive: from here on it is a matter of that mbarrier.
  const bool is_of_cp_async =
      event.action == MbarrierAction::kArrive && event.is_async && event.commit == 0;
  const bool is_wait = event.action == MbarrierAction::kWaitSuccess;
  const auto& peers = warp.cta->cluster->ctas;
  if (!(is_of_cp_async && is_strict_) && !(is_wait && peers.size() > 1)) return;
  const std::lock_guard lock(mutex_);
  if (is_of_cp_async) {
    states_[warp.cta].cp_async.erase(warp.index);
    return;
  }
  for (const auto& peer : peers) {
    const auto at = states_.find(peer.get());
    if (at == states_.end()) continue;
    std::erase_if(at->second.to_peers,
                  [&](const ToPeer& copy) { return copy.mbarrier == event.address; });
  }
}

void OpenCopies::report(const Cta& cta, const Groups& groups, bool is_bulk) {
  const bool is_committed = !groups.open;
  const Copy* copy = &groups.open;
  if (is_committed) {
    const auto at = std::ranges::find_if(groups.committed, [](const Copy& c) { return !!c; });
    if (at == groups.committed.end()) return;
    copy = &*at;
  }
  // CUTLASS's GEMMs for sm_100 end with their last stores committed and not waited for, FlashMLA's
  // prefill with stores not even committed. Who waits without a commit has forgotten it.
  const bool is_mistake = is_bulk && !is_committed && groups.is_open_awaited;
  if (!is_mistake && !is_strict_) return;
  Finding finding;
  finding.check = is_mistake ? "sync" : "strict";
  finding.kernel = cta.grid->code->info.name;
  finding.what = fmt::format(
      "{} ends while {} be under way", describe_cta(cta),
      is_bulk ? "a copy out of its shared memory may" : "cp.async into its shared memory may");
  finding.places = {place_of(**copy, "issued")};
  finding.missing = fmt::format(
      "{}{} by the thread that issued it, before the CTA ends: its shared memory may belong to "
      "another CTA from then on",
      is_committed ? ""
      : is_bulk    ? "cp.async.bulk.commit_group, then "
                   : "cp.async.commit_group, then ",
      is_bulk ? "cp.async.bulk.wait_group.read 0" : "cp.async.wait_group 0");
  findings_.add(std::move(finding));
}

void OpenCopies::cta_ended(Cta& cta) {
  const std::lock_guard lock(mutex_);
  const auto at = states_.find(&cta);
  if (at == states_.end()) return;
  const State state = std::move(at->second);
  states_.erase(at);
  for (const auto& [thread, groups] : state.bulk) report(cta, groups, true);
  for (const auto& [warp, groups] : state.cp_async) report(cta, groups, false);
  for (const ToPeer& open : state.to_peers) {
    Finding finding;
    finding.check = "sync";
    finding.kernel = cta.grid->code->info.name;
    finding.what = fmt::format("{} ends while a copy out of its shared memory may be under way",
                               describe_cta(cta));
    finding.places = {place_of(open.copy, "issued")};
    finding.missing = fmt::format(
        "its peer has not waited for the mbarrier at shared {:#x} on which it completes: a cluster "
        "barrier after that wait, before this CTA ends",
        open.mbarrier & ((1U << kSharedRankShift) - 1));
    findings_.add(std::move(finding));
  }
}

}  // namespace tilewright::sim
