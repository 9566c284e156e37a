// The tmem check: what orders two accesses to the same cells.
#include "sim/check/tensor/tmem_checker.h"
#include "sim/state/code.h"
#include "sim/state/warp.h"

#include <algorithm>

namespace tilewright::sim {

TmemChecker::Record TmemChecker::record_of(const Warp& warp, const Insn& insn, By by) {
  const OrderChecker::TensorMoments now = order_.tensor_moments(warp);
  Record out;
  out.by = by;
  out.issuer = now.warp;
  out.issue_time = now.warp_time;
  out.agent = by == By::kPipe ? now.pipe : by == By::kLoad ? now.loads : now.stores;
  out.time = by == By::kPipe ? now.pipe_time : by == By::kLoad ? now.loads_time : now.stores_time;
  out.insn = &insn;
  out.warp = &warp;
  return out;
}

bool TmemChecker::is_done(const Warp& warp, const Record& old) const {
  return old.time <= order_.seen(warp).of(old.agent);
}

// Nothing of another warp's is read or written by giving columns back, so it is enough that all
// have met at a cluster barrier, even by .relaxed arrivals. DeepGEMM's GEMMs end so.
bool TmemChecker::is_over_at_free(const Warp& warp, const Record& now, const Record& old) const {
  return now.by == By::kFree && old.by != By::kNobody && !is_done(warp, old) &&
         old.time <= order_.met(warp).of(old.agent);
}

bool TmemChecker::is_issue_known(const Warp& warp, const Record& old) const {
  return old.issue_time <= order_.seen(warp).of(old.issuer);
}

bool TmemChecker::is_load_used(const Warp& warp, const Record& load) const {
  const Clock& seen = order_.seen(warp);
  if (load.time > seen.of(order_.tensor_moments(*load.warp).uses)) return false;
  const std::uint32_t known = seen.of(load.issuer);
  const auto& fences = ctas_.at(load.warp->cta)->warps[load.warp->index].fences;
  return std::ranges::none_of(fences, [&](const ThreadFence& fence) {
    return load.time < fence.loads && fence.time <= known;
  });
}

// The manual: what comes before before_thread_sync is ordered before all later synchronisation, and
// what comes after after_thread_sync after all earlier one. So an access that another one has to
// follow must have been known, by a wait, when after_thread_sync was executed. Which wait came last
// does not matter: one for shared memory that a copy has filled needs no fence of these. What one
// thread orders by itself, with tcgen05.wait or in the pipe, needs none; commit is a fence before.
//
// Public kernels that are right have no such fence at all (CUTLASS), or none where they wait for a
// commit (ThunderKittens) or before they arrive (FlashMLA), or before dealloc (DeepGEMM). But where
// a thread that loads or stores says before_thread_sync, what follows its access by another thread
// says after_thread_sync in all of them: half of a pair orders nothing.
void TmemChecker::check_fences(const Warp& warp, const Record& now, const Record& old,
                               const Units& units, std::uint32_t column, std::uint32_t half,
                               Conflicts& out) {
  if (old.by == By::kNobody || (old.warp == &warp && old.by != By::kPipe)) return;
  const bool is_move = old.by != By::kPipe && old.warp != &warp;
  if (!is_strict_ && (!is_move || now.by == By::kFree)) return;
  const bool has_after = old.time <= state_of(warp).fenced.of(old.agent);
  const bool has_before = is_move && has_fence_before(warp, old);
  if (!has_after) {
    const Hazard hazard =
        has_before && now.by != By::kFree ? Hazard::kHalfFence : Hazard::kNoAfterFence;
    if (is_strict_ || hazard == Hazard::kHalfFence) {
      add(out, hazard, now, old, units, column, half);
    }
  }
  if (is_strict_ && is_move && !has_before) {
    add(out, Hazard::kNoBeforeFence, now, old, units, column, half);
  }
}

/// Whether the thread of an access said before_thread_sync between it and what this warp knows.
bool TmemChecker::has_fence_before(const Warp& warp, const Record& old) const {
  const std::uint32_t known = order_.seen(warp).of(old.issuer);
  const auto& fences = ctas_.at(old.warp->cta)->warps[old.warp->index].fences;
  return std::ranges::any_of(fences, [&](const ThreadFence& fence) {
    return fence.time >= old.issue_time && fence.time <= known;
  });
}

/// The pairs that the manual calls pipelined: issued by one thread, they need nothing in between.
/// It has mma after mma for one accumulator and shape only. That P may be overwritten by the next
/// scores without a wait, in the same columns, is how attention kernels live, ours too.
bool TmemChecker::is_pipelined(const Record& old, const Record& now) {
  switch (now.kind) {
    case TensorKind::kMma:
      return true;
    case TensorKind::kCopy:
      return old.kind == TensorKind::kShift;
    case TensorKind::kShift:
      return old.kind == TensorKind::kMma;
  }
  return false;
}

// Block-scaled kernels copy the next scales over those that a product may still read, and rely on
// the pipe to keep the order: what the manual has no word for is left to strict.
void TmemChecker::check_pipes(const Warp& warp, const Record& now, const Record& old,
                              const Units& units, std::uint32_t column, std::uint32_t half,
                              Conflicts& out) {
  if (old.warp != &warp && !is_issue_known(warp, old)) {
    add(out, Hazard::kPipes, now, old, units, column, half);
  } else if (is_strict_ && !is_pipelined(old, now)) {
    // Who waits for the first one in between has to fence behind the wait, as other threads have.
    if (is_done(warp, old)) return check_fences(warp, now, old, units, column, half, out);
    add(out, Hazard::kPipeOrder, now, old, units, column, half);
  }
}

void TmemChecker::check_last_write(const Warp& warp, const Record& now, const Unit& unit,
                                   bool reads, bool writes, const Units& units,
                                   std::uint32_t column, std::uint32_t half, Conflicts& out) {
  const Record& last = unit.write;
  const auto found = [&](Hazard hazard) { add(out, hazard, now, last, units, column, half); };
  const bool is_pipe = now.by == By::kPipe;
  if (last.by == By::kStore) {
    const bool is_own = last.warp == &warp;
    const bool is_known = is_own || is_issue_known(warp, last);
    // CUTLASS hands row maxima from warp to warp without wait::st: loads and stores keep their
    // order.
    const bool is_tolerated = is_known && (is_own || !is_pipe);
    // What a product has read since is ordered by its commit, behind which some have no fence.
    const bool is_through_pipe = unit.pipe_read.by == By::kPipe && is_done(warp, unit.pipe_read);
    if (is_through_pipe && !is_strict_) {
      return;
    } else if (is_done(warp, last) || (is_own && !is_pipe && writes)) {
      check_fences(warp, now, last, units, column, half, out);
    } else if (!is_tolerated || is_strict_) {
      found(is_tolerated ? Hazard::kKeptOrder
            : is_known   ? Hazard::kStoreWait
                         : Hazard::kStoreOrder);
    }
  } else if (last.by == By::kPipe) {
    if (is_pipe) {
      check_pipes(warp, now, last, units, column, half, out);
    } else if (!is_done(warp, last)) {
      found(reads ? Hazard::kReadEarly : Hazard::kWriteEarly);
    } else {
      check_fences(warp, now, last, units, column, half, out);
    }
  }
}

void TmemChecker::check_load(const Warp& warp, const Record& now, const Record& load,
                             const Units& units, std::uint32_t column, std::uint32_t half,
                             Conflicts& out) {
  const bool is_own_store = load.warp == &warp && now.by == By::kStore;
  if (is_done(warp, load)) {
    if (!is_own_store) check_fences(warp, now, load, units, column, half, out);
    return;
  }
  const bool is_tolerated = is_own_store || is_load_used(warp, load);
  if (is_tolerated && !is_strict_) return;
  add(out,
      is_tolerated                                       ? Hazard::kKeptLoad
      : load.warp == &warp || is_issue_known(warp, load) ? Hazard::kLoadWait
      : is_done(*load.warp, load)                        ? Hazard::kLoadOrder
                                                         : Hazard::kPending,
      now, load, units, column, half);
}

void TmemChecker::check_unit(const Warp& warp, const Record& now, const Unit& unit, bool reads,
                             bool writes, const Units& units, std::uint32_t column,
                             std::uint32_t half, Conflicts& out) {
  // The usual case, product upon product, first: this runs for every cell of each.
  const bool is_pipe = now.by == By::kPipe && !is_strict_;
  const auto is_in_turn = [&](const Record& old) {
    return old.by == By::kNobody || (is_pipe && old.by == By::kPipe && old.warp == &warp);
  };
  const auto is_over = [&](const Record& old) {
    if (!is_over_at_free(warp, now, old)) return false;
    if (is_strict_) add(out, Hazard::kFreeOrder, now, old, units, column, half);
    return true;
  };
  if (!is_in_turn(unit.write) && !is_over(unit.write)) {
    check_last_write(warp, now, unit, reads, writes, units, column, half, out);
  }
  if (!writes) return;
  const Record& read = unit.pipe_read;
  if (!is_in_turn(read) && !is_over(read)) {
    if (now.by == By::kPipe) {
      check_pipes(warp, now, read, units, column, half, out);
    } else if (!is_done(warp, read)) {
      add(out, Hazard::kOperand, now, read, units, column, half);
    }
  }
  if (unit.load.by == By::kLoad && !is_over(unit.load))
    check_load(warp, now, unit.load, units, column, half, out);
}

/// As if the warp wrote all of the columns: their next owner does.
void TmemChecker::free_columns(Warp& warp, const Insn& insn, const TensorAllocEvent& event) {
  CtaState& state = state_of(*warp.cta);
  Record now = record_of(warp, insn, By::kStore);
  now.by = By::kFree;
  const Units units{warp.cta,
                    &state,
                    event.column,
                    event.num_columns,
                    (1u << kHalves) - 1,
                    {kAllLanes, kAllLanes, kAllLanes, kAllLanes}};
  Conflicts conflicts;
  state.freed.resize(kTensorColumns);
  for (std::uint32_t column = event.column; column < event.column + event.num_columns; ++column) {
    for (std::uint32_t half = 0; half < kHalves; ++half) {
      Unit& unit = state.units[column * kHalves + half];
      check_unit(warp, now, unit, false, true, units, column, half, conflicts);
      unit = {};
    }
    state.freed[column] = now;
  }
  for (const Conflict& conflict : conflicts) report(warp, insn, kAllLanes, conflict);
}

void TmemChecker::fence(Warp& warp, const Insn&, std::uint32_t, const FenceEvent& event) {
  constexpr std::size_t kMostRemembered = 64;
  if (event.kind != FenceKind::kTensorAfter && event.kind != FenceKind::kTensorBefore) return;
  WarpState& state = state_of(warp);
  if (event.kind == FenceKind::kTensorAfter) {
    state.fenced = order_.seen(warp);
    return;
  }
  const OrderChecker::TensorMoments now = order_.tensor_moments(warp);
  state.fences.push_back({now.warp_time, now.loads_time});
  if (state.fences.size() > kMostRemembered) state.fences.erase(state.fences.begin());
}

}  // namespace tilewright::sim
