// rcp sqrt rsqrt sin cos lg2 ex2 tanh, and testp and copysign.
#include "sim/insn/lower_forms.h"
#include "sim/insn/scalar/float_rounding.h"
#include "sim/insn/scalar/half_lanes.h"
#include "sim/insn/scalar/special_function_ops.h"
#include "sim/insn/sections.h"

namespace tilewright::sim {
namespace {

using special::UnitCosine;
using special::UnitExponential;
using special::UnitLogarithm;
using special::UnitReciprocal;
using special::UnitReciprocalRoot;
using special::UnitRoot;
using special::UnitSine;
using special::UnitTanh;

constexpr InsnClass kClass = InsnClass::kSpecialFunction;

/// .ftz is the unit alone; without, instructions around it take care of subnormal numbers.
template <class Unit, class Mended, bool kFtz>
constexpr ExecFn approximate =
    special::special_lanes<std::conditional_t<kFtz, special::Alone<Unit>, Mended>>;

template <ExecFn kExec>
ExecFn under_rounding(int rounding) {
  return rounding != 0 ? rounded<kExec> : kExec;
}

/// rcp and sqrt: approximate, or rounded as the host does it.
struct Precision {
  int rounding = 0;
  bool is_approx = false;
};

Precision take_precision(Lowering& l) {
  const int kind = l.take_one_of({"rn", "rz", "rm", "rp", "approx"});
  if (kind < 0) l.fail("expected .approx, .rn, .rz, .rm or .rp");
  return kind == 4 ? Precision{0, true} : Precision{kind, false};
}

void emit_unary(Lowering& l, ExecFn exec, Type type, int rounding) {
  emit_uniform(l, exec, type, 1).small = static_cast<std::uint8_t>(rounding);
}

void lower_rcp(Lowering& l) {
  const Precision precision = take_precision(l);
  const bool ftz = l.take("ftz");
  const Type type = l.type();
  if (type == Type::kF64) {
    if (precision.is_approx != ftz) l.fail("rcp.f64 is .approx.ftz or rounded without .ftz");
    const ExecFn exact =
        under_rounding<lanes<floating::reciprocal<double, false>>>(precision.rounding);
    const ExecFn gross = lanes_one_by_one<special::unit64<special::UnitReciprocal>>;
    emit_unary(l, precision.is_approx ? gross : exact, type, precision.rounding);
    return;
  }
  if (type != Type::kF32) refuse_type(l, type);
  const ExecFn exec = for_flag(ftz, [precision]<bool kFtz>() -> ExecFn {
    if (precision.is_approx) return approximate<UnitReciprocal, special::Reciprocal, kFtz>;
    return under_rounding<lanes<floating::reciprocal<float, kFtz>>>(precision.rounding);
  });
  emit_unary(l, exec, type, precision.rounding);
}

void lower_sqrt(Lowering& l) {
  const Precision precision = take_precision(l);
  const bool ftz = l.take("ftz");
  const Type type = l.type();
  if (type == Type::kF64) {
    if (precision.is_approx || ftz) l.fail("sqrt.f64 needs .rn, .rz, .rm or .rp");
    emit_unary(l, under_rounding<lanes<floating::sqrt<double, false>>>(precision.rounding), type,
               precision.rounding);
    return;
  }
  if (type != Type::kF32) refuse_type(l, type);
  const ExecFn exec = for_flag(ftz, [precision]<bool kFtz>() -> ExecFn {
    if (precision.is_approx) {
      return approximate<UnitRoot, special::Scaled<UnitRoot, special::mend_root>, kFtz>;
    }
    return under_rounding<lanes<floating::sqrt<float, kFtz>>>(precision.rounding);
  });
  emit_unary(l, exec, type, precision.rounding);
}

void lower_rsqrt(Lowering& l) {
  if (!l.take("approx")) l.fail("rsqrt needs .approx");
  const bool ftz = l.take("ftz");
  const Type type = l.type();
  if (type == Type::kF64) {
    emit_uniform(l,
                 ftz ? lanes_one_by_one<special::unit64<UnitReciprocalRoot>>
                     : lanes_one_by_one<special::rsqrt64>,
                 type, 1);
    return;
  }
  if (type != Type::kF32) refuse_type(l, type);
  using Mended = special::Scaled<UnitReciprocalRoot, special::mend_reciprocal_root>;
  emit_uniform(
      l,
      for_flag(ftz,
               []<bool kFtz>() -> ExecFn { return approximate<UnitReciprocalRoot, Mended, kFtz>; }),
      type, 1);
}

template <class Plain, class Flushing>
void lower_f32_only(Lowering& l) {
  if (!l.take("approx")) l.fail(std::string(l.syntax().opcode) + " needs .approx");
  const bool ftz = l.take("ftz");
  const Type type = l.type();
  if (type != Type::kF32) refuse_type(l, type);
  emit_uniform(l, ftz ? special::special_lanes<Flushing> : special::special_lanes<Plain>, type, 1);
}

template <class Format, class Unit>
void emit_half(Lowering& l, Type type) {
  if (bits_of(type) == 32) {
    emit_uniform(l, special::half_unit_lanes<Format, Unit, 2 * kLanes>, Type::kB32, 1);
  } else {
    emit_uniform(l, special::half_unit_lanes<Format, Unit, kLanes>, Type::kB16, 1);
  }
}

void lower_ex2(Lowering& l) {
  if (!l.take("approx")) l.fail("ex2 needs .approx");
  const bool ftz = l.take("ftz");
  const Type type = l.type();
  switch (type) {
    case Type::kF32:
      emit_uniform(l,
                   for_flag(ftz,
                            []<bool kFtz>() -> ExecFn {
                              return approximate<UnitExponential, special::Exponential, kFtz>;
                            }),
                   type, 1);
      return;
    case Type::kF16:
    case Type::kF16x2:
      if (ftz) l.fail("ex2.approx of f16 has no .ftz");
      return emit_half<half::F16, UnitExponential>(l, type);
    case Type::kBf16:
    case Type::kBf16x2:
      if (!ftz) l.fail("ex2.approx of bf16 needs .ftz");
      return emit_half<half::Bf16, UnitExponential>(l, type);
    default:
      refuse_type(l, type);
  }
}

void lower_tanh(Lowering& l) {
  if (!l.take("approx")) l.fail("tanh needs .approx");
  const Type type = l.type();
  switch (type) {
    case Type::kF32:
      emit_uniform(l, special::special_lanes<special::Alone<UnitTanh>>, type, 1);
      return;
    case Type::kF16:
    case Type::kF16x2:
      return emit_half<half::F16, UnitTanh>(l, type);
    case Type::kBf16:
    case Type::kBf16x2:
      return emit_half<half::Bf16, UnitTanh>(l, type);
    default:
      refuse_type(l, type);
  }
}

template <class T>
ExecFn testp_exec(int number_class) {
  using special::NumberClass;
  constexpr ExecFn kExecs[] = {lanes<special::is_of_class<T, NumberClass::kFinite>>,
                               lanes<special::is_of_class<T, NumberClass::kInfinite>>,
                               lanes<special::is_of_class<T, NumberClass::kNumber>>,
                               lanes<special::is_of_class<T, NumberClass::kNotANumber>>,
                               lanes<special::is_of_class<T, NumberClass::kNormal>>,
                               lanes<special::is_of_class<T, NumberClass::kSubnormal>>};
  return kExecs[number_class];
}

void lower_testp(Lowering& l) {
  const int number_class =
      l.take_one_of({"finite", "infinite", "number", "notanumber", "normal", "subnormal"});
  if (number_class < 0)
    l.fail(
        "expected .finite, .infinite, .number, .notanumber, .normal or "
        ".subnormal");
  const Type type = l.type();
  if (type != Type::kF32 && type != Type::kF64) refuse_type(l, type);
  emit_from(l,
            type == Type::kF32 ? testp_exec<float>(number_class) : testp_exec<double>(number_class),
            Type::kPred, type, 1);
}

void lower_copysign(Lowering& l) {
  const Type type = l.type();
  if (type != Type::kF32 && type != Type::kF64) refuse_type(l, type);
  emit_uniform(
      l, type == Type::kF32 ? lanes<floating::copysign<float>> : lanes<floating::copysign<double>>,
      type, 2);
}

const InsnRow kSpecialFunctionRows[] = {
    {"rcp", "rcp.{approx,rnd}{.ftz}.f32 d, a; rcp.rnd.f64 d, a; rcp.approx.ftz.f64 d, a;", 20,
     kClass, lower_rcp},
    {"sqrt", "sqrt.{approx,rnd}{.ftz}.f32 d, a; sqrt.rnd.f64 d, a;", 20, kClass, lower_sqrt},
    {"rsqrt", "rsqrt.approx{.ftz}.{f32,f64} d, a;", 20, kClass, lower_rsqrt},
    {"sin", "sin.approx{.ftz}.f32 d, a;", 20, kClass,
     lower_f32_only<special::Wave<UnitSine>, special::Wave<UnitSine>>},
    {"cos", "cos.approx{.ftz}.f32 d, a;", 20, kClass,
     lower_f32_only<special::Wave<UnitCosine>, special::Wave<UnitCosine>>},
    {"lg2", "lg2.approx{.ftz}.f32 d, a;", 20, kClass,
     lower_f32_only<special::Scaled<UnitLogarithm, special::mend_logarithm>,
                    special::Alone<UnitLogarithm>>},
    {"ex2",
     "ex2.approx{.ftz}.f32 d, a; ex2.approx.{f16,f16x2} d, a; ex2.approx.ftz.{bf16,bf16x2} d, a;",
     20, kClass, lower_ex2},
    {"tanh", "tanh.approx.{f32,f16,f16x2,bf16,bf16x2} d, a;", 75, kClass, lower_tanh},
    {"testp", "testp.{finite,infinite,number,notanumber,normal,subnormal}.{f32,f64} p, a;", 20,
     InsnClass::kPredicate, lower_testp},
    {"copysign", "copysign.{f32,f64} d, sign, magnitude;", 20, InsnClass::kFloat, lower_copysign},
};

}  // namespace

const InsnSection& special_function_section() {
  static const InsnSection section{"Special functions", kSpecialFunctionRows};
  return section;
}

}  // namespace tilewright::sim
