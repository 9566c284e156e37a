#include "sim/check/sync/sync_checker.h"

#include "sim/state/code.h"
#include "sim/state/warp.h"

#include <algorithm>
#include <bit>
#include <utility>

#include <fmt/format.h>

namespace tilewright::sim {

namespace {

Cta& cta_of(Warp& warp, std::uint64_t address) {
  return *warp.cta->cluster->ctas[(address & 0xffffffff) >> kSharedRankShift];
}

bool has_waiter(const Cta& cta, std::uint32_t offset) {
  return std::ranges::any_of(cta.warps, [&](const Warp& warp) {
    return std::ranges::any_of(warp.groups, [&](const LaneGroup& group) {
      return group.wait.kind == WaitKind::kMbarrier && (group.wait.a & kSharedOffsetMask) == offset;
    });
  });
}

}  // namespace

void SyncChecker::report(const std::string& kernel, std::string what,
                         std::vector<FindingPlace> places, std::string missing, bool is_strict) {
  Finding finding;
  finding.check = is_strict ? "strict" : "sync";
  finding.kernel = kernel;
  finding.what = std::move(what);
  finding.places = std::move(places);
  if (is_strict) finding.cause = missing;  // the same everywhere, and everywhere missing
  finding.missing = std::move(missing);
  findings_.add(std::move(finding));
}

void SyncChecker::cta_started(Cta& cta) {
  const std::lock_guard lock(mutex_);
  states_[&cta] = {};
}

void SyncChecker::cta_ended(Cta& cta) {
  const std::lock_guard lock(mutex_);
  const auto at = states_.find(&cta);
  if (at == states_.end()) return;
  const State state = std::move(at->second);
  states_.erase(at);
  const std::string& kernel = cta.grid->code->info.name;
  for (const auto& [offset, barrier] : state.barriers) {
    if (barrier.has_copy) {
      report(kernel,
             fmt::format("{} ends while a copy into its shared memory may be under way",
                         describe_cta(cta)),
             {place_of(barrier.copy, "issued")},
             fmt::format("nothing waited for the mbarrier at shared {:#x} on which it completes",
                         offset));
    }
  }
}

std::uint64_t SyncChecker::async_issued(Warp& warp, const Insn& insn,
                                        const AsyncOperation& operation) {
  if (operation.completion != AsyncCompletion::kMbarrier) return 0;
  const std::lock_guard lock(mutex_);
  State& state = states_[&cta_of(warp, operation.mbarrier)];
  const auto at =
      state.barriers.find(static_cast<std::uint32_t>(operation.mbarrier) & kSharedOffsetMask);
  if (at == state.barriers.end() || at->second.has_copy) return 0;
  at->second.has_copy = true;
  at->second.copy = execution_of(warp, insn, operation.lanes);
  return 0;
}

void SyncChecker::init(Warp& warp, const Insn& insn, const MbarrierEvent& event, Cta& cta,
                       State& state) {
  const std::uint32_t offset = event.address & kSharedOffsetMask;
  const auto at = state.barriers.find(offset);
  const Execution now = execution_of(warp, insn, 1U << event.lane);
  if (at != state.barriers.end()) {
    const Mbarrier& old = at->second.state;
    std::string use;
    if (has_waiter(cta, offset)) {
      use = "threads wait for it";
    } else if (old.pending != old.expected || old.tx_bytes != 0) {
      use = fmt::format("{} of {} arrivals and {} bytes of its phase are missing", old.pending,
                        old.expected, old.tx_bytes);
    }
    const std::vector<FindingPlace> places =
        use.empty() && !is_strict_ ? std::vector<FindingPlace>{}
                                   : std::vector{place_of(now, "initialised again"),
                                                 place_of(at->second.init, "initialised")};
    if (!use.empty()) {
      report(warp.grid->code->info.name,
             fmt::format("the mbarrier at shared {:#x} is initialised again in use", offset),
             places, use);
    } else if (is_strict_) {
      report(warp.grid->code->info.name,
             fmt::format("the mbarrier at shared {:#x} is initialised again", offset), places,
             "mbarrier.inval before", true);
    }
  }
  Barrier& barrier = state.barriers[offset];
  barrier = {};
  barrier.init = now;
}

/// Keeps the arrivals; before the state that the event left is read.
void SyncChecker::note(Barrier& barrier, const Warp& warp, const Insn& insn,
                       const MbarrierEvent& event) {
  if (event.action == MbarrierAction::kComplete) {
    barrier.phase.completed_bytes += event.bytes;
  } else {
    barrier.phase.expected_bytes += event.bytes;
  }
  if (event.action != MbarrierAction::kArrive) return;
  const Execution now = execution_of(warp, insn, 1U << event.lane);
  for (Arrival& known : barrier.phase.arrivals) {
    if (known.by.insn == &insn && known.by.warp == now.warp &&
        known.by.cta_order == now.cta_order) {
      known.by.lanes |= now.lanes;
      known.count += event.count;
      return;
    }
  }
  barrier.phase.arrivals.push_back({now, event.count});
}

void SyncChecker::mbarrier(Warp& warp, const Insn& insn, const MbarrierEvent& event) {
  if (event.action == MbarrierAction::kWaitFailure) return;
  Cta& cta = cta_of(warp, event.address);
  const std::lock_guard lock(mutex_);
  State& state = states_[&cta];
  const std::uint32_t offset = event.address & kSharedOffsetMask;
  if (event.action == MbarrierAction::kInit) init(warp, insn, event, cta, state);
  if (event.action == MbarrierAction::kInvalidate) {
    state.barriers.erase(offset);
    return;
  }
  const auto at = state.barriers.find(offset);
  if (at == state.barriers.end()) return;
  if (event.action == MbarrierAction::kWaitSuccess) at->second.has_copy = false;
  Barrier& barrier = at->second;
  const bool was_odd = barrier.state.parity;
  note(barrier, warp, insn, event);
  mbarrier_read(cta.shared + offset, barrier.state);
  if (barrier.state.parity != was_odd) {
    barrier.before = std::exchange(barrier.phase, {});
    ++barrier.number;
  }
}

std::vector<SyncChecker::Arrival> SyncChecker::Barrier::missing() const {
  std::vector<Arrival> out;
  for (const Arrival& arrival : before.arrivals) {
    const bool has_come = std::ranges::any_of(phase.arrivals, [&](const Arrival& now) {
      return now.by.insn == arrival.by.insn && now.by.warp == arrival.by.warp &&
             now.by.cta_order == arrival.by.cta_order;
    });
    if (!has_come) out.push_back(arrival);
  }
  return out;
}

std::vector<WarpName> SyncChecker::missing_at_mbarrier(const Cta& cta, std::uint32_t offset) {
  const std::lock_guard lock(mutex_);
  std::vector<WarpName> out;
  const auto state = states_.find(&cta);
  if (state == states_.end()) return out;
  const auto at = state->second.barriers.find(offset);
  if (at == state->second.barriers.end()) return out;
  for (const Arrival& arrival : at->second.missing()) {
    out.push_back({arrival.by.cta_order, arrival.by.warp});
  }
  return out;
}

std::vector<std::string> SyncChecker::describe_mbarrier(const Cta& cta, std::uint32_t offset) {
  const std::lock_guard lock(mutex_);
  const auto state = states_.find(&cta);
  if (state == states_.end()) return {};
  const auto at = state->second.barriers.find(offset);
  if (at == state->second.barriers.end()) return {"it was never initialised"};
  const Barrier& barrier = at->second;
  const KernelCode& code = *cta.grid->code;
  const auto text = [&](const Arrival& arrival) {
    return fmt::format("{} (count {}) at {}", describe(arrival.by), arrival.count,
                       code.describe(*arrival.by.insn));
  };
  std::vector<std::string> out;
  const FindingPlace init = place_of(barrier.init, "initialised");
  out.push_back(fmt::format("initialised at {} by {}; its {} phase", init.ptx, describe(init.who),
                            ordinal(barrier.number + 1)));
  for (const Arrival& arrival : barrier.phase.arrivals) out.push_back("arrived: " + text(arrival));
  if (barrier.phase.arrivals.empty()) out.push_back("arrived: none in this phase");
  for (const Arrival& arrival : barrier.missing()) {
    out.push_back("did not arrive, unlike in the phase before: " + text(arrival));
  }
  if (barrier.phase.expected_bytes != 0 || barrier.phase.completed_bytes != 0) {
    out.push_back(fmt::format("bytes of this phase: {} expected, {} have come",
                              barrier.phase.expected_bytes, barrier.phase.completed_bytes));
  }
  return out;
}

/// Strict: a named barrier counts threads, not who they are, so that a warp's second arrival stands
/// for one that has not come. No manual says what becomes of it. (To arrive and then wait at the
/// same barrier is how FlashAttention-4 hands on, and is let be.)
void SyncChecker::check_named(const Warp& warp, const Insn& insn, std::uint32_t lanes,
                              const BarrierEvent& event) {
  const KernelCode& code = *warp.grid->code;
  const Instruction* const syntax = code.place(insn).syntax;
  if (!event.is_arrive || syntax == nullptr) return;
  if (std::ranges::find(syntax->modifiers, "arrive") == syntax->modifiers.end()) return;
  const std::lock_guard lock(mutex_);
  NamedArrival& last = states_[warp.cta].named[{event.id, warp.index}];
  const Execution now = execution_of(warp, insn, lanes);
  const bool is_same = last.by.insn != nullptr && last.generation == event.generation;
  if (is_same && (last.by.lanes & lanes) != 0) {
    report(
        code.info.name,
        fmt::format("a warp arrives again at named barrier {} before that is complete", event.id),
        {place_of(now, "arrived again"), place_of(last.by, "arrived")},
        "the second arrival counts as that of threads that have not come: between the two those "
        "that the barrier is for must have passed it",
        true);
  }
  last = {event.generation, now};
}

void SyncChecker::guarded_apart(Warp& warp, const Insn& insn, std::uint32_t active) {
  report(warp.grid->code->info.name, "an .aligned instruction is executed by some lanes of a warp",
         {place_of(warp, insn, active, "executed")},
         "its guard must hold in all lanes of the warp or in none");
}

void SyncChecker::barrier(Warp& warp, const Insn& insn, std::uint32_t lanes,
                          const BarrierEvent& event) {
  if (event.kind == BarrierKind::kNamed && is_strict_) check_named(warp, insn, lanes, event);
}

}  // namespace tilewright::sim
