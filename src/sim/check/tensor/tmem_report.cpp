// The tmem check: scale factors, and the words of its findings.
#include "sim/check/tensor/tmem_checker.h"
#include "sim/state/code.h"
#include "sim/state/warp.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

namespace tilewright::sim {

namespace {

bool has_modifier(const Warp& warp, const Insn& insn, std::string_view modifier) {
  const Instruction* const syntax = warp.grid->code->place(insn).syntax;
  return syntax != nullptr &&
         std::ranges::find(syntax->modifiers, modifier) != syntax->modifiers.end();
}

std::string describe_lanes_of(const TensorLanes& lanes) {
  std::string out;
  for (std::uint32_t at = 0; at < kTensorLanes;) {
    const auto is_set = [&](std::uint32_t lane) {
      return lane < kTensorLanes && (lanes[lane / 32] >> lane % 32 & 1) != 0;
    };
    if (!is_set(at)) {
      ++at;
      continue;
    }
    std::uint32_t end = at;
    while (is_set(end + 1)) ++end;
    out += fmt::format("{}{}", out.empty() ? "" : ",", at);
    if (end != at) out += fmt::format("-{}", end);
    at = end + 1;
  }
  return out;
}

}  // namespace

// Four data paths read the scales of a row, each from its own lanes.
void TmemChecker::check_scales(const Warp& warp, const Insn& insn, const TensorRegion& region,
                               const TensorOperation& operation) {
  Cta& cta = *warp.cta->cluster->ctas[region.rank];
  const CtaState& state = state_of(cta);
  const bool is_in_halves =
      operation.cta_group == 2 && region.m == 128 && region.role == TensorRole::kScaleB;
  for (std::uint32_t i = 0; i < region.num_columns && region.column + i < kTensorColumns; ++i) {
    const std::uint32_t column = region.column + i;
    const Unit* const units = &state.units[column * kHalves];
    const Record& first = units[0].write;
    const bool is_one_copy =
        first.by == By::kPipe && has_modifier(warp, *first.insn, "warpx4") &&
        std::all_of(units, units + kHalves, [&](const Unit& unit) {
          return unit.write.insn == first.insn && unit.write.time == first.time;
        });
    if (is_one_copy || !cta.tensor_pipe.empty() || cta.tensor_memory == nullptr) continue;
    TensorMemory& memory = *cta.tensor_memory;
    for (std::uint32_t lane = 0; lane < kTensorLanes; ++lane) {
      const std::uint32_t source = is_in_halves ? lane / 64 * 64 + lane % 32 : lane % 32;
      if (memory.cell(lane, column) == memory.cell(source, column)) continue;
      const Unit& unit = state.units[column * kHalves + lane / kHalfLanes];
      report(warp, insn, 1u << operation.lane, Hazard::kScales,
             unit.write.by == By::kNobody ? nullptr : &unit.write, "written",
             fmt::format("the scales of {} in column {} differ between lane {} and lane {}: {:#x} "
                         "and {:#x}",
                         region.role == TensorRole::kScaleA ? "A" : "B", column, source, lane,
                         memory.cell(source, column), memory.cell(lane, column)),
             "scales must stand in all four partitions of 32 lanes: tcgen05.cp .32x128b.warpx4, or "
             "the same tcgen05.st by four warps",
             {}, false);
      return;
    }
  }
}

// Of the hazards that columns and lanes can be named for.
const std::map<TmemChecker::Hazard, TmemChecker::Words> TmemChecker::kWords = {
    {Hazard::kOutside,
     {"access to Tensor Memory that is not allocated", "",
      "tcgen05.alloc before, enough columns, and its address added to the column", false}},
    {Hazard::kFreed,
     {"access to Tensor Memory that has been given back", "given back before it",
      "tcgen05.dealloc must come last: a barrier between the access and it", false}},
    {Hazard::kOwner,
     {"a warp names lanes of another one", "",
      "a warp reaches the 32 lanes from 32 * (its number % 4) on: its address must name "
      "those, or lane 0 or 16",
      false}},
    {Hazard::kReadEarly,
     {"read before the tensor pipe is known to have written it", "issued before it",
      "tcgen05.commit after it, and a wait for the mbarrier at which that arrives", false}},
    {Hazard::kWriteEarly,
     {"overwritten before the tensor pipe is known to have written it", "issued before it",
      "tcgen05.commit after it, and a wait for the mbarrier at which that arrives", false}},
    {Hazard::kOperand,
     {"operand in flight overwritten: the tensor pipe may still read it", "issued before it",
      "tcgen05.commit after it, and a wait for the mbarrier at which that arrives", false}},
    {Hazard::kStoreWait,
     {"used before tcgen05.st is known to be done", "stored before it",
      "tcgen05.wait::st by the warp that stores, before it arrives at the barrier", false}},
    {Hazard::kStoreOrder,
     {"race with a tcgen05.st of another warp", "stored before it",
      "tcgen05.wait::st by the warp that stores, then a barrier or mbarrier between the two",
      false}},
    {Hazard::kKeptOrder,
     {"used before tcgen05.st is known to be done", "stored before it",
      "tcgen05.wait::st after it, by the warp that stores", true}},
    {Hazard::kPending,
     {"overwritten while a tcgen05.ld may still read it", "loaded before it",
      "tcgen05.wait::ld by the warp that loads, then a barrier or mbarrier between the two,"
      " at which it arrives with release",
      false}},
    {Hazard::kLoadWait,
     {"overwritten while a tcgen05.ld may still read it", "loaded before it",
      "tcgen05.wait::ld by the warp that loads, before it arrives at the barrier: that its "
      "registers have been used does not say that the read comes before this",
      false}},
    {Hazard::kLoadOrder,
     {"overwritten while a tcgen05.ld may still read it", "loaded before it",
      "the warp that loads waits for it, but this thread does not know: a barrier or mbarrier "
      "between the two, at which that warp arrives with release (.relaxed tells nothing)",
      false}},
    {Hazard::kKeptLoad,
     {"overwritten while a tcgen05.ld may still read it", "loaded before it",
      "tcgen05.wait::ld after it, by the warp that loads: that its registers have been used"
      " does not say that the read comes before this",
      true}},
    {Hazard::kFreeOrder,
     {"given back before it is known to be over", "issued before it",
      "all warps meet at a cluster barrier in between, but arrive .relaxed, which hands nothing "
      "over: .release there",
      true}},
    {Hazard::kPipes,
     {"two threads' work in the tensor pipe that nothing orders", "issued before it",
      "a barrier or mbarrier between the two threads, or one thread for both", false}},
    {Hazard::kPipeOrder,
     {"the tensor pipe need not keep the order of the two", "issued before it",
      "tcgen05.commit after the first and a wait for the mbarrier at which that arrives: the "
      "manual orders mma after cp, shift and mma, shift after mma, cp after shift, no others",
      true}},
    {Hazard::kUnwritten,
     {"the tensor pipe reads Tensor Memory that was never written", "",
      "write all of it before; the first tcgen05.mma of a sum must not add (enable-input-d "
      "false)",
      false}},
    {Hazard::kUnwrittenLanes,
     {"read of Tensor Memory that was never written", "", "write all of it before", true}},
    {Hazard::kHalfFence,
     {"half a pair of fences: no tcgen05.fence::after_thread_sync since the wait", "before it",
      "tcgen05.fence::after_thread_sync between the wait and the access, as the other thread "
      "executed tcgen05.fence::before_thread_sync after its own",
      false}},
    {Hazard::kNoAfterFence,
     {"no tcgen05.fence::after_thread_sync since the wait", "before it",
      "tcgen05.fence::after_thread_sync between the wait and the access", true}},
    {Hazard::kNoBeforeFence,
     {"no tcgen05.fence::before_thread_sync after the access of another thread", "before it",
      "tcgen05.fence::before_thread_sync between that access and the barrier", true}},
};

void TmemChecker::report(const Warp& warp, const Insn& insn, std::uint32_t lanes,
                         const Conflict& conflict) {
  const Words& words = kWords.at(conflict.hazard);
  std::string_view problem = words.what;
  const bool is_fence =
      conflict.hazard == Hazard::kNoAfterFence || conflict.hazard == Hazard::kNoBeforeFence;
  if (conflict.by == By::kFree && !is_fence) {
    problem = conflict.other.by == By::kLoad   ? "given back while a tcgen05.ld may still read it"
              : conflict.other.by == By::kPipe ? "given back while the tensor pipe may still use it"
                                               : "given back while a tcgen05.st may still write it";
  }
  std::string what =
      fmt::format("{}: lanes {}, column{} {}", problem, describe_lanes_of(conflict.lanes),
                  conflict.from == conflict.to ? "" : "s", conflict.from);
  if (conflict.from != conflict.to) what += fmt::format(" to {}", conflict.to);
  if (conflict.rank != warp.cta->rank) what += " of the peer CTA";
  report(warp, insn, lanes, conflict.hazard,
         conflict.other.by == By::kNobody ? nullptr : &conflict.other, words.role.data(),
         std::move(what), std::string(words.missing), {}, words.is_strict);
}

void TmemChecker::report(const Warp& warp, const Insn& insn, std::uint32_t lanes, Hazard hazard,
                         const Record* other, const char* role, std::string what,
                         std::string missing, std::vector<std::string> notes, bool is_strict) {
  const Insn* const other_insn = other == nullptr ? nullptr : other->insn;
  if (!said_.emplace(hazard, &insn, other_insn).second) return;
  Finding finding;
  finding.check = is_strict ? "strict" : "tmem";
  finding.kernel = warp.grid->code->info.name;
  finding.what = std::move(what);
  finding.places.push_back(
      place_of(warp, insn, lanes, hazard == Hazard::kLeak ? "allocated" : "executed"));
  if (other_insn != nullptr) {
    finding.places.push_back(place_of(*other->warp, *other_insn, other->lanes, role));
  }
  const auto stretch = [&](const Insn* at) {
    return at == nullptr ? 0
                         : stretches_[static_cast<std::size_t>(at - warp.grid->code->insns.data())];
  };
  finding.cause =
      fmt::format("{} {} {}", static_cast<int>(hazard), stretch(&insn), stretch(other_insn));
  finding.notes = std::move(notes);
  finding.missing = std::move(missing);
  findings_.add(std::move(finding));
}

}  // namespace tilewright::sim
