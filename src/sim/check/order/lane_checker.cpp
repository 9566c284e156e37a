#include "sim/check/order/lane_checker.h"

#include "sim/check/order/stretch.h"
#include "sim/event/move_form.h"
#include "sim/state/code.h"
#include "sim/state/definedness.h"
#include "sim/state/warp.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace tilewright::sim {

namespace {

constexpr std::uint32_t kWordBytes = 4;

/// Lanes that have the address of a lower one. Addresses are multiples of the size.
std::uint32_t repeated_lanes(const WarpAccess& access) {
  const int shift = std::countr_zero(access.bytes);
  std::uint64_t slots = 0;
  for_each_lane(access.lanes, [&](std::uint32_t lane) {
    slots |= std::uint64_t{1} << (access.addresses[lane] >> shift & 63);
  });
  if (std::popcount(slots) == std::popcount(access.lanes)) return 0;
  std::array<std::pair<std::uint64_t, std::uint32_t>, kLanes> sorted;
  std::size_t count = 0;
  for_each_lane(access.lanes, [&](std::uint32_t lane) {
    sorted[count++] = {access.addresses[lane], lane};
  });
  std::sort(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(count));
  std::uint32_t repeated = 0;
  for (std::size_t i = 1; i < count; ++i) {
    if (sorted[i].first == sorted[i - 1].first) repeated |= 1U << sorted[i].second;
  }
  return repeated;
}

bool stores_the_same(Warp& warp, const MoveForm& form, std::uint32_t bytes, std::uint32_t a,
                     std::uint32_t b) {
  std::size_t count = 0;
  while (count < form.rows.size() && form.row_bytes[count] != 0) ++count;
  const std::size_t size = bytes / std::max<std::size_t>(1, count);
  for (std::size_t j = 0; j < count; ++j) {
    const std::byte* const row = warp.row<std::byte>(form.rows[j]);
    const std::size_t width = form.row_bytes[j];
    if (std::memcmp(row + a * width, row + b * width, size) != 0) return false;
  }
  return true;
}

/// tcgen05.alloc writes an address: the warp does, no lane of it.
bool is_of_warp(const Warp& warp, const Insn& insn, const WarpAccess& access) {
  if (access.kind != AccessKind::kWrite || !std::has_single_bit(access.lanes)) return false;
  const auto* const syntax = warp.grid->code->place(insn).syntax;
  return syntax != nullptr && syntax->opcode == "tcgen05";
}

}  // namespace

LaneChecker::Words::Slot& LaneChecker::Words::slot_of(std::uint64_t word) {
  const std::size_t mask = slots_.size() - 1;
  std::size_t i = (word * 0x9e3779b97f4a7c15U >> 32) & mask;
  while (slots_[i].generation == generation_ && slots_[i].word != word) i = (i + 1) & mask;
  return slots_[i];
}

void LaneChecker::Words::grow() {
  constexpr std::size_t kFewestSlots = 256;
  const std::vector<Slot> old = std::exchange(slots_, {});
  slots_.resize(std::max(kFewestSlots, 2 * old.size()));
  for (const Slot& slot : old) {
    if (slot.generation == generation_) slot_of(slot.word) = slot;
  }
}

LaneChecker::Words::List& LaneChecker::Words::at(std::uint64_t word) {
  if (2 * (std::size_t{num_lists_} + 1) > slots_.size()) grow();
  Slot& slot = slot_of(word);
  if (slot.generation == generation_) return lists_[slot.list];
  slot = {word, generation_, num_lists_};
  constexpr std::size_t kUsualRecords = 4;
  if (num_lists_ == lists_.size()) lists_.emplace_back().reserve(kUsualRecords);
  List& list = lists_[num_lists_++];
  list.clear();
  return list;
}

void LaneChecker::Words::clear() noexcept {
  num_lists_ = 0;
  if (++generation_ != 0) return;
  generation_ = 1;  // after 2^32 times: no slot may look as if it were in use
  slots_.clear();
}

void LaneChecker::launch_started(Grid& grid) {
  stretches_ = stretches_of(*grid.code);
}

std::uint64_t LaneChecker::Moments::first_after(std::uint64_t moment) const noexcept {
  const std::uint64_t size = moments_.size();
  for (std::uint64_t i = count_ > size ? count_ - size : 0; i < count_; ++i) {
    if (moments_[i % size] > moment) return moments_[i % size];
  }
  return ~std::uint64_t{0};
}

