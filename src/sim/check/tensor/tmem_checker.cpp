#include "sim/check/tensor/tmem_checker.h"

#include "sim/check/order/stretch.h"
#include "sim/state/code.h"
#include "sim/state/warp.h"

#include <algorithm>
#include <bit>
#include <utility>

#include <fmt/format.h>

namespace tilewright::sim {

void TmemChecker::launch_started(Grid& grid) {
  lineage_ = plan_lineage(*grid.code);
  stretches_ = stretches_of(*grid.code);
}

void TmemChecker::cta_started(Cta& cta) {
  auto state = std::make_unique<CtaState>();
  state->warps.resize(cta.warps.size());
  state->units.resize(kTensorColumns * kHalves);
  ctas_[&cta] = std::move(state);
}

void TmemChecker::cta_ended(Cta& cta) {
  const CtaState& state = state_of(cta);
  if (cta.tensor_memory && !cta.tensor_memory->allocations().empty() && state.alloc != nullptr) {
    const TensorAllocation& left = cta.tensor_memory->allocations().front();
    report(*state.alloc_warp, *state.alloc, kAllLanes, Hazard::kLeak, nullptr, "",
           fmt::format("columns {} to {} of Tensor Memory are not given back", left.column,
                       left.column + left.num_columns - 1),
           "tcgen05.dealloc by one warp before the CTA ends", {}, false);
  }
  // A peer may still have to tell of its own work in this CTA's memory.
  const auto& ctas = cta.cluster->ctas;
  const bool is_last = std::ranges::all_of(
      ctas, [&](const auto& other) { return other.get() == &cta || other->is_done; });
  if (!is_last) return;
  for (const auto& other : ctas) ctas_.erase(other.get());
}

namespace {

std::uint32_t halves_of(const TensorLanes& lanes) {
  std::uint32_t halves = 0;
  for (std::uint32_t half = 0; half < 8; ++half) {
    if ((lanes[half / 2] >> 16 * (half % 2) & 0xffff) != 0) halves |= 1u << half;
  }
  return halves;
}

}  // namespace

TmemChecker::Units TmemChecker::units_of(const Warp& warp, const TensorRegion& region) {
  Cta& cta = *warp.cta->cluster->ctas[region.rank];
  return {&cta,        &state_of(cta), region.column, region.num_columns, halves_of(region.lanes),
          region.lanes};
}

/// Runs of columns that the warp touches, each with its lanes.
std::vector<TmemChecker::Units> TmemChecker::units_of(const Warp& warp,
                                                      const TensorAccess& access) {
  std::uint32_t first = kTensorColumns, end = 0;
  std::vector<TensorLanes> lanes(kTensorColumns);
  for (std::size_t i = 0; i < std::size_t{access.num_cells} * kLanes; ++i) {
    const TensorAddress& cell = access.cells[i];
    first = std::min(first, cell.column);
    end = std::max(end, cell.column + 1);
    lanes[cell.column][cell.lane / 32] |= 1u << cell.lane % 32;
  }
  std::vector<Units> out;
  for (std::uint32_t column = first; column < end; ++column) {
    const std::uint32_t halves = halves_of(lanes[column]);
    if (halves == 0) continue;
    const bool goes_on = !out.empty() && out.back().lanes == lanes[column] &&
                         out.back().column + out.back().num_columns == column;
    if (goes_on) {
      ++out.back().num_columns;
    } else {
      out.push_back({warp.cta, &state_of(*warp.cta), column, 1, halves, lanes[column]});
    }
  }
  return out;
}

void TmemChecker::add(Conflicts& out, Hazard hazard, const Record& now, const Record& other,
                      const Units& units, std::uint32_t column, std::uint32_t half) {
  const auto is_same = [&](const Conflict& known) {
    return known.hazard == hazard && known.other.insn == other.insn &&
           known.other.warp == other.warp && known.rank == units.cta->rank;
  };
  const auto at = static_cast<std::size_t>(std::ranges::find_if(out, is_same) - out.begin());
  if (at == out.size()) {
    out.push_back({hazard, now.by, other, column, column, {}, units.cta->rank});
  }
  Conflict& conflict = out[at];
  conflict.from = std::min(conflict.from, column);
  conflict.to = std::max(conflict.to, column);
  conflict.lanes[half / 2] |= units.lanes[half / 2] & 0xffffu << 16 * (half % 2);
}

void TmemChecker::check_inside(const Units& units, const Record& now, Conflicts& out) const {
  for (std::uint32_t i = 0; i < units.num_columns; ++i) {
    const std::uint32_t column = units.column + i;
    const bool is_inside = units.cta->tensor_memory != nullptr && column < kTensorColumns &&
                           units.cta->tensor_memory->holder(column) != nullptr;
    if (is_inside) continue;
    const auto half = static_cast<std::uint32_t>(std::countr_zero(units.halves | 1u << 7));
    const auto& freed = units.state->freed;
    const bool is_freed = column < freed.size() && freed[column].insn != nullptr;
    add(out, is_freed ? Hazard::kFreed : Hazard::kOutside, now, is_freed ? freed[column] : Record{},
        units, column, half);
  }
}

// Rows that were never written belong to tiles that are half empty; the init check follows what
// becomes of them. A row that is written in part, or a whole operand that is not, was forgotten.
void TmemChecker::check_written(const Units& units, const Record& now, Conflicts& out) const {
  const bool is_pipe = now.by == By::kPipe;
  std::uint32_t empty = 0, partial = 0;
  const auto is_written = [&](std::uint32_t column, std::uint32_t half) {
    return units.state->units[column * kHalves + half].write.by != By::kNobody;
  };
  for (std::uint32_t half = 0; half < kHalves; ++half) {
    if ((units.halves >> half & 1) == 0) continue;
    std::uint32_t written = 0;
    for (std::uint32_t i = 0; i < units.num_columns; ++i)
      written += is_written(units.column + i, half);
    if (written == 0) empty |= 1u << half;
    if (written != 0 && written != units.num_columns) partial |= 1u << half;
  }
  const bool is_all_empty = empty == units.halves;
  for (std::uint32_t half = 0; half < kHalves; ++half) {
    const bool is_forgotten =
        (partial >> half & 1) != 0 || (is_all_empty && (empty >> half & 1) != 0);
    const bool is_lanes = !is_all_empty && (empty >> half & 1) != 0;
    if (!is_lanes && !(is_forgotten && (is_pipe || is_strict_))) continue;
    if (is_lanes && !is_strict_) continue;
    for (std::uint32_t i = 0; i < units.num_columns; ++i) {
      if (is_written(units.column + i, half)) continue;
      add(out, is_pipe && is_forgotten ? Hazard::kUnwritten : Hazard::kUnwrittenLanes, now, {},
          units, units.column + i, half);
    }
  }
}

void TmemChecker::tensor_access(Warp& warp, const Insn& insn, const TensorAccess& access) {
  const bool is_load = access.kind == AccessKind::kRead;
  Conflicts conflicts;
  const Record now = record_of(warp, insn, is_load ? By::kLoad : By::kStore);
  const std::uint32_t named = *warp.row<std::uint32_t>(insn.op[0]) >> 16 & 127;
  const std::vector<Units> all = units_of(warp, access);
  if (named / 32 != 0 && named / 32 != warp.index % 4) {
    add(conflicts, Hazard::kOwner, now, {}, all.front(), all.front().column,
        static_cast<std::uint32_t>(std::countr_zero(all.front().halves)));
  }
  for (const Units& units : all) {
    check_inside(units, now, conflicts);
    if (is_load) check_written(units, now, conflicts);
    for (std::uint32_t i = 0; i < units.num_columns; ++i) {
      const std::uint32_t column = units.column + i;
      for (std::uint32_t half = 0; half < kHalves; ++half) {
        if ((units.halves >> half & 1) == 0) continue;
        Unit& unit = units.state->units[column * kHalves + half];
        check_unit(warp, now, unit, is_load, !is_load, units, column, half, conflicts);
        if (is_load) {
          unit.load = now;
        } else {
          unit.overwrite(now, Origin::kStored);
        }
      }
    }
  }
  for (const Conflict& conflict : conflicts) report(warp, insn, kAllLanes, conflict);
  is_load ? load_tags(warp, access) : store_tags(warp, access);
  if (is_load) order_.load_started(warp);
}

void TmemChecker::tensor_issued(Warp& warp, const Insn& insn, const TensorOperation& operation) {
  check_group(warp, insn, operation.cta_group);
  const std::uint32_t lanes = 1u << operation.lane;
  Record now = record_of(warp, insn, By::kPipe);
  now.lanes = lanes;
  now.kind = operation.kind;
  Conflicts conflicts;
  for (const TensorRegion& region : operation.regions) {
    const bool reads = region.kind != AccessKind::kWrite, writes = region.kind != AccessKind::kRead;
    const bool is_accumulator = region.role == TensorRole::kAccumulator;
    const Units units = units_of(warp, region);
    check_inside(units, now, conflicts);
    if (reads && (is_accumulator || region.role == TensorRole::kA)) {
      check_written(units, now, conflicts);
      check_layout(warp, insn, region, operation);
    }
    if (region.role == TensorRole::kScaleA || region.role == TensorRole::kScaleB) {
      check_scales(warp, insn, region, operation);
    }
    const std::uint16_t tile = is_accumulator
                                   ? tile_of(*units.state, region, operation.cta_group, insn)
                                   : std::uint16_t{0};
    for (std::uint32_t i = 0; i < units.num_columns && region.column + i < kTensorColumns; ++i) {
      for (std::uint32_t half = 0; half < kHalves; ++half) {
        if ((units.halves >> half & 1) == 0) continue;
        Unit& unit = units.state->units[(units.column + i) * kHalves + half];
        check_unit(warp, now, unit, reads, writes, units, units.column + i, half, conflicts);
        if (reads) unit.pipe_read = now;
        if (!writes) continue;
        unit.overwrite(now, is_accumulator ? Origin::kAccumulator : Origin::kUnknown);
        unit.tile = tile;
      }
    }
  }
  for (const Conflict& conflict : conflicts) report(warp, insn, lanes, conflict);
}

void TmemChecker::tensor_committed(Warp& warp, const Insn& insn, const TensorCommit& commit) {
  check_group(warp, insn, commit.cta_group);
}

void TmemChecker::tensor_allocated(Warp& warp, const Insn& insn, const TensorAllocEvent& event) {
  check_group(warp, insn, event.cta_group);
  CtaState& state = state_of(*warp.cta);
  if (event.action == TensorAllocAction::kDealloc) return free_columns(warp, insn, event);
  if (event.action != TensorAllocAction::kAlloc) return;
  if (is_strict_) check_alloc_order(warp, insn, event.num_columns);
  state.alloc = &insn;
  state.alloc_warp = &warp;
  for (std::uint32_t i = 0; i < event.num_columns && !state.freed.empty(); ++i) {
    state.freed[event.column + i] = {};
  }
  for (std::uint32_t i = 0; i < event.num_columns * kHalves; ++i) {
    Unit& unit = state.units[event.column * kHalves + i];
    // The peer's warp has allocated for both, and its pipe may have written here already.
    if (event.cta_group == 2 && unit.write.by != By::kNobody && !is_done(warp, unit.write) &&
        !is_issue_known(warp, unit.write)) {
      continue;
    }
    unit = {};
  }
}

/// The manual: "should not increase between any two allocations" of a CTA.
void TmemChecker::check_alloc_order(const Warp& warp, const Insn& insn, std::uint32_t num_columns) {
  CtaState& state = state_of(*warp.cta);
  const std::uint32_t last = std::exchange(state.last_alloc_columns, num_columns);
  if (num_columns <= last) return;
  Record before;
  before.insn = state.alloc;
  before.warp = state.alloc_warp;
  report(warp, insn, kAllLanes, Hazard::kAllocOrder, &before, "the one before",
         fmt::format("tcgen05.alloc of {} columns after one of {}", num_columns, last),
         "a CTA's allocations should not grow: the largest first", {}, true);
}

void TmemChecker::check_group(const Warp& warp, const Insn& insn, std::uint32_t cta_group) {
  if (cta_group_ == 0) {
    cta_group_ = cta_group;
    group_insn_ = &insn;
  }
  if (cta_group_ == cta_group) return;
  Record other;
  other.insn = group_insn_;
  other.warp = &warp;
  report(warp, insn, kAllLanes, Hazard::kGroups, &other, "the other one",
         fmt::format("cta_group::{} and cta_group::{} in one kernel", cta_group_, cta_group),
         "all tcgen05 instructions of a kernel must name the same .cta_group", {}, false);
}

void TmemChecker::executing(Warp& warp, const Insn& insn, std::uint32_t active) {
  WarpState& state = state_of(warp);
  if (state.tags == nullptr) return;
  const KernelCode& code = *warp.grid->code;
  const auto index = static_cast<std::size_t>(&insn - code.insns.data());
  const RowUse& use = code.uses[index];
  if (state.has_loads) {
    const Row* const rows = code.rows.data() + use.begin;
    for (std::uint32_t i = 0; i < use.num_read; ++i) {
      std::uint32_t& load = state.load_of[rows[use.num_written + i] / 64];
      if (load == 0) continue;
      order_.load_used(warp, load);
      load = 0;
    }
    for (std::uint32_t i = 0; i < use.num_written; ++i) state.load_of[rows[i] / 64] = 0;
  }
  state.tags->run(warp, insn, lineage_[index], use, active);
}

}  // namespace tilewright::sim
