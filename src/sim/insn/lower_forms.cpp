#include "sim/insn/lower_forms.h"

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

Insn& emit_from(Lowering& l, ExecFn exec, Type to, Type from, int num_sources) {
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
    default:
      return l.emit(exec, {d, l.source(1, from), l.source(2, from), l.source(3, from)});
  }
}

Insn& emit_uniform(Lowering& l, ExecFn exec, Type type, int num_sources) {
  if (exec == nullptr) refuse_type(l, type);
  return emit_from(l, exec, type, type, num_sources);
}

}  // namespace tilewright::sim
