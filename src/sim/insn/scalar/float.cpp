// f32 and f64 arithmetic: add sub mul fma div, neg abs copysign, min max, and pairs of f32.
#include "sim/insn/lower_forms.h"
#include "sim/insn/scalar/float_ops.h"
#include "sim/insn/scalar/float_rounding.h"
#include "sim/insn/scalar/special_function_ops.h"

namespace tilewright::sim {
namespace {

/// Two floats in a 64-bit register.
struct Pair {
  float low, high;
};

template <FloatOp kOp, class T, bool kFtz, bool kSat>
struct Arithmetic;
template <class T, bool kFtz, bool kSat>
struct Arithmetic<FloatOp::kAdd, T, kFtz, kSat> {
  static T run(T a, T b) { return floating::add<T, kFtz, kSat>(a, b); }
};
template <class T, bool kFtz, bool kSat>
struct Arithmetic<FloatOp::kSub, T, kFtz, kSat> {
  static T run(T a, T b) { return floating::sub<T, kFtz, kSat>(a, b); }
};
template <class T, bool kFtz, bool kSat>
struct Arithmetic<FloatOp::kMul, T, kFtz, kSat> {
  static T run(T a, T b) { return floating::mul<T, kFtz, kSat>(a, b); }
};
template <class T, bool kFtz, bool kSat>
struct Arithmetic<FloatOp::kFma, T, kFtz, kSat> {
  static T run(T a, T b, T c) { return floating::fma<T, kFtz, kSat>(a, b, c); }
};

template <FloatOp kOp, bool kFtz>
Pair pair_op(Pair a, Pair b) {
  using Op = Arithmetic<kOp, float, kFtz, false>;
  return {Op::run(a.low, b.low), Op::run(a.high, b.high)};
}
template <bool kFtz>
Pair pair_fma(Pair a, Pair b, Pair c) {
  return {floating::fma<float, kFtz, false>(a.low, b.low, c.low),
          floating::fma<float, kFtz, false>(a.high, b.high, c.high)};
}

int num_sources(FloatOp op) {
  return op == FloatOp::kFma ? 3 : 2;
}

/// Emits kExec, under another rounding mode if the instruction names one.
template <ExecFn kExec>
ExecFn under(bool is_directed) {
  return is_directed ? rounded<kExec> : kExec;
}

template <FloatOp kOp, class T>
ExecFn arithmetic_exec(bool directed, bool ftz, bool sat) {
  if constexpr (std::is_same_v<T, double>) {
    return under<lanes<Arithmetic<kOp, T, false, false>::run>>(directed);
  } else {
    return for_flag(ftz, [=]<bool kFtz>() {
      return for_flag(sat, [=]<bool kSat>() -> ExecFn {
        return under<lanes<Arithmetic<kOp, T, kFtz, kSat>::run>>(directed);
      });
    });
  }
}

template <class T>
ExecFn arithmetic_exec(FloatOp op, bool directed, bool ftz, bool sat) {
  switch (op) {
    case FloatOp::kAdd:
      return arithmetic_exec<FloatOp::kAdd, T>(directed, ftz, sat);
    case FloatOp::kSub:
      return arithmetic_exec<FloatOp::kSub, T>(directed, ftz, sat);
    case FloatOp::kMul:
      return arithmetic_exec<FloatOp::kMul, T>(directed, ftz, sat);
    default:
      return arithmetic_exec<FloatOp::kFma, T>(directed, ftz, sat);
  }
}

template <bool kFtz>
ExecFn pair_exec(FloatOp op, bool directed) {
  switch (op) {
    case FloatOp::kAdd:
      return under<lanes<pair_op<FloatOp::kAdd, kFtz>>>(directed);
    case FloatOp::kSub:
      return under<lanes<pair_op<FloatOp::kSub, kFtz>>>(directed);
    case FloatOp::kMul:
      return under<lanes<pair_op<FloatOp::kMul, kFtz>>>(directed);
    default:
      return under<lanes<pair_fma<kFtz>>>(directed);
  }
}

int rounding_or_nearest(Lowering& l, FloatOp op) {
  const int rounding = take_rounding(l);
  if (rounding < 0 && op == FloatOp::kFma) l.fail("fma needs .rn, .rz, .rm or .rp");
  return rounding < 0 ? 0 : rounding;
}

void finish(Insn& insn, InsnClass insn_class, int rounding) {
  insn.insn_class = insn_class;
  insn.small = static_cast<std::uint8_t>(rounding);
}

}  // namespace

void lower_float(Lowering& l, Type type, FloatOp op) {
  const int rounding = rounding_or_nearest(l, op);
  const bool ftz = l.take("ftz");
  const bool sat = l.take("sat");
  const ExecFn exec = arithmetic_exec<float>(op, rounding != 0, ftz, sat);
  finish(emit_uniform(l, exec, type, num_sources(op)), InsnClass::kFloat, rounding);
}

void lower_double(Lowering& l, FloatOp op) {
  const int rounding = rounding_or_nearest(l, op);
  const ExecFn exec = arithmetic_exec<double>(op, rounding != 0, false, false);
  finish(emit_uniform(l, exec, Type::kF64, num_sources(op)), InsnClass::kDouble, rounding);
}

void lower_packed_float(Lowering& l, FloatOp op) {
  need_target(l, 100, "arithmetic on .f32x2");
  const int rounding = rounding_or_nearest(l, op);
  const bool ftz = l.take("ftz");
  const ExecFn exec =
      ftz ? pair_exec<true>(op, rounding != 0) : pair_exec<false>(op, rounding != 0);
  finish(emit_uniform(l, exec, Type::kB64, num_sources(op)), InsnClass::kFloat, rounding);
}

void lower_float_div(Lowering& l, Type type) {
  if (type == Type::kF64) {
    const int rounding = take_rounding(l);
    if (rounding < 0) l.fail("div.f64 needs .rn, .rz, .rm or .rp");
    const ExecFn exec = under<lanes<floating::div<double, false>>>(rounding != 0);
    finish(emit_uniform(l, exec, type, 2), InsnClass::kDouble, rounding);
    return;
  }
  if (type != Type::kF32) refuse_type(l, type);
  const int kind = l.take_one_of({"rn", "rz", "rm", "rp", "approx", "full"});
  if (kind < 0) l.fail("div.f32 needs .approx, .full, .rn, .rz, .rm or .rp");
  const bool ftz = l.take("ftz");
  const int rounding = kind < 4 ? kind : 0;
  ExecFn exec = for_flag(ftz, [=]<bool kFtz>() -> ExecFn {
    if (kind == 4) return special::quotient_lanes<special::Quotient<kFtz, false>>;
    if (kind == 5) return special::quotient_lanes<special::Quotient<kFtz, true>>;
    return under<lanes<floating::div<float, kFtz>>>(rounding != 0);
  });
  finish(emit_uniform(l, exec, type, 2), InsnClass::kFloat, rounding);
}

void lower_float_sign(Lowering& l, Type type, bool is_negation) {
  if (type == Type::kF64) {
    const ExecFn exec =
        is_negation ? lanes<floating::neg<double, false>> : lanes<floating::abs<double, false>>;
    emit_uniform(l, exec, type, 1).insn_class = InsnClass::kDouble;
    return;
  }
  const ExecFn exec = for_flag(l.take("ftz"), [=]<bool kFtz>() -> ExecFn {
    return is_negation ? lanes<floating::neg<float, kFtz>> : lanes<floating::abs<float, kFtz>>;
  });
  emit_uniform(l, exec, type, 1).insn_class = InsnClass::kFloat;
}

namespace {

/// .abs of three: of the magnitudes.
template <bool kFtz, bool kNan, bool kMax>
float min_max3_abs(float a, float b, float c) {
  return floating::min_max3<float, kFtz, kNan, kMax>(std::fabs(a), std::fabs(b), std::fabs(c));
}

enum class MinMax : std::uint8_t { kTwo, kTwoXorsign, kThree, kThreeAbs };

template <bool kMax>
ExecFn min_max_exec(bool ftz, bool nan, MinMax kind) {
  return for_flag(ftz, [=]<bool kFtz>() {
    return for_flag(nan, [=]<bool kNan>() -> ExecFn {
      if (kind == MinMax::kTwoXorsign) {
        return lanes<floating::min_max_xorsign<float, kFtz, kNan, kMax>>;
      }
      if (kind == MinMax::kThree) return lanes<floating::min_max3<float, kFtz, kNan, kMax>>;
      if (kind == MinMax::kThreeAbs) return lanes<min_max3_abs<kFtz, kNan, kMax>>;
      return lanes<floating::min_max<float, kFtz, kNan, kMax>>;
    });
  });
}

}  // namespace

void lower_float_min_max(Lowering& l, Type type, bool is_max) {
  if (type == Type::kF64) {
    const ExecFn exec = is_max ? lanes<floating::min_max<double, false, false, true>>
                               : lanes<floating::min_max<double, false, false, false>>;
    emit_uniform(l, exec, type, 2).insn_class = InsnClass::kDouble;
    return;
  }
  const bool ftz = l.take("ftz");
  const bool nan = l.take("NaN");
  const bool xorsign = l.take("xorsign");
  const bool abs = l.take("abs");
  const bool is_three = l.num_operands() == 4;
  if (xorsign && !abs) l.fail(".xorsign needs .abs");
  if (abs && !xorsign && !is_three) l.fail(".abs needs .xorsign, or three inputs");
  if (xorsign && is_three) l.fail(".xorsign.abs is for two inputs");
  if (is_three) need_target(l, 100, "min and max of three");
  const MinMax kind = xorsign           ? MinMax::kTwoXorsign
                      : is_three && abs ? MinMax::kThreeAbs
                      : is_three        ? MinMax::kThree
                                        : MinMax::kTwo;
  const ExecFn exec =
      is_max ? min_max_exec<true>(ftz, nan, kind) : min_max_exec<false>(ftz, nan, kind);
  emit_uniform(l, exec, type, is_three ? 3 : 2).insn_class = InsnClass::kFloat;
}

}  // namespace tilewright::sim
