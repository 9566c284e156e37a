// Comparisons: one function per operator and type, and over rows of 16-bit floats.
#pragma once

#include "sim/insn/lower_forms.h"
#include "sim/insn/scalar/half_lanes.h"

#include <cmath>
#include <cstdint>

namespace tilewright::sim {

/// In the order of take_compare. The ones from kEqu on also hold if an operand is NaN.
enum class Compare : std::uint8_t {
  kEq,
  kNe,
  kLt,
  kLe,
  kGt,
  kGe,
  kLo,
  kLs,
  kHi,
  kHs,
  kEqu,
  kNeu,
  kLtu,
  kLeu,
  kGtu,
  kGeu,
  kNum,
  kNan,
};

/// The comparison that the instruction names; consumed.
inline Compare take_compare(Lowering& l) {
  const int op = l.take_one_of({"eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs", "equ",
                                "neu", "ltu", "leu", "gtu", "geu", "num", "nan"});
  if (op < 0) l.fail("expected a comparison such as .eq or .lt");
  return static_cast<Compare>(op);
}

template <class T, Compare kOp>
bool compare_integers(T a, T b) {
  if constexpr (kOp == Compare::kEq) return a == b;
  if constexpr (kOp == Compare::kNe) return a != b;
  if constexpr (kOp == Compare::kLt) return a < b;
  if constexpr (kOp == Compare::kLe) return a <= b;
  if constexpr (kOp == Compare::kGt) return a > b;
  if constexpr (kOp == Compare::kGe) return a >= b;
}

template <class T, bool kFtz, Compare kOp>
bool compare_floats(T x, T y) {
  const T a = floating::input<kFtz>(x);
  const T b = floating::input<kFtz>(y);
  if constexpr (kOp == Compare::kEq) return a == b;
  if constexpr (kOp == Compare::kNe) return a < b || a > b;
  if constexpr (kOp == Compare::kLt) return a < b;
  if constexpr (kOp == Compare::kLe) return a <= b;
  if constexpr (kOp == Compare::kGt) return a > b;
  if constexpr (kOp == Compare::kGe) return a >= b;
  if constexpr (kOp == Compare::kEqu) return !(a < b || a > b);
  if constexpr (kOp == Compare::kNeu) return a != b;
  if constexpr (kOp == Compare::kLtu) return !(a >= b);
  if constexpr (kOp == Compare::kLeu) return !(a > b);
  if constexpr (kOp == Compare::kGtu) return !(a <= b);
  if constexpr (kOp == Compare::kGeu) return !(a < b);
  if constexpr (kOp == Compare::kNum) return a == a && b == b;
  if constexpr (kOp == Compare::kNan) return a != a || b != b;
}

/// Calls `select` with the operator as a template argument: []<Compare kOp>() -> ExecFn.
template <class Select>
ExecFn for_integer_compare(Compare op, bool is_signed_type, Select select) {
  switch (op) {
    case Compare::kEq:
      return select.template operator()<Compare::kEq>();
    case Compare::kNe:
      return select.template operator()<Compare::kNe>();
    case Compare::kLo:
      return is_signed_type ? nullptr : select.template operator()<Compare::kLt>();
    case Compare::kLt:
      return select.template operator()<Compare::kLt>();
    case Compare::kLs:
      return is_signed_type ? nullptr : select.template operator()<Compare::kLe>();
    case Compare::kLe:
      return select.template operator()<Compare::kLe>();
    case Compare::kHi:
      return is_signed_type ? nullptr : select.template operator()<Compare::kGt>();
    case Compare::kGt:
      return select.template operator()<Compare::kGt>();
    case Compare::kHs:
      return is_signed_type ? nullptr : select.template operator()<Compare::kGe>();
    case Compare::kGe:
      return select.template operator()<Compare::kGe>();
    default:
      return nullptr;
  }
}

template <class Select>
ExecFn for_float_compare(Compare op, Select select) {
  switch (op) {
    case Compare::kEq:
      return select.template operator()<Compare::kEq>();
    case Compare::kNe:
      return select.template operator()<Compare::kNe>();
    case Compare::kLt:
      return select.template operator()<Compare::kLt>();
    case Compare::kLe:
      return select.template operator()<Compare::kLe>();
    case Compare::kGt:
      return select.template operator()<Compare::kGt>();
    case Compare::kGe:
      return select.template operator()<Compare::kGe>();
    case Compare::kEqu:
      return select.template operator()<Compare::kEqu>();
    case Compare::kNeu:
      return select.template operator()<Compare::kNeu>();
    case Compare::kLtu:
      return select.template operator()<Compare::kLtu>();
    case Compare::kLeu:
      return select.template operator()<Compare::kLeu>();
    case Compare::kGtu:
      return select.template operator()<Compare::kGtu>();
    case Compare::kGeu:
      return select.template operator()<Compare::kGeu>();
    case Compare::kNum:
      return select.template operator()<Compare::kNum>();
    case Compare::kNan:
      return select.template operator()<Compare::kNan>();
    default:
      return nullptr;
  }
}

}  // namespace tilewright::sim
