// setp and set: comparisons into predicates and into registers, combined with another predicate.
#include "sim/insn/scalar/compare_ops.h"
#include "sim/insn/sections.h"

namespace tilewright::sim {
namespace {

// Insn::small of a comparison.
constexpr int kCombineMask = 3;  ///< 0 none, 1 and, 2 or, 3 xor
constexpr int kNegateC = 4;
constexpr int kHasSecond = 8;  ///< op: p, q, a, b, c instead of p, a, b, c

std::uint32_t combine(const Insn& insn, std::uint32_t mask, std::uint32_t c) {
  if ((insn.small & kNegateC) != 0) c = ~c;
  switch (insn.small & kCombineMask) {
    case 1:
      return mask & c;
    case 2:
      return mask | c;
    case 3:
      return mask ^ c;
    default:
      return mask;
  }
}

/// The comparison `kCompare` of the rows a, b, with everything that setp may do with it.
template <auto kCompare>
Step run_setp(Warp& warp, const Insn& insn, std::uint32_t active) {
  const std::size_t a = (insn.small & kHasSecond) != 0 ? 2 : 1;
  const std::uint32_t mask = lane_mask<kCompare>(warp, &insn.op[a]);
  const bool has_c = (insn.small & kCombineMask) != 0;
  const std::uint32_t c = has_c ? warp.predicate(insn.op[a + 2]) : 0;
  warp.set_predicate(insn.op[0], active, combine(insn, mask, c));
  if (a == 2) warp.set_predicate(insn.op[1], active, combine(insn, ~mask, c));
  return Step::kNext;
}

/// 16-bit floats; of a pair the low halves decide p and the high halves q.
template <class Format, int kCount, bool kFtz, Compare kOp>
Step run_setp_half(Warp& warp, const Insn& insn, std::uint32_t active) {
  constexpr bool kIsPair = kCount != kLanes;
  const std::size_t first = (insn.small & kHasSecond) != 0 ? 2 : 1;
  alignas(64) std::uint16_t codes[2][kCount];
  alignas(64) float a[kCount];
  alignas(64) float b[kCount];
  for (std::size_t i = 0; i < 2; ++i) {
    std::memcpy(codes[i], warp.row<std::uint16_t>(insn.op[first + i]), sizeof codes[i]);
    for (int k = 0; k < kCount; ++k) {
      codes[i][k] = kFtz ? Format::flush(codes[i][k]) : codes[i][k];
    }
  }
  Format::widen(codes[0], a, kCount);
  Format::widen(codes[1], b, kCount);
  std::uint32_t low = 0;
  std::uint32_t high = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    const int k = kIsPair ? 2 * lane : lane;
    low |= std::uint32_t{compare_floats<float, false, kOp>(a[k], b[k])} << lane;
    if constexpr (kIsPair) {
      high |= std::uint32_t{compare_floats<float, false, kOp>(a[k + 1], b[k + 1])} << lane;
    }
  }
  const bool has_c = (insn.small & kCombineMask) != 0;
  const std::uint32_t c = has_c ? warp.predicate(insn.op[first + 2]) : 0;
  warp.set_predicate(insn.op[0], active, combine(insn, low, c));
  if (first == 2) {
    warp.set_predicate(insn.op[1], active, combine(insn, kIsPair ? high : ~low, c));
  }
  return Step::kNext;
}

template <class Format, int kCount>
ExecFn half_exec(Compare op, bool ftz) {
  return for_flag(ftz, [op]<bool kFtz>() {
    return for_float_compare(
        op, []<Compare kOp>() -> ExecFn { return run_setp_half<Format, kCount, kFtz, kOp>; });
  });
}

template <class T, bool kFtz>
ExecFn float_exec(Compare op) {
  return for_float_compare(
      op, []<Compare kOp>() -> ExecFn { return run_setp<compare_floats<T, kFtz, kOp>>; });
}

ExecFn integer_exec(Type type, Compare op) {
  if (is_bits(type) && op != Compare::kEq && op != Compare::kNe) return nullptr;
  return for_integer(type, [type, op]<class T>() {
    return for_integer_compare(op, is_signed(type), []<Compare kOp>() -> ExecFn {
      return run_setp<compare_integers<T, kOp>>;
    });
  });
}

ExecFn compare_exec(Lowering& l, Type type, Compare op) {
  switch (type) {
    case Type::kF32:
      return l.take("ftz") ? float_exec<float, true>(op) : float_exec<float, false>(op);
    case Type::kF64:
      return float_exec<double, false>(op);
    case Type::kF16:
      return half_exec<half::F16, kLanes>(op, l.take("ftz"));
    case Type::kF16x2:
      return half_exec<half::F16, 2 * kLanes>(op, l.take("ftz"));
    case Type::kBf16:
      return half_exec<half::Bf16, kLanes>(op, false);
    case Type::kBf16x2:
      return half_exec<half::Bf16, 2 * kLanes>(op, false);
    default:
      return integer_exec(type, op);
  }
}

bool is_half_pair(Type type) {
  return type == Type::kF16x2 || type == Type::kBf16x2;
}

/// The type of the registers that hold it.
Type register_type(Type type) {
  if (is_half_pair(type)) return Type::kB32;
  return type == Type::kF16 || type == Type::kBf16 ? Type::kB16 : type;
}

/// What setp and set have in common: everything but the destinations.
struct Comparison {
  ExecFn exec = nullptr;
  Type type = Type::kNone;
  int small = 0;
};

Comparison take_comparison(Lowering& l, Type type) {
  Comparison result;
  result.type = type;
  const Compare op = take_compare(l);
  result.small = l.take_one_of({"and", "or", "xor"}) + 1;
  result.exec = compare_exec(l, type, op);
  if (result.exec == nullptr) {
    l.fail("this comparison does not exist for ." + std::string(name_of(type)));
  }
  l.finish_modifiers();
  return result;
}

void emit_comparison(Lowering& l, Comparison comparison, Row p, Row q) {
  const Type type = register_type(comparison.type);
  const bool has_c = (comparison.small & kCombineMask) != 0;
  if (l.num_operands() != (has_c ? 4 : 3)) l.fail("wrong number of operands");
  const Row a = l.source(1, type);
  const Row b = l.source(2, type);
  Row c = kTrueRow;
  if (has_c) {
    const auto [row, is_negated] = l.source_predicate(3);
    c = row;
    if (is_negated) comparison.small |= kNegateC;
  }
  if (q != kNoRow) comparison.small |= kHasSecond;
  Insn& insn = q == kNoRow ? l.emit(comparison.exec, {p, a, b, c})
                           : l.emit(comparison.exec, {p, q, a, b, c}, 2);
  insn.small = static_cast<std::uint8_t>(comparison.small);
}

void lower_setp(Lowering& l) {
  const Comparison comparison = take_comparison(l, l.type());
  const auto [p, q] = l.destination_pair(0, Type::kPred);
  emit_comparison(l, comparison, p, q);
}

/// op: d, p; imm: the value for true.
template <class T>
Step run_expand(Warp& warp, const Insn& insn, std::uint32_t active) {
  const std::uint32_t mask = warp.predicate(insn.op[1]);
  T values[kLanes];
  for (int lane = 0; lane < kLanes; ++lane) {
    values[lane] = ((mask >> lane) & 1) != 0 ? static_cast<T>(insn.imm) : T{0};
  }
  blend(warp.row<T>(insn.op[0]), values, active);
  return Step::kNext;
}

/// op: d, p of the low halves, p of the high halves; imm: the value of a half for true.
Step run_expand_pair(Warp& warp, const Insn& insn, std::uint32_t active) {
  const std::uint32_t low = warp.predicate(insn.op[1]);
  const std::uint32_t high = warp.predicate(insn.op[2]);
  const auto value = static_cast<std::uint32_t>(insn.imm);
  std::uint32_t values[kLanes];
  for (int lane = 0; lane < kLanes; ++lane) {
    values[lane] =
        (((low >> lane) & 1) != 0 ? value : 0) | (((high >> lane) & 1) != 0 ? value << 16 : 0);
  }
  blend(warp.row<std::uint32_t>(insn.op[0]), values, active);
  return Step::kNext;
}

/// What set writes for true.
std::int64_t true_value(Lowering& l, Type type) {
  switch (type) {
    case Type::kF32:
      return 0x3f800000;
    case Type::kF16:
    case Type::kF16x2:
      return half::F16::kOne;
    case Type::kBf16:
    case Type::kBf16x2:
      return half::Bf16::kOne;
    case Type::kU16:
    case Type::kS16:
      return 0xffff;
    case Type::kU32:
    case Type::kS32:
      return 0xffffffff;
    default:
      refuse_type(l, type);
  }
}

void lower_set(Lowering& l) {
  const Type to = l.type();
  const Type from = l.type();
  const Comparison comparison = take_comparison(l, from);
  std::int64_t value = true_value(l, to);
  const Row p = l.scratch(Type::kPred);
  if (is_half_pair(from)) {
    if (!is_half_pair(to) && bits_of(to) != 32) refuse_type(l, to);
    const Row q = l.scratch(Type::kPred);
    emit_comparison(l, comparison, p, q);
    if (!is_half_pair(to)) value = 0xffff;
    l.emit(run_expand_pair, {l.destination(0, Type::kB32), p, q}).imm = value;
    return;
  }
  if (is_half_pair(to)) refuse_type(l, to);
  emit_comparison(l, comparison, p, kNoRow);
  const Type type = register_type(to);
  const ExecFn exec = bits_of(type) == 16 ? run_expand<std::uint16_t> : run_expand<std::uint32_t>;
  l.emit(exec, {l.destination(0, type), p}).imm = value;
}

const InsnRow kCompareRows[] = {
    {"setp",
     "setp.cmp{.and,.or,.xor}{.ftz}.type p{|q}, a, b{, {!}c}; cmp: eq ne lt le gt ge lo ls hi hs "
     "equ neu ltu leu gtu geu num nan; type: b16..b64 u16..u64 s16..s64 f32 f64 f16 f16x2 bf16 "
     "bf16x2",
     20, InsnClass::kPredicate, lower_setp},
    {"set",
     "set.cmp{.and,.or,.xor}{.ftz}.{u16,s16,u32,s32,f32,f16,f16x2,bf16,bf16x2}.type d, a, b{, "
     "{!}c};",
     20, InsnClass::kPredicate, lower_set},
};

}  // namespace

const InsnSection& compare_section() {
  static const InsnSection section{"Comparison", kCompareRows};
  return section;
}

}  // namespace tilewright::sim
