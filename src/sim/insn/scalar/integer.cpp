// Integer arithmetic: add sub mul mad div rem abs neg min max, and the forms for two halves.
#include "sim/insn/lower_forms.h"
#include "sim/insn/scalar/integer_ops.h"

namespace tilewright::sim {
namespace {

/// Two 16-bit integers in a register.
template <auto kOp, class T>
std::uint32_t by_halves(std::uint32_t a, std::uint32_t b) {
  const auto low = static_cast<std::uint16_t>(kOp(static_cast<T>(a), static_cast<T>(b)));
  const auto high =
      static_cast<std::uint16_t>(kOp(static_cast<T>(a >> 16), static_cast<T>(b >> 16)));
  return low | static_cast<std::uint32_t>(high) << 16;
}

template <bool kMax>
std::int16_t min_max_relu16(std::int16_t a, std::int16_t b) {
  return integer::max(integer::min_max<std::int16_t, kMax>(a, b), std::int16_t{0});
}

bool is_short_pair(Type type) {
  return type == Type::kU16x2 || type == Type::kS16x2;
}

enum class Half { kLow, kHigh, kWide };

Half take_half(Lowering& l) {
  switch (l.take_one_of({"lo", "hi", "wide"})) {
    case 0:
      return Half::kLow;
    case 1:
      return Half::kHigh;
    case 2:
      return Half::kWide;
    default:
      l.fail("expected .lo, .hi or .wide");
  }
}

Type wider(Lowering& l, Type type) {
  switch (type) {
    case Type::kU16:
      return Type::kU32;
    case Type::kS16:
      return Type::kS32;
    case Type::kU32:
      return Type::kU64;
    case Type::kS32:
      return Type::kS64;
    default:
      l.fail(".wide is for 16 and 32 bits, not ." + std::string(name_of(type)));
  }
}

template <template <class> class Op>
ExecFn wide_exec(Type type) {
  switch (type) {
    case Type::kU16:
      return Op<std::uint16_t>::kExec;
    case Type::kS16:
      return Op<std::int16_t>::kExec;
    case Type::kU32:
      return Op<std::uint32_t>::kExec;
    default:
      return Op<std::int32_t>::kExec;
  }
}
template <class T>
struct MulWide {
  static constexpr ExecFn kExec = lanes<integer::mul_wide<T>>;
};
template <class T>
struct MadWide {
  static constexpr ExecFn kExec = lanes<integer::mad_wide<T>>;
};

}  // namespace

void lower_integer_add(Lowering& l, Type type, bool is_subtraction) {
  if (is_short_pair(type)) {
    need_target(l, 90, "add and sub of two halves");
    emit_uniform(l, is_subtraction ? lanes<integer::add_x2<true>> : lanes<integer::add_x2<false>>,
                 type, 2);
    return;
  }
  if (l.take("sat")) {
    if (type != Type::kS32) l.fail(".sat needs the type .s32");
    emit_uniform(l, is_subtraction ? lanes<integer::sub_sat> : lanes<integer::add_sat>, type, 2);
    return;
  }
  if (is_bits(type)) refuse_type(l, type);
  const ExecFn exec = for_integer(type, [is_subtraction]<class T>() -> ExecFn {
    using U = Unsigned<T>;
    return is_subtraction ? lanes<integer::sub<U>> : lanes<integer::add<U>>;
  });
  emit_uniform(l, exec, type, 2);
}

void lower_integer_mul(Lowering& l, Type type) {
  if (is_bits(type)) refuse_type(l, type);
  const Half half = take_half(l);
  if (half == Half::kWide) {
    emit_from(l, wide_exec<MulWide>(type), wider(l, type), type, 2);
    return;
  }
  const ExecFn exec = for_integer(type, [half]<class T>() -> ExecFn {
    return half == Half::kLow ? lanes<integer::mul_lo<T>> : lanes<integer::mul_hi<T>>;
  });
  emit_uniform(l, exec, type, 2);
}

void lower_integer_mad(Lowering& l, Type type) {
  if (is_bits(type)) refuse_type(l, type);
  const Half half = take_half(l);
  if (half == Half::kWide) {
    const Type to = wider(l, type);
    l.finish_modifiers();
    const Row d = l.destination(0, to);
    l.emit(wide_exec<MadWide>(type), {d, l.source(1, type), l.source(2, type), l.source(3, to)});
    return;
  }
  if (l.take("cc")) return lower_mad_with_carry(l, type, half == Half::kHigh, false, true);
  if (l.take("sat")) {
    if (half != Half::kHigh || type != Type::kS32) l.fail(".sat needs mad.hi.s32");
    emit_uniform(l, lanes<integer::mad_hi_sat>, type, 3);
    return;
  }
  const ExecFn exec = for_integer(type, [half]<class T>() -> ExecFn {
    return half == Half::kLow ? lanes<integer::mad_lo<T>> : lanes<integer::mad_hi<T>>;
  });
  emit_uniform(l, exec, type, 3);
}

void lower_integer_div(Lowering& l, Type type, bool is_remainder) {
  if (is_bits(type)) refuse_type(l, type);
  const ExecFn exec = for_integer(type, [is_remainder]<class T>() -> ExecFn {
    if constexpr (sizeof(T) == 8) {
      return is_remainder ? lanes_one_by_one<integer::rem<T>> : lanes_one_by_one<integer::div<T>>;
    } else {
      return is_remainder ? lanes<integer::rem<T>> : lanes<integer::div<T>>;
    }
  });
  emit_uniform(l, exec, type, 2);
}

void lower_integer_abs(Lowering& l, Type type) {
  if (!is_signed(type)) refuse_type(l, type);
  const ExecFn exec = for_integer(
      type, []<class T>() -> ExecFn { return lanes<integer::magnitude<std::make_signed_t<T>>>; });
  emit_uniform(l, exec, type, 1);
}

void lower_integer_neg(Lowering& l, Type type) {
  if (!is_signed(type)) refuse_type(l, type);
  const ExecFn exec = for_integer(type, []<class T>() -> ExecFn { return lanes<integer::neg<T>>; });
  emit_uniform(l, exec, type, 1);
}

namespace {

template <bool kMax>
ExecFn min_max_exec(Lowering& l, Type type) {
  const bool relu = l.take("relu");
  if (relu || is_short_pair(type)) need_target(l, 90, "min and max with .relu or of two halves");
  switch (type) {
    case Type::kU16x2:
      return relu ? nullptr
                  : lanes<by_halves<integer::min_max<std::uint16_t, kMax>, std::uint16_t>>;
    case Type::kS16x2:
      return relu ? lanes<by_halves<min_max_relu16<kMax>, std::int16_t>>
                  : lanes<by_halves<integer::min_max<std::int16_t, kMax>, std::int16_t>>;
    case Type::kS32:
      if (relu) return lanes<integer::min_max_relu<kMax>>;
      break;
    default:
      break;
  }
  if (relu || is_bits(type)) return nullptr;
  return for_integer(type, []<class T>() -> ExecFn { return lanes<integer::min_max<T, kMax>>; });
}

}  // namespace

void lower_integer_min_max(Lowering& l, Type type, bool is_max) {
  const ExecFn exec = is_max ? min_max_exec<true>(l, type) : min_max_exec<false>(l, type);
  emit_uniform(l, exec, type, 2);
}

}  // namespace tilewright::sim
