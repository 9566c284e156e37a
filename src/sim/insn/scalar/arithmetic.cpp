// The rows of add, sub, mul and their like: one opcode for all types, sorted by type here.
#include "sim/insn/lower_forms.h"
#include "sim/insn/scalar/integer_ops.h"
#include "sim/insn/sections.h"

namespace tilewright::sim {
namespace {

bool is_half(Type type) {
  return type == Type::kF16 || type == Type::kBf16 || type == Type::kF16x2 || type == Type::kBf16x2;
}

bool is_float_type(Type type) {
  return type == Type::kF32 || type == Type::kF64;
}

/// True if the type is a float type and the instruction has been translated.
bool lower_as_float(Lowering& l, Type type, FloatOp op) {
  if (is_half(type)) {
    lower_half(l, type, op);
  } else if (type == Type::kF32) {
    const Type second = op == FloatOp::kMul ? Type::kNone : l.optional_type();
    if (second == Type::kNone) {
      lower_float(l, type, op);
    } else {
      lower_mixed_precision(l, second, op);
    }
  } else if (type == Type::kF64) {
    lower_double(l, op);
  } else if (type == Type::kF32x2) {
    lower_packed_float(l, op);
  } else {
    return false;
  }
  return true;
}

void lower_add(Lowering& l) {
  const Type type = l.type();
  if (!lower_as_float(l, type, FloatOp::kAdd)) lower_integer_add(l, type, false);
}
void lower_sub(Lowering& l) {
  const Type type = l.type();
  if (!lower_as_float(l, type, FloatOp::kSub)) lower_integer_add(l, type, true);
}
void lower_mul(Lowering& l) {
  const Type type = l.type();
  if (!lower_as_float(l, type, FloatOp::kMul)) lower_integer_mul(l, type);
}
void lower_fma(Lowering& l) {
  const Type type = l.type();
  if (!lower_as_float(l, type, FloatOp::kFma)) refuse_type(l, type);
}
void lower_mad(Lowering& l) {
  const Type type = l.type();
  if (is_float_type(type)) {
    lower_as_float(l, type, FloatOp::kFma);
  } else {
    lower_integer_mad(l, type);
  }
}
void lower_div(Lowering& l) {
  const Type type = l.type();
  if (is_float(type)) {
    lower_float_div(l, type);
  } else {
    lower_integer_div(l, type, false);
  }
}
void lower_rem(Lowering& l) {
  lower_integer_div(l, l.type(), true);
}

void lower_abs(Lowering& l) {
  const Type type = l.type();
  if (is_half(type)) {
    lower_half_sign(l, type, false);
  } else if (is_float_type(type)) {
    lower_float_sign(l, type, false);
  } else {
    lower_integer_abs(l, type);
  }
}
void lower_neg(Lowering& l) {
  const Type type = l.type();
  if (is_half(type)) {
    lower_half_sign(l, type, true);
  } else if (is_float_type(type)) {
    lower_float_sign(l, type, true);
  } else {
    lower_integer_neg(l, type);
  }
}

void lower_min_max(Lowering& l, bool is_max) {
  const Type type = l.type();
  if (is_half(type)) {
    lower_half_min_max(l, type, is_max);
  } else if (is_float_type(type)) {
    lower_float_min_max(l, type, is_max);
  } else {
    lower_integer_min_max(l, type, is_max);
  }
}
void lower_min(Lowering& l) {
  lower_min_max(l, false);
}
void lower_max(Lowering& l) {
  lower_min_max(l, true);
}

void lower_sad(Lowering& l) {
  const Type type = l.type();
  if (is_bits(type)) refuse_type(l, type);
  const ExecFn exec = for_integer(type, []<class T>() -> ExecFn { return lanes<integer::sad<T>>; });
  emit_uniform(l, exec, type, 3);
}

template <class T>
ExecFn exec24(bool is_mad, bool is_high) {
  if (is_mad) return is_high ? lanes<integer::mad24_hi<T>> : lanes<integer::mad24_lo<T>>;
  return is_high ? lanes<integer::mul24_hi<T>> : lanes<integer::mul24_lo<T>>;
}

void lower_24(Lowering& l, bool is_mad) {
  const int half = l.take_one_of({"lo", "hi"});
  if (half < 0) l.fail("expected .lo or .hi");
  const Type type = l.type();
  if (type != Type::kU32 && type != Type::kS32) refuse_type(l, type);
  if (is_mad && l.take("sat")) {
    if (half == 0 || type != Type::kS32) l.fail(".sat needs mad24.hi.s32");
    emit_uniform(l, lanes<integer::mad24_hi_sat>, type, 3);
    return;
  }
  const ExecFn exec = type == Type::kS32 ? exec24<std::int32_t>(is_mad, half == 1)
                                         : exec24<std::uint32_t>(is_mad, half == 1);
  emit_uniform(l, exec, type, is_mad ? 3 : 2);
}
void lower_mul24(Lowering& l) {
  lower_24(l, false);
}
void lower_mad24(Lowering& l) {
  lower_24(l, true);
}

constexpr InsnClass kInteger = InsnClass::kInteger;

const InsnRow kArithmeticRows[] = {
    {"add",
     "add{.sat}.{u,s}{16,32,64,16x2} d, a, b; add{.rnd}{.ftz}{.sat}.f32{.f16,.bf16} d, a, b; "
     "add{.rnd}.f64 d, a, b; add{.rn}{.ftz}{.sat}.{f16,f16x2} d, a, b; "
     "add{.rn}.{bf16,bf16x2} d, a, b; add{.rnd}{.ftz}.f32x2 d, a, b;",
     20, kInteger, lower_add},
    {"sub",
     "sub{.sat}.{u,s}{16,32,64,16x2} d, a, b; sub{.rnd}{.ftz}{.sat}.f32{.f16,.bf16} d, a, b; "
     "sub{.rnd}.f64 d, a, b; sub{.rn}{.ftz}{.sat}.{f16,f16x2} d, a, b; "
     "sub{.rn}.{bf16,bf16x2} d, a, b; sub{.rnd}{.ftz}.f32x2 d, a, b;",
     20, kInteger, lower_sub},
    {"mul",
     "mul.{hi,lo,wide}.{u,s}{16,32,64} d, a, b; mul{.rnd}{.ftz}{.sat}.f32 d, a, b; "
     "mul{.rnd}.f64 d, a, b; mul{.rn}{.ftz}{.sat}.{f16,f16x2} d, a, b; "
     "mul{.rn}.{bf16,bf16x2} d, a, b; mul{.rnd}{.ftz}.f32x2 d, a, b;",
     20, kInteger, lower_mul},
    {"mad",
     "mad.{hi,lo,wide}.{u,s}{16,32,64} d, a, b, c; mad.hi.sat.s32 d, a, b, c; "
     "mad.rnd{.ftz}{.sat}.f32 d, a, b, c; mad.rnd.f64 d, a, b, c;",
     20, kInteger, lower_mad},
    {"fma",
     "fma.rnd{.ftz}{.sat}.f32{.f16,.bf16} d, a, b, c; fma.rnd.f64 d, a, b, c; "
     "fma.rn{.ftz}{.sat,.relu}.{f16,f16x2} d, a, b, c; fma.rn{.oob}{.relu}.{bf16,bf16x2} "
     "d, a, b, c; fma.rnd{.ftz}.f32x2 d, a, b, c;",
     20, InsnClass::kFloat, lower_fma},
    {"mul24", "mul24.{hi,lo}.{u32,s32} d, a, b;", 20, kInteger, lower_mul24},
    {"mad24", "mad24.{hi,lo}{.sat}.{u32,s32} d, a, b, c;", 20, kInteger, lower_mad24},
    {"sad", "sad.{u,s}{16,32,64} d, a, b, c;", 20, kInteger, lower_sad},
    {"div",
     "div.{u,s}{16,32,64} d, a, b; div.{approx,full,rnd}{.ftz}.f32 d, a, b; div.rnd.f64 d, a, b;",
     20, kInteger, lower_div},
    {"rem", "rem.{u,s}{16,32,64} d, a, b;", 20, kInteger, lower_rem},
    {"abs", "abs.s{16,32,64} d, a; abs{.ftz}.{f32,f16,f16x2} d, a; abs.{f64,bf16,bf16x2} d, a;", 20,
     kInteger, lower_abs},
    {"neg", "neg.s{16,32,64} d, a; neg{.ftz}.{f32,f16,f16x2} d, a; neg.{f64,bf16,bf16x2} d, a;", 20,
     kInteger, lower_neg},
    {"min",
     "min{.relu}.{u,s}{16,32,64,16x2} d, a, b; min{.ftz}{.NaN}{.xorsign.abs}.f32 d, a, b{, c}; "
     "min.f64 d, a, b; min{.ftz}{.NaN}{.xorsign.abs}.{f16,f16x2,bf16,bf16x2} d, a, b{, c};",
     20, kInteger, lower_min},
    {"max",
     "max{.relu}.{u,s}{16,32,64,16x2} d, a, b; max{.ftz}{.NaN}{.xorsign.abs}.f32 d, a, b{, c}; "
     "max.f64 d, a, b; max{.ftz}{.NaN}{.xorsign.abs}.{f16,f16x2,bf16,bf16x2} d, a, b{, c};",
     20, kInteger, lower_max},
};

}  // namespace

const InsnSection& arithmetic_section() {
  static const InsnSection section{"Arithmetic", kArithmeticRows};
  return section;
}

}  // namespace tilewright::sim