void LaneChecker::cta_started(Cta& cta) {
  std::vector<WarpState> warps;
  if (!ended_.empty()) {
    warps = std::move(ended_.back());
    ended_.pop_back();
  }
  warps.resize(cta.warps.size());
  for (WarpState& warp : warps) {
    Words words = std::move(warp.words);
    words.clear();
    warp = {};
    warp.words = std::move(words);
  }
  ctas_[&cta] = std::move(warps);
  last_warp_ = nullptr;
}

void LaneChecker::cta_ended(Cta& cta) {
  last_warp_ = nullptr;
  const auto at = ctas_.find(&cta);
  if (at == ctas_.end()) return;
  ended_.push_back(std::move(at->second));
  ctas_.erase(at);
}

LaneChecker::WarpState& LaneChecker::state_of(const Warp& warp) {
  if (&warp != last_warp_) {
    last_ = &ctas_.at(warp.cta)[warp.index];
    last_warp_ = &warp;
  }
  return *last_;
}

void LaneChecker::release(WarpState& state, std::uint32_t lanes) {
  ++state.moment;
  for_each_lane(lanes, [&](std::uint32_t lane) { state.released[lane].add(state.moment); });
}

void LaneChecker::acquire(WarpState& state, std::uint32_t lanes) {
  for_each_lane(lanes, [&](std::uint32_t lane) { state.acquired[lane] = state.moment; });
}

/// Whether the old lane released something after its access and this lane acquired something after
/// that. What they released and acquired is not compared: only lanes that cannot have been ordered
/// are found.
bool LaneChecker::is_ordered(const WarpState& state, const Record& old, std::uint32_t lane) {
  return state.released[old.lane].first_after(old.moment) <= state.acquired[lane];
}

void LaneChecker::shared_access(Warp& warp, const Insn& insn, const WarpAccess& access) {
  WarpState& state = state_of(warp);
  if (is_of_warp(warp, insn, access)) {
    state.words.at(access.addresses[std::countr_zero(access.lanes)] / kWordBytes).clear();
    return;
  }
  if (access.kind == AccessKind::kWrite) check_same_place(warp, insn, access, true);
  if (is_strict_ || warp.group_lanes != warp.live) {
    if (!is_strict_ && state.num_joins != warp.num_joins) state.words.clear();
    state.num_joins = warp.num_joins;
    check_divergence(warp, insn, access);
  } else if (!state.words.is_empty()) {
    state.words.clear();
  }
  if (!access.is_strong()) return;
  release(state, access.lanes);
  if (access.kind != AccessKind::kWrite) acquire(state, access.lanes);
}

void LaneChecker::global_access(Warp& warp, const Insn& insn, const WarpAccess& access) {
  if (access.kind == AccessKind::kWrite) check_same_place(warp, insn, access, false);
  if (!access.is_strong()) return;
  WarpState& state = state_of(warp);
  release(state, access.lanes);
  if (access.kind != AccessKind::kWrite) acquire(state, access.lanes);
}

void LaneChecker::mbarrier(Warp& warp, const Insn&, const MbarrierEvent& event) {
  if (event.is_async && event.action != MbarrierAction::kArrive) return;
  if (warp.cta->is_done) return;  // a commit that is late: the sync check names it
  WarpState& state = state_of(warp);
  if (event.action == MbarrierAction::kArrive) release(state, 1U << event.lane);
  if (event.action == MbarrierAction::kWaitSuccess) acquire(state, 1U << event.lane);
}

void LaneChecker::barrier(Warp& warp, const Insn&, std::uint32_t lanes, const BarrierEvent& event) {
  WarpState& state = state_of(warp);
  // Lanes that met at several instructions have all come when the first of them goes on.
  if (event.kind == BarrierKind::kWarpSync) release(state, event.id);
  if (event.kind != BarrierKind::kWarpSync && event.is_arrive) release(state, lanes);
  if (event.is_passed) acquire(state, lanes);
}

void LaneChecker::lanes_met(Warp& warp, const Insn&, std::uint32_t lanes) {
  if (is_strict_) return;  // shuffles and votes order no memory
  WarpState& state = state_of(warp);
  release(state, lanes);
  acquire(state, lanes);
}

