#include "sim/check/tensor/mma_checker.h"

#include "sim/check/order/stretch.h"
#include "sim/state/code.h"
#include "sim/state/definedness.h"
#include "sim/state/warp.h"

#include <algorithm>
#include <bit>
#include <span>

#include <fmt/format.h>

namespace tilewright::sim {

namespace {

RowUnits row_units(const Warp& warp) {
  return {warp.grid->code->predicate_end};
}

std::size_t index_of(const KernelCode& code, const Insn& insn) {
  return static_cast<std::size_t>(&insn - code.insns.data());
}

}  // namespace

void MmaChecker::report(Warp& warp, const Insn& insn, std::uint32_t lanes, std::string what,
                        const Insn* other, const char* role, std::string missing, bool is_strict) {
  Finding finding;
  finding.check = is_strict ? "strict" : "mma";
  finding.kernel = warp.grid->code->info.name;
  finding.what = std::move(what);
  finding.places.push_back(place_of(warp, insn, lanes, "executed"));
  if (other != nullptr) finding.places.push_back(place_of(warp, *other, lanes, role));
  const auto index = index_of(*warp.grid->code, insn);
  finding.cause = fmt::format("{} {} {}", finding.what.substr(0, finding.what.find(':')),
                              stretches_[index], other == nullptr ? "" : finding.places[1].ptx);
  finding.missing = std::move(missing);
  findings_.add(std::move(finding));
}

void MmaChecker::launch_started(Grid& grid) {
  stretches_ = stretches_of(*grid.code);
}

void MmaChecker::cta_started(Cta& cta) {
  auto state = std::make_unique<CtaState>();
  const KernelCode& code = *cta.grid->code;
  const RowUnits units{code.predicate_end};
  state->warps.resize(cta.warps.size());
  for (WarpState& warp : state->warps) warp.registers.resize(units.of(code.register_bytes) + 1);
  state->groups.resize((cta.warps.size() + 3) / 4);
  ctas_[&cta] = std::move(state);
}

void MmaChecker::cta_ended(Cta& cta) {
  const auto at = ctas_.find(&cta);
  if (at == ctas_.end()) return;
  for (std::size_t g = 0; g < at->second->groups.size(); ++g) {
    const Warpgroup& group = at->second->groups[g];
    if (group.issues.empty()) continue;
    const Issue& left = group.issues.front();
    report(cta.warps[left.warp], *left.insn, kAllLanes,
           "wgmma is not issued by all four warps of the warpgroup", nullptr, "",
           fmt::format(
               "warps {} to {} have issued {}, {}, {} and {}: all four must take the same way",
               4 * g, 4 * g + 3, group.count[0], group.count[1], group.count[2], group.count[3]));
  }
  ctas_.erase(at);
  last_warp_ = nullptr;
}

MmaChecker::WarpState& MmaChecker::state_of(const Warp& warp) {
  if (&warp != last_warp_) {
    last_ = &ctas_.at(warp.cta)->warps[warp.index];
    last_warp_ = &warp;
  }
  return *last_;
}

void MmaChecker::check_access(Warp& warp, const Insn& insn, WarpState& state, Row row,
                              bool is_write, std::uint32_t active, bool is_copy) {
  Register& known = state.registers[row_units(warp).of(row)];
  const bool is_accumulator = known.accumulates > state.done;
  const bool is_operand = known.feeds > state.done;
  const bool is_wrong = is_accumulator || (is_operand && (is_write || is_strict_));
  if (is_wrong && reported_.emplace(&insn, known.wgmma).second) {
    report(warp, insn, active,
           fmt::format("{} a register that a wgmma under way {}", is_write ? "writes" : "reads",
                       is_accumulator ? "accumulates into" : "reads as A"),
           known.wgmma, "issued",
           "wgmma.wait_group is missing: the registers are the wgmma's until then",
           is_copy || (!is_accumulator && !is_write));
  }
  if (is_wrong) known.accumulates = known.feeds = 0;
  if (!is_write) return;
  known.written = state.now;
  known.writer = &insn;
}

void MmaChecker::executing(Warp& warp, const Insn& insn, std::uint32_t active) {
  const KernelCode& code = *warp.grid->code;
  const std::size_t index = index_of(code, insn);
  const auto rule = static_cast<SpreadRule>(code.spread[index]);
  if (rule == SpreadRule::kWgmma) return;
  WarpState& state = state_of(warp);
  ++state.now;
  const RowUse& use = code.uses[index];
  const Row* rows = code.rows.data() + use.begin;
  const bool is_copy = rule == SpreadRule::kCopy && use.num_written == 1 && use.num_read == 1;
  if (is_copy && !is_strict_) return copy(warp, state, rows[0], rows[1]);
  const Row* const read = rows + use.num_written;
  for (const Row row : std::span(read, use.num_read)) {
    check_access(warp, insn, state, row, false, active, is_copy);
  }
  for (const Row row : std::span(rows, use.num_written)) {
    check_access(warp, insn, state, row, true, active, is_copy);
  }
}

// Compilers to PTX put copies anywhere, between fence, wgmma and wait too: the assembler gives both
// registers one place, so that the copy is no access.
void MmaChecker::copy(Warp& warp, WarpState& state, Row to, Row from) {
  const RowUnits units = row_units(warp);
  state.registers[units.of(to)] = state.registers[units.of(from)];
}

void MmaChecker::check_fence(Warp& warp, const Insn& insn, WarpState& state, Row row) {
  Register& known = state.registers[row_units(warp).of(row)];
  if (known.written <= state.fenced) return;
  if (!reported_.emplace(&insn, nullptr).second) return;
  report(warp, insn, kAllLanes,
         "wgmma uses a register that was written without a wgmma.fence since", known.writer,
         "written", "wgmma.fence.sync.aligned between the two");
  state.fenced = state.now;  // said
}

void MmaChecker::wgmma_issued(Warp& warp, const Insn& insn, const WgmmaEvent& event) {
  WarpState& state = state_of(warp);
  ++state.now;
  const RowUnits units = row_units(warp);
  if (state.fenced == 0) {
    report(warp, insn, kAllLanes, "the first wgmma comes without a wgmma.fence before", nullptr, "",
           "wgmma.fence.sync.aligned before the first wgmma");
    state.fenced = state.now;
  }
  for (const Row row : event.accumulators) {
    check_fence(warp, insn, state, row);
    Register& known = state.registers[units.of(row)];
    if (known.feeds > state.done ||
        (known.accumulates > state.done && known.shape_n != event.shape_n)) {
      report(warp, insn, kAllLanes,
             "an accumulator is in use by a wgmma under way of another shape, or as its A",
             known.wgmma, "issued", "wgmma.wait_group between the two");
      known.feeds = 0;
    }
    known.accumulates = state.group;
    known.shape_n = event.shape_n;
    known.wgmma = &insn;
  }
  for (const Row row : event.a_registers) {
    check_fence(warp, insn, state, row);
    Register& known = state.registers[units.of(row)];
    if (known.accumulates > state.done) {
      report(warp, insn, kAllLanes, "A is an accumulator of a wgmma under way", known.wgmma,
             "issued", "wgmma.wait_group between the two");
    }
    known.feeds = state.group;
    known.wgmma = &insn;
  }
  compare(warp, insn, event);
}

void MmaChecker::compare(Warp& warp, const Insn& insn, const WgmmaEvent& event) {
  Warpgroup& group = ctas_.at(warp.cta)->groups[warp.index / 4];
  const std::uint64_t number = group.count[warp.index % 4]++;
  const std::uint64_t a = event.a_registers.empty() ? event.a_descriptor : 0;
  if (number - group.first >= group.issues.size()) {
    group.issues.push_back({&insn, a, event.b_descriptor, event.reads_accumulators, warp.index});
  } else {
    const Issue& other = group.issues[number - group.first];
    std::string what;
    if (other.insn != &insn) {
      what = "the warps of a warpgroup issue different wgmmas";
    } else if (other.a != a || other.b != event.b_descriptor) {
      const bool is_a = other.a != a;
      what = fmt::format("descriptors differ over the warpgroup: {} is {:#x}, and {:#x} of warp {}",
                         is_a ? "A" : "B", is_a ? a : event.b_descriptor, is_a ? other.a : other.b,
                         other.warp);
    } else if (other.reads_accumulators != event.reads_accumulators) {
      what = "scale-d differs over the warpgroup";
    }
    if (!what.empty()) {
      report(warp, insn, kAllLanes, std::move(what), nullptr, "",
             fmt::format("all four warps must issue the same; warp {} issued the one at {}",
                         other.warp, warp.grid->code->describe(*other.insn)));
    }
  }
  const std::uint64_t least = *std::ranges::min_element(group.count);
  for (; group.first < least; ++group.first) group.issues.pop_front();
}

void MmaChecker::fence(Warp& warp, const Insn&, std::uint32_t, const FenceEvent& event) {
  if (event.kind != FenceKind::kWgmma) return;
  WarpState& state = state_of(warp);
  state.fenced = state.now++;
}

void MmaChecker::group_committed(Warp& warp, const Insn&, GroupKind kind, std::uint32_t) {
  if (kind == GroupKind::kWgmma) ++state_of(warp).group;
}

void MmaChecker::group_waited(Warp& warp, const Insn&, GroupKind kind, std::uint32_t,
                              std::uint32_t num_open) {
  if (kind != GroupKind::kWgmma) return;
  WarpState& state = state_of(warp);
  const std::uint32_t committed = state.group - 1;
  if (committed > num_open) state.done = std::max(state.done, committed - num_open);
}

}  // namespace tilewright::sim
