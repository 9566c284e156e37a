#include "sim/event/definedness_observer.h"
#include "sim/event/observer.h"
#include "sim/exec/engine.h"
#include "sim/state/waits.h"

#include <algorithm>
#include <bit>

namespace tilewright::sim {

namespace {

constexpr std::uint32_t kNowhere = 0xffffffff;

/// Lanes that a parked group still needs at its side.
bool is_complete(const Warp& warp, const LaneGroup& group) {
  const std::uint32_t needed = static_cast<std::uint32_t>(group.wait.a) & warp.live;
  return (needed & ~group.lanes) == 0;
}

class Runner {
 public:
  Runner(Warp& warp, std::uint64_t turn) : warp_(warp), turn_(turn) {
    const bool is_observed = warp.observer != nullptr && warp.observer->wants_instructions();
    const bool is_checked = warp.grid->definedness != nullptr;
    run_group_ = is_observed
                     ? is_checked ? &Runner::run_group<true, true> : &Runner::run_group<true, false>
                 : is_checked ? &Runner::run_group<false, true>
                              : &Runner::run_group<false, false>;
  }

  WarpStatus run() {
    while (warp_.live != 0) {
      const int picked = pick();
      if (picked < 0) return has_yielded_ ? WarpStatus::kYielded : WarpStatus::kBlocked;
      if (turn_ == 0) return WarpStatus::kTurnOver;
      (this->*run_group_)(static_cast<std::size_t>(picked));
    }
    return WarpStatus::kDone;
  }

 private:
  /// The group that can go on and is at the lowest place, -1 if there is none.
  int pick() {
    int best = -1;
    for (std::size_t i = 0; i < warp_.groups.size(); ++i) {
      LaneGroup& group = warp_.groups[i];
      if ((yielded_ & group.lanes) != 0 || !wake(group)) continue;
      if (best < 0 || group.pc < warp_.groups[static_cast<std::size_t>(best)].pc) {
        best = static_cast<int>(i);
      }
    }
    return best;
  }

  /// Whether the group can run, after what it waited for has come.
  bool wake(LaneGroup& group) {
    if (group.is_parked) {
      if (is_complete(warp_, group)) {
        group.is_parked = false;
        group.wait = {};
      } else {
        release_if_met(group.wait);
      }
      return !group.is_parked;
    }
    if (group.wait.kind == WaitKind::kNone) return true;
    if (!is_over(warp_, group.wait)) return false;
    group.wait = {};
    group.num_timeouts = 0;
    ++warp_.num_wakes;
    if (!group.is_retry) ++group.pc;
    return true;
  }

  /// bar.warp.sync at several places: groups that together are all that is needed go on.
  void release_if_met(const Wait wait) {
    if (wait.b == 0) return;
    const auto waits_too = [&](const LaneGroup& group) {
      return group.is_parked && group.wait.b != 0 && group.wait.a == wait.a;
    };
    std::uint32_t lanes = 0;
    for (const LaneGroup& group : warp_.groups) lanes |= waits_too(group) ? group.lanes : 0;
    if ((static_cast<std::uint32_t>(wait.a) & warp_.live & ~lanes) != 0) return;
    for (LaneGroup& group : warp_.groups) {
      if (!waits_too(group)) continue;
      group.is_parked = false;
      group.is_retry = true;  // the instruction sees that it was released
      group.wait = {};
    }
  }

  /// The lowest place above `pc` where others are, and whether others are below it.
  std::uint32_t next_meeting(std::size_t self, std::uint32_t pc) const {
    std::uint32_t next = kNowhere;
    for (std::size_t i = 0; i < warp_.groups.size(); ++i) {
      if (i != self && warp_.groups[i].pc >= pc) next = std::min(next, warp_.groups[i].pc);
    }
    return next;
  }

  /// Joins groups that stand at the place of `self` and do not wait for something of their own.
  std::size_t join(std::size_t self) {
    LaneGroup joined = warp_.groups[self];
    for (std::size_t i = warp_.groups.size(); i-- > 0;) {
      const LaneGroup& other = warp_.groups[i];
      const bool waits = !other.is_parked && other.wait.kind != WaitKind::kNone;
      if (i == self || other.pc != joined.pc || waits) continue;
      joined.lanes |= other.lanes;
      ++warp_.num_joins;
      warp_.groups.erase(warp_.groups.begin() + static_cast<std::ptrdiff_t>(i));
      if (i < self) --self;
    }
    warp_.groups[self] = joined;
    return self;
  }

  void park(std::size_t self, std::uint32_t needed, bool anywhere) {
    LaneGroup& group = warp_.groups[self];
    group.is_parked = true;
    group.wait = {WaitKind::kWarpSync, needed, anywhere ? 1U : 0U};
  }

  /// kObserved: tell the observer of each instruction; kInit: follow undefined values.
  template <bool kObserved, bool kInit>
  void run_group(std::size_t self);

  /// After a step that is not kNext. Whether the same group goes on.
  bool leave(std::size_t self, Step step, std::uint32_t active);

  /// The active lanes wait for Warp::wait.
  void hold(std::size_t self, Step step, std::uint32_t active);