/// Strict: a lane's copies are its stores, done when it waits for them.
std::uint64_t LaneChecker::async_issued(Warp& warp, const Insn& insn,
                                        const AsyncOperation& operation) {
  if (!is_strict_) return 0;
  WarpState& state = state_of(warp);
  if (operation.completion == AsyncCompletion::kBulkGroup) bulk_issued(state, insn, operation);
  if (operation.kind != AsyncKind::kCpAsync) return 0;
  std::array<std::uint64_t, kLanes> addresses{};
  WarpAccess access;
  access.kind = AccessKind::kWrite;
  access.lanes = operation.lanes;
  access.addresses = addresses.data();
  std::uint32_t rest = operation.lanes;
  for (const AsyncRange& range : operation.ranges) {
    if (range.kind != AccessKind::kWrite) continue;
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(rest));
    rest &= rest - 1;
    addresses[lane] = range.address;
    access.bytes = static_cast<std::uint32_t>(range.bytes);
    for (std::uint64_t at = 0; at < range.bytes; at += kWordBytes) {
      state.copies.open.push_back({(range.address + at) / kWordBytes, lane});
    }
  }
  check_divergence(warp, insn, access);
  return 0;
}

/// What a bulk copy reads from shared memory its lane reads until it waits for the copy. The others
/// know of that when they have met it since. (What they wrote before is for the order check.)
void LaneChecker::bulk_issued(WarpState& state, const Insn& insn, const AsyncOperation& operation) {
  const auto lane = static_cast<std::uint32_t>(std::countr_zero(operation.lanes));
  ++state.num_accesses;
  for (const AsyncRange& range : operation.ranges) {
    if (range.kind != AccessKind::kRead || !range.is_shared) continue;
    const std::uint64_t end = (range.address + range.bytes + kWordBytes - 1) / kWordBytes;
    for (std::uint64_t word = range.address / kWordBytes; word < end; ++word) {
      std::vector<Record>& records = state.words.at(word);
      const auto is_old = [&](const Record& old) { return old.lane == lane && !old.is_write; };
      std::erase_if(records, is_old);
      records.push_back({static_cast<std::uint8_t>(lane), 0xf, false, false, &insn, state.moment,
                         state.num_accesses});
      state.bulk[lane].open.push_back({word, lane});
    }
  }
}

void LaneChecker::Copies::commit() {
  committed.push_back(std::move(open));
  open.clear();
}

void LaneChecker::group_committed(Warp& warp, const Insn&, GroupKind kind, std::uint32_t lanes) {
  if (!is_strict_ || kind == GroupKind::kWgmma) return;
  WarpState& state = state_of(warp);
  if (kind == GroupKind::kCpAsync) return state.copies.commit();
  for (auto& [lane, copies] : state.bulk) {
    if ((lanes >> lane & 1) != 0) copies.commit();
  }
}

/// The copies of all groups but the last few were accesses of now.
void LaneChecker::wait(WarpState& state, Copies& copies, std::uint32_t num_open, bool are_writes) {
  for (; copies.committed.size() > num_open; copies.committed.erase(copies.committed.begin())) {
    for (const CopiedWord& copied : copies.committed.front()) {
      for (Record& record : state.words.at(copied.word)) {
        if (record.is_write == are_writes && record.lane == copied.lane) {
          record.moment = state.moment;
        }
      }
    }
  }
}

void LaneChecker::group_waited(Warp& warp, const Insn&, GroupKind kind, std::uint32_t lanes,
                               std::uint32_t num_open) {
  if (!is_strict_ || kind == GroupKind::kWgmma) return;
  WarpState& state = state_of(warp);
  if (kind == GroupKind::kCpAsync) return wait(state, state.copies, num_open, true);
  for (auto& [lane, copies] : state.bulk) {
    if ((lanes >> lane & 1) != 0) wait(state, copies, num_open, false);
  }
}

