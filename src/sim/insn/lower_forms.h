// What the lowering functions of insn/ share: checks and the plain form d, a, b, c of one type.
#pragma once

#include "sim/compile/lowering.h"
#include "sim/insn/lanes.h"

#include <cstdint>
#include <string>

namespace tilewright::sim {

/// PTX's rounding modes, numbered as in FloatRounding.
int take_rounding(Lowering& l);  ///< of .rn .rz .rm .rp; -1 if there is none

/// Errors   "add has no type .b32"
[[noreturn]] void refuse_type(Lowering& l, Type type);

/// Errors   if the module's target is older: "add.f32x2 needs sm_100 or newer"
void need_target(Lowering& l, int target, std::string_view what);

/// Errors   if the module's target is older, or plain: of sm_100, it has to be sm_100a or sm_100f
void need_family_target(Lowering& l, int target, std::string_view what);

/// Errors   if the module's target is older, or has no `a`: sm_100f will not do
void need_specific_target(Lowering& l, int target, std::string_view what);

/// Emits d, s1 .. sN of one type; all modifiers must have been taken.
Insn& emit_uniform(Lowering& l, ExecFn exec, Type type, int num_sources);

/// Emits a destination of one type and sources of another.
Insn& emit_from(Lowering& l, ExecFn exec, Type to, Type from, int num_sources);

/// `select` is a generic lambda []<class T>() -> ExecFn; nullptr for other types.
template <class Select>
ExecFn for_integer(Type type, Select select) {
  switch (type) {
    case Type::kB16:
    case Type::kU16:
      return select.template operator()<std::uint16_t>();
    case Type::kS16:
      return select.template operator()<std::int16_t>();
    case Type::kB32:
    case Type::kU32:
      return select.template operator()<std::uint32_t>();
    case Type::kS32:
      return select.template operator()<std::int32_t>();
    case Type::kB64:
    case Type::kU64:
      return select.template operator()<std::uint64_t>();
    case Type::kS64:
      return select.template operator()<std::int64_t>();
    default:
      return nullptr;
  }
}

/// `select` is a generic lambda []<bool kFlag>() -> ExecFn.
template <class Select>
ExecFn for_flag(bool flag, Select select) {
  return flag ? select.template operator()<true>() : select.template operator()<false>();
}

constexpr bool is_bits(Type type) noexcept {
  return type == Type::kB8 || type == Type::kB16 || type == Type::kB32 || type == Type::kB64;
}

// Families of arithmetic.cpp's rows, by type; `type` has been consumed.
void lower_integer_add(Lowering& l, Type type, bool is_subtraction);
void lower_integer_mul(Lowering& l, Type type);
void lower_integer_mad(Lowering& l, Type type);
/// d = a * b + c with the carry flag: read if `in`, written if `out`.
void lower_mad_with_carry(Lowering& l, Type type, bool is_high, bool in, bool out);
void lower_integer_div(Lowering& l, Type type, bool is_remainder);
void lower_integer_abs(Lowering& l, Type type);
void lower_integer_neg(Lowering& l, Type type);
void lower_integer_min_max(Lowering& l, Type type, bool is_max);
enum class FloatOp : std::uint8_t { kAdd, kSub, kMul, kFma };
void lower_float(Lowering& l, Type type, FloatOp op);
void lower_double(Lowering& l, FloatOp op);
void lower_half(Lowering& l, Type type, FloatOp op);
void lower_packed_float(Lowering& l, FloatOp op);
void lower_mixed_precision(Lowering& l, Type type, FloatOp op);
void lower_float_div(Lowering& l, Type type);
void lower_float_sign(Lowering& l, Type type, bool is_negation);
void lower_half_sign(Lowering& l, Type type, bool is_negation);
void lower_float_min_max(Lowering& l, Type type, bool is_max);
void lower_half_min_max(Lowering& l, Type type, bool is_max);

}  // namespace tilewright::sim
