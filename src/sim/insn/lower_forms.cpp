#include "sim/insn/lower_forms.h"

#include "sim/compile/flatten.h"

#include <fmt/format.h>

namespace tilewright::sim {

int take_rounding(Lowering& l) {
  return l.take_one_of({"rn", "rz", "rm", "rp"});
}

void refuse_type(Lowering& l, Type type) {
  l.fail(std::string(l.syntax().opcode) + " has no type ." + std::string(name_of(type)));
}

void need_target(Lowering& l, int target, std::string_view what) {
  if (l.module().target >= target) return;
  l.fail(std::string(what) + " needs sm_" + std::to_string(target) + " or newer");
}

void need_family_target(Lowering& l, int target, std::string_view what) {
  const Module& module = l.module();
  const bool is_specific = module.is_arch_specific || module.is_family_specific;
  if (module.target >= target && is_specific) return;
  l.fail(fmt::format("{} needs .target sm_{}a or sm_{}f, or a later one; the module says {}", what,
                     target, target, module.target_name()));
}

void need_specific_target(Lowering& l, int target, std::string_view what) {
  const Module& module = l.module();
  if (module.target >= target && module.is_arch_specific) return;
  l.fail(fmt::format("{} needs .target sm_{}a{}; the module says {}", what, target,
                     target == 100 ? " or sm_103a" : "", module.target_name()));
}

namespace {

/// imm: the bits to turn.
template <class T>
Step flip_signs(Warp& warp, const Insn& insn, std::uint32_t active) {
  T values[kLanes];
  const auto* a = warp.row<T>(insn.op[1]);
  for (int lane = 0; lane < kLanes; ++lane) values[lane] = a[lane] ^ static_cast<T>(insn.imm);
  blend(warp.row<T>(insn.op[0]), values, active);
  return Step::kNext;
}

/// 16 and 32 untyped bits are one half and two, 64 are two floats.
Row negated(Lowering& l, Row row, Type type) {
  const Row out = l.scratch(type);
  const bool is_pair = type == Type::kB64;
  ExecFn exec = flip_signs<std::uint32_t>;
  std::uint64_t signs = type == Type::kB32 ? 0x80008000 : 0x80000000;
  if (bits_of(type) == 16) {
    exec = flip_signs<std::uint16_t>;
    signs = 0x8000;
  } else if (bits_of(type) == 64) {
    exec = flip_signs<std::uint64_t>;
    signs = is_pair ? 0x8000000080000000 : 0x8000000000000000;
  }
  Insn& insn = l.emit(exec, {out, row});
  insn.imm = static_cast<std::int64_t>(signs);
  insn.insn_class = InsnClass::kMove;
  return out;
}

}  // namespace

Insn& emit_from(Lowering& l, ExecFn exec, Type to, Type from, int num_sources) {
  const bool minus_a = l.take(kMinusA), minus_c = l.take(kMinusC);
  l.finish_modifiers();
  if (l.num_operands() != num_sources + 1) {
    l.fail("expected " + std::to_string(num_sources + 1) + " operands, found " +
           std::to_string(l.num_operands()));
  }
  const Row d = l.destination(0, to);
  switch (num_sources) {
    case 1:
      return l.emit(exec, {d, l.source(1, from)});
    case 2:
      return l.emit(exec, {d, l.source(1, from), l.source(2, from)});
    default: {
      Row a = l.source(1, from), c = l.source(3, from);
      const Row b = l.source(2, from);
      if (minus_a) a = negated(l, a, from);
      if (minus_c) c = negated(l, c, from);
      return l.emit(exec, {d, a, b, c});
    }
  }
}

Insn& emit_uniform(Lowering& l, ExecFn exec, Type type, int num_sources) {
  if (exec == nullptr) refuse_type(l, type);
  return emit_from(l, exec, type, type, num_sources);
}

}  // namespace tilewright::sim