void LaneChecker::check_divergence(Warp& warp, const Insn& insn, const WarpAccess& access) {
  WarpState& state = state_of(warp);
  const bool is_write = access.kind != AccessKind::kRead;
  std::map<const Insn*, Conflict> conflicts;
  ++state.num_accesses;
  for_each_lane(access.lanes, [&](std::uint32_t lane) {
    const std::uint64_t begin = access.addresses[lane], end = begin + access.bytes;
    for (std::uint64_t word = begin / kWordBytes; word * kWordBytes < end; ++word) {
      const std::uint64_t at = word * kWordBytes;
      const auto from = static_cast<unsigned>(std::max(begin, at) - at);
      const auto to = static_cast<unsigned>(std::min(end, at + kWordBytes) - at);
      Record now{static_cast<std::uint8_t>(lane),
                 static_cast<std::uint8_t>((1U << to) - (1U << from)),
                 is_write,
                 access.is_strong(),
                 &insn,
                 state.moment,
                 state.num_accesses};
      std::vector<Record>& records = state.words.at(word);
      for (const Record& old : records) {
        const bool conflicts_with = old.lane != lane && (old.is_write || is_write) &&
                                    (old.bytes & now.bytes) != 0 &&
                                    !(old.is_strong && now.is_strong) && old.access != now.access;
        const bool is_together = !is_strict_ && (warp.group_lanes >> old.lane & 1) != 0;
        if (!conflicts_with || is_together || is_ordered(state, old, lane)) continue;
        Conflict& conflict = conflicts[old.insn];
        conflict.lanes |= 1U << lane;
        conflict.old_lanes |= 1U << old.lane;
        conflict.from = std::min(conflict.from, at + from);
        conflict.to = std::max(conflict.to, at + to - 1);
        conflict.was_write = old.is_write;
      }
      std::erase_if(records, [&](const Record& old) {
        return old.lane == now.lane && old.is_write == now.is_write;
      });
      records.push_back(now);
    }
  });
  for (const auto& [old, conflict] : conflicts) report(warp, insn, *old, conflict, is_write);
}

void LaneChecker::report(Warp& warp, const Insn& insn, const Insn& old, const Conflict& conflict,
                         bool is_write) {
  const auto [at, is_new] = said_.try_emplace({&old, &insn}, Findings::kNone);
  if (!is_new) return findings_.add_again(at->second);
  const KernelCode& code = *warp.grid->code;
  const auto stretch = [&](const Insn& of) {
    return stretches_[static_cast<std::size_t>(&of - code.insns.data())];
  };
  Finding finding;
  finding.check = is_strict_ ? "strict" : "race";
  finding.kernel = code.info.name;
  finding.what = fmt::format("race between lanes of one warp on shared[{:#x}..{:#x}]",
                             conflict.from & kSharedOffsetMask, conflict.to & kSharedOffsetMask);
  finding.places = {
      place_of(warp, insn, conflict.lanes, is_write ? "written" : "read"),
      place_of(warp, old, conflict.old_lanes, conflict.was_write ? "written" : "read")};
  finding.missing = is_strict_
                        ? "the lanes of a warp are in step only where they are told to meet: "
                          "bar.warp.sync (__syncwarp) between the two"
                        : "the lanes took different ways and have not met since: bar.warp.sync "
                          "(__syncwarp) between the two";
  finding.cause = fmt::format("lanes {} {}", stretch(old), stretch(insn));
  findings_.add(std::move(finding), &at->second);
}

void LaneChecker::check_same_place(Warp& warp, const Insn& insn, const WarpAccess& access,
                                   bool is_shared) {
  const std::uint32_t repeated = repeated_lanes(access);
  if (repeated == 0 || access.is_strong()) return;
  const KernelCode& code = *warp.grid->code;
  const auto rule =
      static_cast<SpreadRule>(code.spread[static_cast<std::size_t>(&insn - code.insns.data())]);
  if (rule != SpreadRule::kStore) return;
  const MoveForm& form = *static_cast<const MoveForm*>(insn.extra);
  std::uint32_t different = 0;
  std::uint64_t address = 0;
  for_each_lane(repeated, [&](std::uint32_t lane) {
    for_each_lane(access.lanes & ((1U << lane) - 1), [&](std::uint32_t other) {
      if (access.addresses[other] != access.addresses[lane] ||
          (different != 0 && address != access.addresses[lane]) ||
          stores_the_same(warp, form, access.bytes, lane, other)) {
        return;
      }
      address = access.addresses[lane];
      different |= 1U << lane | 1U << other;
    });
  });
  if (different == 0) return;
  const auto [at, is_new] = said_.try_emplace({&insn, nullptr}, Findings::kNone);
  if (!is_new) return findings_.add_again(at->second);
  Finding finding;
  finding.check = "race";
  finding.kernel = code.info.name;
  const std::uint64_t shown = is_shared ? address & kSharedOffsetMask : address;
  finding.what = fmt::format("lanes of one instruction store different values to {}[{:#x}..{:#x}]",
                             is_shared ? "shared" : "global", shown, shown + access.bytes - 1);
  finding.places = {place_of(warp, insn, different, "written")};
  finding.missing =
      "which of the values stays is undefined: let one lane store, or use an atomic or a reduction";
  findings_.add(std::move(finding), &at->second);
}

}  // namespace tilewright::sim
