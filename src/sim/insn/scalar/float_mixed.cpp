// add, sub and fma of f32 with f16 or bf16 operands, which are widened first: one rounding.
#include "sim/insn/lower_forms.h"
#include "sim/insn/scalar/float_ops.h"
#include "sim/insn/scalar/float_rounding.h"
#include "sim/insn/scalar/half_lanes.h"

namespace tilewright::sim {
namespace {

/// op: d, then the sources; the last is f32, the others are 16-bit.
template <class Format, FloatOp kOp, bool kSat>
Step run_mixed(Warp& warp, const Insn& insn, std::uint32_t active) {
  alignas(64) float a[kLanes];
  alignas(64) float b[kLanes];
  alignas(64) float values[kLanes];
  Format::widen(warp.row<std::uint16_t>(insn.op[1]), a, kLanes);
  const float* c = warp.row<float>(insn.op[kOp == FloatOp::kFma ? 3 : 2]);
  if constexpr (kOp == FloatOp::kFma) {
    Format::widen(warp.row<std::uint16_t>(insn.op[2]), b, kLanes);
  }
  for (int i = 0; i < kLanes; ++i) {
    if constexpr (kOp == FloatOp::kAdd) values[i] = floating::add<float, false, kSat>(a[i], c[i]);
    if constexpr (kOp == FloatOp::kSub) values[i] = floating::sub<float, false, kSat>(a[i], c[i]);
    if constexpr (kOp == FloatOp::kFma) {
      values[i] = floating::fma<float, false, kSat>(a[i], b[i], c[i]);
    }
  }
  blend(warp.row<float>(insn.op[0]), values, active);
  return Step::kNext;
}

template <class Format, bool kSat>
ExecFn mixed_exec(FloatOp op) {
  switch (op) {
    case FloatOp::kAdd:
      return rounded<run_mixed<Format, FloatOp::kAdd, kSat>>;
    case FloatOp::kSub:
      return rounded<run_mixed<Format, FloatOp::kSub, kSat>>;
    default:
      return rounded<run_mixed<Format, FloatOp::kFma, kSat>>;
  }
}

}  // namespace

void lower_mixed_precision(Lowering& l, Type type, FloatOp op) {
  need_target(l, 100, "arithmetic on .f32 with 16-bit operands");
  if (type != Type::kF16 && type != Type::kBf16) refuse_type(l, type);
  const int rounding = take_rounding(l);
  if (rounding < 0 && op == FloatOp::kFma) l.fail("fma needs .rn, .rz, .rm or .rp");
  const bool sat = l.take("sat");
  l.finish_modifiers();
  const bool is_fma = op == FloatOp::kFma;
  if (l.num_operands() != (is_fma ? 4 : 3)) l.fail("wrong number of operands");
  const ExecFn exec = for_flag(sat, [=]<bool kSat>() {
    return type == Type::kF16 ? mixed_exec<half::F16, kSat>(op) : mixed_exec<half::Bf16, kSat>(op);
  });
  const Row d = l.destination(0, Type::kF32);
  const Row a = l.source(1, Type::kB16);
  Insn& insn = is_fma ? l.emit(exec, {d, a, l.source(2, Type::kB16), l.source(3, Type::kF32)})
                      : l.emit(exec, {d, a, l.source(2, Type::kF32)});
  insn.small = static_cast<std::uint8_t>(rounding < 0 ? 0 : rounding);
  insn.insn_class = InsnClass::kFloat;
}

}  // namespace tilewright::sim
