#include "sim/check/order/dependent_launch.h"

#include "sim/check/sync/phase_checker.h"
#include "sim/state/code.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

namespace tilewright::sim {

template <class F>
void TouchedBytes::Units::for_each_part(std::uint64_t address, std::uint64_t bytes, F&& f) const {
  std::uint64_t unit = address / unit_bytes_;
  const std::uint64_t end = (address + bytes + unit_bytes_ - 1) / unit_bytes_;
  while (unit < end) {
    const std::uint64_t first = unit % kBits;
    const std::uint64_t count = std::min(end - unit, kBits - first);
    const std::uint64_t mask =
        (count == kBits ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1) << first;
    f(unit / kUnitsOfPage, unit % kUnitsOfPage / kBits, mask);
    unit += count;
  }
}

void TouchedBytes::Units::add(Use use, std::uint64_t address, std::uint64_t bytes) {
  for_each_part(address, bytes, [&](std::uint64_t page, std::uint64_t index, std::uint64_t mask) {
    if (page != last_number_) {
      last_ = &pages_[page];
      last_number_ = page;
    }
    (*last_)[use][index] |= mask;
  });
}

bool TouchedBytes::Units::has(Use use, std::uint64_t address, std::uint64_t bytes) const {
  if (pages_.empty()) return false;
  bool out = false;
  for_each_part(address, bytes, [&](std::uint64_t page, std::uint64_t index, std::uint64_t mask) {
    const auto at = pages_.find(page);
    out |= at != pages_.end() && (at->second[use][index] & mask) != 0;
  });
  return out;
}

void TouchedBytes::add(Use use, std::uint64_t address, std::uint64_t bytes) {
  const bool has_whole_words = address % kWordBytes == 0 && bytes % kWordBytes == 0;
  (has_whole_words ? words_ : bytes_).add(use, address, bytes);
}

bool TouchedBytes::has(Use use, std::uint64_t address, std::uint64_t bytes) const {
  return words_.has(use, address, bytes) || bytes_.has(use, address, bytes);
}

void LaunchHistory::clear() {
  at_start.clear();
  after_wait.clear();
}

LaunchChecker::LaunchChecker(Findings& findings, LaunchHistory& history, PhaseChecker* phases,
                             bool is_dependent)
    : findings_(findings),
      history_(history),
      phases_(phases),
      is_dependent_(is_dependent),
      own_(std::make_shared<PastLaunch>()) {}

void LaunchChecker::launch_started(Grid& grid) {
  own_->kernel = grid.code->info.name;
  if (!is_dependent_) history_.clear();
}

// The next launch may begin when all CTAs have triggered or ended, and its wait is for the end of
// this one. If a CTA of this one waited before that, those before had ended too.
void LaunchChecker::launch_ended(Grid&) {
  constexpr std::size_t kMostLaunches = 16;
  const LaunchHistory::Launches before = history_.at_start;
  const LaunchHistory::Launches known = history_.after_wait;
  history_.after_wait = has_waited_ ? known : before;
  history_.at_start = waits_before_it_triggers_ ? known : before;
  history_.at_start.push_back(own_);
  for (auto* launches : {&history_.at_start, &history_.after_wait}) {
    if (launches->size() > kMostLaunches) launches->erase(launches->begin());
  }
}

void LaunchChecker::fence(Warp& warp, const Insn&, std::uint32_t, const FenceEvent& event) {
  const std::uint64_t cta = warp.cta->linear_index;
  if (event.kind == FenceKind::kGridTrigger) has_triggered_[cta] = true;
  if (event.kind != FenceKind::kGridWait) return;
  has_waited_ = true;
  if (!has_triggered_.contains(cta)) waits_before_it_triggers_ = true;
}

void LaunchChecker::report(Warp& warp, const Insn& insn, std::uint32_t lanes,
                           const PastLaunch& past, bool writes, bool was_written, bool is_waited) {
  Finding finding;
  finding.check = "race";
  finding.kernel = warp.grid->code->info.name;
  finding.what =
      fmt::format("{} what the launch of {} before may still be {}", writes ? "writes" : "reads",
                  readable_name(past.kernel), was_written ? "writing" : "reading");
  finding.places = {place_of(execution_of(warp, insn, lanes), writes ? "written" : "read")};
  finding.missing =
      is_waited
          ? "a launch between the two has no griddepcontrol.wait, so that the wait of this one "
            "says "
            "nothing about those before it: griddepcontrol.wait in every kernel of the chain"
          : "the launch has the attribute of programmatic stream serialization and may begin "
            "early: "
            "griddepcontrol.wait by this thread, or by one that it has met at a barrier since, "
            "before the first access to what earlier kernels write or read";
  finding.cause = finding.missing + past.kernel;
  findings_.add(std::move(finding));
}

void LaunchChecker::touch(Warp& warp, const Insn& insn, std::uint32_t lanes, TouchedBytes::Use use,
                          bool writes, std::uint64_t address, std::uint64_t bytes) {
  own_->footprint.add(use, address, bytes);
  if (!is_dependent_ || history_.at_start.empty()) return;
  const bool is_waited = phases_ != nullptr && phases_->knows_grids_before(warp);
  for (const auto& past : is_waited ? history_.after_wait : history_.at_start) {
    const TouchedBytes& old = past->footprint;
    const bool was_written =
        old.has(TouchedBytes::kWritten, address, bytes) ||
        (use != TouchedBytes::kShared && !writes && old.has(TouchedBytes::kShared, address, bytes));
    const bool was_read =
        writes &&
        (old.has(TouchedBytes::kRead, address, bytes) ||
         (use != TouchedBytes::kShared && old.has(TouchedBytes::kShared, address, bytes)));
    if (was_written || was_read) {
      report(warp, insn, lanes, *past, writes, was_written, is_waited);
      return;
    }
  }
}

void LaunchChecker::global_access(Warp& warp, const Insn& insn, const WarpAccess& access) {
  const bool is_shared =
      access.kind == AccessKind::kAtomic || (access.order.semantics != MemorySemantics::kWeak &&
                                             access.order.semantics != MemorySemantics::kVolatile);
  const bool writes = access.kind != AccessKind::kRead;
  const TouchedBytes::Use use = is_shared ? TouchedBytes::kShared
                                : writes  ? TouchedBytes::kWritten
                                          : TouchedBytes::kRead;
  if (access.is_run) {
    touch(warp, insn, access.lanes, use, writes, access.addresses[0],
          std::uint64_t{kLanes} * access.bytes);
    return;
  }
  std::uint64_t last = ~std::uint64_t{0};
  for (std::uint32_t rest = access.lanes; rest != 0; rest &= rest - 1) {
    const std::uint64_t address = access.addresses[std::countr_zero(rest)];
    if (address == last) continue;
    last = address;
    touch(warp, insn, access.lanes, use, writes, address, access.bytes);
  }
}

std::uint64_t LaunchChecker::async_issued(Warp& warp, const Insn& insn,
                                          const AsyncOperation& operation) {
  for (const AsyncRange& range : operation.ranges) {
    if (range.is_shared || range.bytes == 0) continue;
    const bool writes = range.kind != AccessKind::kRead;
    const TouchedBytes::Use use = range.kind == AccessKind::kAtomic ? TouchedBytes::kShared
                                  : writes                          ? TouchedBytes::kWritten
                                                                    : TouchedBytes::kRead;
    touch(warp, insn, operation.lanes, use, writes, range.address, range.bytes);
  }
  return 0;
}

}  // namespace tilewright::sim
