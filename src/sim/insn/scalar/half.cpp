// f16, bf16 and pairs of them: add sub mul fma, neg abs, min max. One rounding each.
#include "sim/insn/lower_forms.h"
#include "sim/insn/scalar/half_lanes.h"

namespace tilewright::sim {
namespace {

using half::Bf16;
using half::F16;

float add(float a, float b) {
  return a + b;
}
float sub(float a, float b) {
  return a - b;
}
float mul(float a, float b) {
  return a * b;
}
/// bf16 reaches down to the subnormals of f32, where a product would be rounded twice.
float mul_small(float a, float b) {
  return half::to_odd(static_cast<double>(a) * static_cast<double>(b), 0.0);
}

/// What happens to a result. kOutOfBounds: a NaN becomes +0 and -0 too (.oob).
enum class Finish : std::uint8_t { kNone, kFtz, kSat, kFtzSat, kRelu, kFtzRelu, kOob, kOobRelu };

template <class Format, Finish kFinish>
std::uint16_t finish_half(std::uint16_t x) {
  constexpr bool kFtz =
      kFinish == Finish::kFtz || kFinish == Finish::kFtzSat || kFinish == Finish::kFtzRelu;
  constexpr bool kSat = kFinish == Finish::kSat || kFinish == Finish::kFtzSat;
  constexpr bool kOob = kFinish == Finish::kOob || kFinish == Finish::kOobRelu;
  constexpr bool kRelu =
      kFinish == Finish::kRelu || kFinish == Finish::kFtzRelu || kFinish == Finish::kOobRelu;
  if constexpr (kFtz) x = Format::flush(x);
  if constexpr (kOob) x = x == kNanHalf ? std::uint16_t{0} : x;
  if constexpr (kSat) {
    x = x == kNanHalf || (x & 0x8000) != 0 ? std::uint16_t{0} : x;
    x = x > Format::kOne ? Format::kOne : x;
  }
  if constexpr (kRelu) x = (x & 0x8000) != 0 ? std::uint16_t{0} : x;
  return x;
}

/// Flushed inputs are needed for .ftz only, which f16 alone has.
template <bool kFtz>
float flush_f16(float x) {
  if constexpr (kFtz) {
    return std::fabs(x) < 0x1p-14f ? std::copysign(0.0f, x) : x;
  } else {
    return x;
  }
}
/// What is below the smallest normal number even after rounding to 11 bits.
template <bool kFtz>
float flush_tiny(float x) {
  if constexpr (kFtz) {
    return std::fabs(x) < 0x1p-14f - 0x1p-26f ? std::copysign(0.0f, x) : x;
  } else {
    return x;
  }
}
template <auto kOp, bool kFtz>
float binary(float a, float b) {
  return flush_tiny<kFtz>(kOp(flush_f16<kFtz>(a), flush_f16<kFtz>(b)));
}
template <bool kFtz>
float ternary(float a, float b, float c) {
  return flush_tiny<kFtz>(
      half::fma_to_odd(flush_f16<kFtz>(a), flush_f16<kFtz>(b), flush_f16<kFtz>(c)));
}

constexpr bool is_flushing(Finish finish) {
  return finish == Finish::kFtz || finish == Finish::kFtzSat || finish == Finish::kFtzRelu;
}

template <class Format, int kCount, Finish kFinish>
ExecFn half_arithmetic_exec(FloatOp op) {
  constexpr bool kFtz = is_flushing(kFinish);
  constexpr auto kEnd = finish_half<Format, kFinish>;
  constexpr auto kMul = std::is_same_v<Format, F16> ? mul : mul_small;
  switch (op) {
    case FloatOp::kAdd:
      return half_lanes<Format, kCount, binary<add, kFtz>, kEnd>;
    case FloatOp::kSub:
      return half_lanes<Format, kCount, binary<sub, kFtz>, kEnd>;
    case FloatOp::kMul:
      return half_lanes<Format, kCount, binary<kMul, kFtz>, kEnd>;
    default:
      return half_lanes<Format, kCount, ternary<kFtz>, kEnd>;
  }
}

template <class Format, int kCount>
ExecFn half_arithmetic_exec(FloatOp op, Finish finish) {
  switch (finish) {
    case Finish::kNone:
      return half_arithmetic_exec<Format, kCount, Finish::kNone>(op);
    case Finish::kRelu:
      return half_arithmetic_exec<Format, kCount, Finish::kRelu>(op);
    case Finish::kOob:
      return half_arithmetic_exec<Format, kCount, Finish::kOob>(op);
    case Finish::kOobRelu:
      return half_arithmetic_exec<Format, kCount, Finish::kOobRelu>(op);
    default:
      break;
  }
  if constexpr (std::is_same_v<Format, F16>) {
    switch (finish) {
      case Finish::kFtz:
        return half_arithmetic_exec<Format, kCount, Finish::kFtz>(op);
      case Finish::kSat:
        return half_arithmetic_exec<Format, kCount, Finish::kSat>(op);
      case Finish::kFtzSat:
        return half_arithmetic_exec<Format, kCount, Finish::kFtzSat>(op);
      default:
        return half_arithmetic_exec<Format, kCount, Finish::kFtzRelu>(op);
    }
  }
  return nullptr;
}

/// `select` is a generic lambda []<class Format, int kCount>() -> ExecFn.
template <class Select>
ExecFn for_half(Type type, Select select) {
  switch (type) {
    case Type::kF16:
      return select.template operator()<F16, kLanes>();
    case Type::kF16x2:
      return select.template operator()<F16, 2 * kLanes>();
    case Type::kBf16:
      return select.template operator()<Bf16, kLanes>();
    case Type::kBf16x2:
      return select.template operator()<Bf16, 2 * kLanes>();
    default:
      return nullptr;
  }
}

bool is_f16(Type type) {
  return type == Type::kF16 || type == Type::kF16x2;
}

Type register_type(Type type) {
  return type == Type::kF16x2 || type == Type::kBf16x2 ? Type::kB32 : Type::kB16;
}

Finish take_finish(Lowering& l, Type type, FloatOp op) {
  const bool ftz = is_f16(type) && l.take("ftz");
  const bool sat = is_f16(type) && l.take("sat");
  const bool is_fma = op == FloatOp::kFma;
  const bool relu = is_fma && l.take("relu");
  const bool oob = is_fma && l.take("oob");
  if (sat && relu) l.fail(".sat and .relu exclude each other");
  if (oob && (ftz || sat)) l.fail(".oob allows no .ftz and no .sat");
  if (oob) return relu ? Finish::kOobRelu : Finish::kOob;
  if (relu) return ftz ? Finish::kFtzRelu : Finish::kRelu;
  if (sat) return ftz ? Finish::kFtzSat : Finish::kSat;
  return ftz ? Finish::kFtz : Finish::kNone;
}

}  // namespace

void lower_half(Lowering& l, Type type, FloatOp op) {
  const bool has_rounding = l.take("rn");
  if (op == FloatOp::kFma && !has_rounding) l.fail("fma needs .rn");
  const Finish finish = take_finish(l, type, op);
  const ExecFn exec = for_half(type, [=]<class Format, int kCount>() -> ExecFn {
    return half_arithmetic_exec<Format, kCount>(op, finish);
  });
  if (exec == nullptr) refuse_type(l, type);
  const Type bits = register_type(type);
  emit_uniform(l, exec, bits, op == FloatOp::kFma ? 3 : 2).insn_class = InsnClass::kHalf;
}

namespace {

template <class Format, int kCount, bool kFtz, bool kNegate>
Step run_sign(Warp& warp, const Insn& insn, std::uint32_t active) {
  using Lane = std::conditional_t<kCount == kLanes, std::uint16_t, std::uint32_t>;
  alignas(64) std::uint16_t codes[kCount];
  const auto* a = warp.row<std::uint16_t>(insn.op[1]);
  for (int i = 0; i < kCount; ++i) {
    const std::uint16_t x = kFtz ? Format::flush(a[i]) : a[i];
    const bool is_nan = (x & 0x7fff) > Format::kInfinity;
    const auto changed = static_cast<std::uint16_t>(kNegate ? x ^ 0x8000 : x & 0x7fff);
    codes[i] = is_nan ? kNanHalf : changed;
  }
  blend(warp.row<Lane>(insn.op[0]), reinterpret_cast<const Lane*>(codes), active);
  return Step::kNext;
}

template <class Format, bool kNan, bool kMax>
float min_max(float a, float b) {
  return floating::min_max<float, false, kNan, kMax>(a, b);
}
template <class Format, bool kNan, bool kMax>
float min_max_xorsign(float a, float b) {
  return floating::min_max_xorsign<float, false, kNan, kMax>(a, b);
}
template <class Format, bool kNan, bool kMax>
float min_max3(float a, float b, float c) {
  return floating::min_max3<float, false, kNan, kMax>(a, b, c);
}

template <class Format, int kCount, bool kMax>
ExecFn half_min_max_exec(bool ftz, bool nan, bool xorsign, bool is_three) {
  return for_flag(ftz, [=]<bool kFtz>() {
    return for_flag(nan, [=]<bool kNan>() -> ExecFn {
      // subnormal inputs that are flushed after the choice give the same result as before it
      constexpr auto kEnd = finish_half < Format, kFtz ? Finish::kFtz : Finish::kNone > ;
      if (xorsign) return half_lanes<Format, kCount, min_max_xorsign<Format, kNan, kMax>, kEnd>;
      if (is_three) return half_lanes<Format, kCount, min_max3<Format, kNan, kMax>, kEnd>;
      return half_lanes<Format, kCount, min_max<Format, kNan, kMax>, kEnd>;
    });
  });
}

}  // namespace

void lower_half_sign(Lowering& l, Type type, bool is_negation) {
  const bool ftz = is_f16(type) && l.take("ftz");
  const ExecFn exec = for_half(type, [=]<class Format, int kCount>() {
    return for_flag(ftz, [=]<bool kFtz>() -> ExecFn {
      return is_negation ? run_sign<Format, kCount, kFtz, true>
                         : run_sign<Format, kCount, kFtz, false>;
    });
  });
  emit_uniform(l, exec, register_type(type), 1).insn_class = InsnClass::kHalf;
}

void lower_half_min_max(Lowering& l, Type type, bool is_max) {
  const bool ftz = is_f16(type) && l.take("ftz");
  const bool nan = l.take("NaN");
  const bool xorsign = l.take("xorsign");
  if (xorsign != l.take("abs")) l.fail(".xorsign and .abs stand together");
  const bool is_three = l.num_operands() == 4;
  if (xorsign && is_three) l.fail(".xorsign.abs is for two inputs");
  if (is_three) need_target(l, 100, "min and max of three");
  const ExecFn exec = for_half(type, [=]<class Format, int kCount>() -> ExecFn {
    return is_max ? half_min_max_exec<Format, kCount, true>(ftz, nan, xorsign, is_three)
                  : half_min_max_exec<Format, kCount, false>(ftz, nan, xorsign, is_three);
  });
  emit_uniform(l, exec, register_type(type), is_three ? 3 : 2).insn_class = InsnClass::kHalf;
}

}  // namespace tilewright::sim