  Warp& warp_;
  std::uint64_t turn_;
  void (Runner::*run_group_)(std::size_t self) = nullptr;
  std::uint32_t yielded_ = 0;  ///< lanes that polled in this turn
  bool has_yielded_ = false;
};

template <bool kObserved, bool kInit>
void Runner::run_group(std::size_t self) {
  const Insn* code = warp_.grid->code->insns.data();
  self = join(self);
  LaneGroup* group = &warp_.groups[self];
  std::uint32_t pc = group->pc;
  std::uint32_t lanes = group->lanes;
  std::uint32_t meeting = warp_.groups.size() == 1 ? kNowhere : next_meeting(self, pc + 1);
  warp_.group_lanes = lanes;
  warp_.is_resumed = group->is_retry;
  warp_.is_timed_out = group->is_retry && group->num_timeouts != 0;
  group->is_retry = false;
  const std::uint64_t begin = turn_;
  for (;;) {
    const Insn& insn = code[pc];
    warp_.pc = pc;
    const std::uint32_t active = lanes & (*warp_.row<std::uint32_t>(insn.guard) ^ insn.guard_flip);
    if ((insn.flags & kAligned) != 0) {
      if (lanes != warp_.live) {
        group->pc = pc;
        park(self, kAllLanes, false);
        break;
      }
      const bool is_apart = active != lanes && active != 0;
      if (is_apart && warp_.observer != nullptr) warp_.observer->guarded_apart(warp_, insn, active);
    }
    Step step = Step::kNext;
    if constexpr (kInit) {
      if ((insn.flags & warp_.undefined_flags) != 0) [[unlikely]] {
        warp_.grid->definedness->before(warp_, insn, lanes, active);
      }
    }
    if (active != 0) {
      if constexpr (kObserved) {
        warp_.observer->executing(warp_, insn, active);
        step = insn.exec(warp_, insn, active);
        warp_.observer->executed(warp_, insn, active);
      } else {
        step = insn.exec(warp_, insn, active);
      }
      if constexpr (kInit) {
        if (warp_.has_loaded_undefined) [[unlikely]] {
          warp_.grid->definedness->after_load(warp_, insn, active);
        }
      }
    }
    warp_.is_resumed = warp_.is_timed_out = false;
    if (step == Step::kNext) {
      ++pc;
      if (--turn_ != 0 && pc < meeting) continue;
      group->pc = pc;
      break;
    }
    --turn_;
    group->pc = pc;
    if (!leave(self, step, active)) break;
    pc = group->pc;
    if (turn_ == 0) break;
  }
  warp_.num_executed += begin - turn_;
}

bool Runner::leave(std::size_t self, Step step, std::uint32_t active) {
  LaneGroup& group = warp_.groups[self];
  switch (step) {
    case Step::kJump: {
      const std::uint32_t taken = warp_.jump_lanes;
      if (taken == group.lanes) {
        group.pc = warp_.jump_pc;
        // Alone, it goes on at once; else the others may be behind it now.
        return warp_.groups.size() == 1;
      }
      LaneGroup rest = group;
      rest.lanes &= ~taken;
      ++rest.pc;
      group.pc = warp_.jump_pc;
      group.lanes = taken;
      warp_.groups.push_back(rest);
      return false;
    }
    case Step::kExit: {
      warp_.live &= ~active;
      warp_.cta->num_live_threads -= static_cast<std::uint32_t>(std::popcount(active));
      warp_.cta->barriers->exit(warp_.index, active);
      warp_.cta->cluster->barrier->exit(warp_.cta->rank, warp_.index, active);
      group.lanes &= ~active;
      ++group.pc;
      if (group.lanes == 0) {
        warp_.groups.erase(warp_.groups.begin() + static_cast<std::ptrdiff_t>(self));
      }
      return false;
    }
    case Step::kWait:
    case Step::kRetry:
      hold(self, step, active);
      return false;
    case Step::kYield:
      ++group.pc;
      yielded_ |= group.lanes;
      has_yielded_ = true;
      return false;
    case Step::kNext:
      break;
  }
  return false;
}

void Runner::hold(std::size_t self, Step step, std::uint32_t active) {
  LaneGroup& group = warp_.groups[self];
  // Lanes that the guard kept out go on; those that wait are a group of their own.
  if (active != group.lanes) {
    LaneGroup rest = group;
    rest.lanes &= ~active;
    ++rest.pc;
    group.lanes = active;
    warp_.groups.push_back(rest);
  }
  LaneGroup& waiting = warp_.groups[self];
  if (step == Step::kRetry && warp_.wait.kind == WaitKind::kWarpSync) {
    park(self, static_cast<std::uint32_t>(warp_.wait.a), warp_.wait.b != 0);
    return;
  }
  waiting.wait = warp_.wait;
  if (waiting.wait.kind == WaitKind::kAsync) {
    waiting.wait.b = warp_.cta->cluster->num_async_done;
  }
  waiting.is_retry = step == Step::kRetry;
}

}  // namespace

WarpStatus run_warp(Warp& warp, std::uint64_t turn) {
  return Runner(warp, turn).run();
}

bool time_out(Warp& warp) {
  bool any = false;
  for (LaneGroup& group : warp.groups) {
    if (group.is_parked || group.wait.kind != WaitKind::kMbarrier) continue;
    group.wait = {};
    group.is_retry = true;
    ++group.num_timeouts;
    any = true;
  }
  return any;
}

}  // namespace tilewright::sim
