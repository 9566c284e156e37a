// Arithmetic with the carry flag: add.cc addc sub.cc subc mad.cc madc. The flag is a predicate row
// that all of a function's instructions share.
#include "sim/insn/lower_forms.h"
#include "sim/insn/scalar/integer_ops.h"
#include "sim/insn/sections.h"

namespace tilewright::sim {
namespace {

/// op: d, a, b, carry. Reads the carry if kIn, writes it if kOut. Of a subtraction it is the
/// borrow.
template <class T, bool kSubtract, bool kIn, bool kOut>
Step run_add(Warp& warp, const Insn& insn, std::uint32_t active) {
  const T* a = warp.row<T>(insn.op[1]);
  const T* b = warp.row<T>(insn.op[2]);
  const Row carry_row = insn.op[3];
  const std::uint32_t carry_in = kIn ? warp.predicate(carry_row) : 0;
  std::uint32_t carry_out = 0;
  alignas(64) T values[kLanes];
  for (int lane = 0; lane < kLanes; ++lane) {
    const T in = static_cast<T>((carry_in >> lane) & 1);
    const T first = static_cast<T>(kSubtract ? a[lane] - b[lane] : a[lane] + b[lane]);
    values[lane] = static_cast<T>(kSubtract ? first - in : first + in);
    const bool out =
        kSubtract ? a[lane] < b[lane] || first < in : first < a[lane] || values[lane] < first;
    carry_out |= std::uint32_t{out} << lane;
  }
  blend(warp.row<T>(insn.op[0]), values, active);
  if constexpr (kOut) warp.set_predicate(carry_row, active, carry_out);
  return Step::kNext;
}

template <class T>
ExecFn add_exec(bool subtract, bool in, bool out) {
  return for_flag(subtract, [=]<bool kSubtract>() {
    return for_flag(in, [=]<bool kIn>() {
      return for_flag(out, []<bool kOut>() -> ExecFn { return run_add<T, kSubtract, kIn, kOut>; });
    });
  });
}

void emit_add(Lowering& l, Type type, Row a, Row b, bool subtract, bool in, bool out) {
  const Row carry = l.carry();
  const ExecFn exec = bits_of(type) == 64 ? add_exec<std::uint64_t>(subtract, in, out)
                                          : add_exec<std::uint32_t>(subtract, in, out);
  const Row d = l.destination(0, type);
  l.emit(exec, {d, a, b, carry});
  if (out) l.also_writes(carry);
}

Type take_type(Lowering& l) {
  const Type type = l.type();
  if (is_bits(type) || bits_of(type) < 32 || is_float(type)) refuse_type(l, type);
  return type;
}

template <bool kSubtract, bool kIn>
void lower_add_with_carry(Lowering& l) {
  const Type type = take_type(l);
  const bool out = l.take("cc") || !kIn;  // the .cc of add.cc chose the row
  l.finish_modifiers();
  const Row a = l.source(1, type);
  emit_add(l, type, a, l.source(2, type), kSubtract, kIn, out);
}

template <class T>
ExecFn mul_exec(bool is_high) {
  return is_high ? lanes<integer::mul_hi<T>> : lanes<integer::mul_lo<T>>;
}

}  // namespace

void lower_mad_with_carry(Lowering& l, Type type, bool is_high, bool in, bool out) {
  if (is_bits(type) || bits_of(type) < 32) refuse_type(l, type);
  l.finish_modifiers();
  const Row product = l.scratch(type);
  const Row a = l.source(1, type);
  const Row b = l.source(2, type);
  const Row c = l.source(3, type);
  const ExecFn exec = for_integer(type, [is_high]<class T>() -> ExecFn {
    if constexpr (sizeof(T) < 4) {
      return nullptr;
    } else {
      return mul_exec<T>(is_high);
    }
  });
  l.emit(exec, {product, a, b});
  emit_add(l, type, product, c, false, in, out);
}

namespace {

void lower_madc(Lowering& l) {
  const int half = l.take_one_of({"lo", "hi"});
  if (half < 0) l.fail("madc needs .lo or .hi");
  const bool out = l.take("cc");
  lower_mad_with_carry(l, l.type(), half == 1, true, out);
}

constexpr InsnClass kCarryClass = InsnClass::kInteger;

const InsnRow kIntegerCarryRows[] = {
    {"add.cc", "add.cc.{u,s}{32,64} d, a, b;", 20, kCarryClass, lower_add_with_carry<false, false>},
    {"addc", "addc{.cc}.{u,s}{32,64} d, a, b;", 20, kCarryClass, lower_add_with_carry<false, true>},
    {"sub.cc", "sub.cc.{u,s}{32,64} d, a, b;", 20, kCarryClass, lower_add_with_carry<true, false>},
    {"subc", "subc{.cc}.{u,s}{32,64} d, a, b;", 20, kCarryClass, lower_add_with_carry<true, true>},
    {"madc", "madc.{hi,lo}{.cc}.{u,s}{32,64} d, a, b, c;", 20, kCarryClass, lower_madc},
};

}  // namespace

const InsnSection& carry_section() {
  static const InsnSection section{"Arithmetic with carry", kIntegerCarryRows};
  return section;
}

}  // namespace tilewright::sim
