#include "sim/compile/definedness_plan.h"

#include "sim/state/definedness.h"

#include <algorithm>
#include <string_view>

namespace tilewright::sim {

namespace {

bool has_modifier(const Instruction& syntax, std::string_view modifier) {
  return std::ranges::find(syntax.modifiers, modifier) != syntax.modifiers.end();
}

SpreadRule rule_of(const Insn& insn, const Instruction* syntax) {
  if (syntax == nullptr) return SpreadRule::kPlain;
  const std::string_view opcode = syntax->opcode;
  const bool is_transposed = has_modifier(*syntax, "trans");
  if (opcode == "ld" || opcode == "ldu") return SpreadRule::kLoad;
  if (opcode == "st" && !has_modifier(*syntax, "async") && !has_modifier(*syntax, "bulk")) {
    return SpreadRule::kStore;
  }
  if (opcode == "ldmatrix") {
    return is_transposed ? SpreadRule::kMatrixLoadTransposed : SpreadRule::kMatrixLoad;
  }
  if (opcode == "stmatrix") {
    return is_transposed ? SpreadRule::kMatrixStoreTransposed : SpreadRule::kMatrixStore;
  }
  if (opcode == "mov") return SpreadRule::kCopy;
  if (opcode == "selp" || opcode == "slct") return SpreadRule::kSelect;
  if (opcode == "shfl") return SpreadRule::kShuffle;
  if (opcode == "vote" || opcode == "match" || opcode == "redux" || opcode == "movmatrix") {
    return SpreadRule::kAcrossLanes;
  }
  if (opcode == "mma") return SpreadRule::kMma;
  if (opcode == "tcgen05" && has_modifier(*syntax, "ld")) return SpreadRule::kLoad;
  if (opcode == "tcgen05" && has_modifier(*syntax, "st")) return SpreadRule::kStore;
  if (opcode == "wgmma") return SpreadRule::kWgmma;
  const bool is_sink = (insn.flags & (kUsesUndefined | kBarrier | kAsync)) != 0;
  return is_sink ? SpreadRule::kSink : SpreadRule::kPlain;
}

/// Rows that may hold undefined lanes although all memory is defined: a set that grows.
std::vector<bool> maybe_undefined_units(const KernelCode& code, const RowUnits& units,
                                        std::size_t num_units) {
  std::vector<bool> is_in(num_units, false);
  for (const Row row : code.undefined_rows) is_in[units.of(row)] = true;
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t i = 0; i < code.insns.size(); ++i) {
      const RowUse& use = code.uses[i];
      const Row* rows = code.rows.data() + use.begin;
      const Row* const end = rows + use.num_written + use.num_read;
      if (!std::any_of(rows + use.num_written, end,
                       [&](Row row) { return is_in[units.of(row)]; })) {
        continue;
      }
      for (int w = 0; w < use.num_written; ++w) {
        if (is_in[units.of(rows[w])]) continue;
        is_in[units.of(rows[w])] = true;
        changed = true;
      }
    }
  }
  return is_in;
}

}  // namespace

void plan_definedness(KernelCode& code, const RegisterRows& registers) {
  for (std::size_t i = 0; i < registers.row_of.size(); ++i) {
    if (registers.is_maybe_undefined[i] && registers.row_of[i] != kNoRow) {
      code.undefined_rows.push_back(registers.row_of[i]);
    }
  }
  const RowUnits units{code.predicate_end};
  const std::size_t num_units = units.of(code.register_bytes) + 1;
  const std::vector<bool> is_in = maybe_undefined_units(code, units, num_units);
  code.spread.clear();
  for (std::size_t i = 0; i < code.insns.size(); ++i) {
    Insn& insn = code.insns[i];
    const RowUse& use = code.uses[i];
    const Row* rows = code.rows.data() + use.begin;
    bool maybe_undefined = is_in[units.of(insn.guard)];
    for (int r = 0; r < use.num_written + use.num_read; ++r) {
      maybe_undefined |= is_in[units.of(rows[r])];
    }
    const bool has_rows = use.num_written + use.num_read != 0 || insn.guard != kTrueRow;
    if (maybe_undefined) insn.flags |= kMaybeUndefined;
    if (has_rows) insn.flags |= kHasRows;
    code.spread.push_back(static_cast<std::uint8_t>(rule_of(insn, code.place(insn).syntax)));
  }
}

}  // namespace tilewright::sim
