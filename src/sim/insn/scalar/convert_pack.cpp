// cvt.pack: two integers, saturated to 16 bits or fewer, into one register. And 64-bit integers to
// f64, which the host rounds.
#include "sim/insn/lower_forms.h"
#include "sim/insn/scalar/convert_exec.h"
#include "sim/insn/scalar/float_rounding.h"

#include <algorithm>

namespace tilewright::sim {
namespace {

/// op: d, a, b, c; small: the bits of an element; imm: 1 if it is signed.
Step run_pack(Warp& warp, const Insn& insn, std::uint32_t active) {
  const int bits = insn.small;
  const std::int32_t low = insn.imm != 0 ? -(1 << (bits - 1)) : 0;
  const std::int32_t high = (1 << (insn.imm != 0 ? bits - 1 : bits)) - 1;
  const auto mask = static_cast<std::uint32_t>((1 << bits) - 1);
  const auto* a = warp.row<std::int32_t>(insn.op[1]);
  const auto* b = warp.row<std::int32_t>(insn.op[2]);
  const auto* c = warp.row<std::uint32_t>(insn.op[3]);
  alignas(64) std::uint32_t values[kLanes];
  for (int lane = 0; lane < kLanes; ++lane) {
    const auto upper = static_cast<std::uint32_t>(std::clamp(a[lane], low, high)) & mask;
    const auto lower = static_cast<std::uint32_t>(std::clamp(b[lane], low, high)) & mask;
    const std::uint32_t rest = bits == 16 ? 0 : c[lane] << (2 * bits);
    values[lane] = rest | upper << bits | lower;
  }
  blend(warp.row<std::uint32_t>(insn.op[0]), values, active);
  return Step::kNext;
}

double signed_to_double(std::int64_t a) {
  return static_cast<double>(a);
}
double unsigned_to_double(std::uint64_t a) {
  return static_cast<double>(a);
}

template <FloatRounding kRounding, bool kSigned>
Step run_to_double(Warp& warp, const Insn& insn, std::uint32_t active) {
  const RoundingScope scope(kRounding);
  return kSigned ? lanes<signed_to_double>(warp, insn, active)
                 : lanes<unsigned_to_double>(warp, insn, active);
}

template <bool kSigned>
ExecFn to_double_exec(Rounding rounding) {
  switch (rounding) {
    case Rounding::kTowardZero:
      return run_to_double<FloatRounding::kTowardZero, kSigned>;
    case Rounding::kDown:
      return run_to_double<FloatRounding::kDown, kSigned>;
    case Rounding::kUp:
      return run_to_double<FloatRounding::kUp, kSigned>;
    default:
      return kSigned ? lanes<signed_to_double> : lanes<unsigned_to_double>;
  }
}

}  // namespace

void lower_cvt_pack(Lowering& l) {
  if (!l.take("sat")) l.fail("cvt.pack needs .sat");
  const int kind = l.take_one_of({"u16", "s16", "u8", "s8", "u4", "s4", "u2", "s2"});
  if (kind < 0) l.fail("expected .u16, .s16, .u8, .s8, .u4, .s4, .u2 or .s2");
  if (!l.take("s32")) l.fail("cvt.pack converts .s32");
  const bool is_16 = kind < 2;
  if (!is_16 && !l.take("b32")) l.fail("the third operand has the type .b32");
  l.finish_modifiers();
  if (l.num_operands() != (is_16 ? 3 : 4)) l.fail("wrong number of operands");
  const Row d = l.destination(0, Type::kB32);
  const Row a = l.source(1, Type::kS32);
  const Row b = l.source(2, Type::kS32);
  const Row c = is_16 ? a : l.source(3, Type::kB32);
  Insn& insn = l.emit(run_pack, {d, a, b, c});
  insn.small = static_cast<std::uint8_t>(16 >> (kind / 2));
  insn.imm = kind % 2;
}

ExecFn long_to_double(Rounding rounding, bool is_signed_type) {
  return is_signed_type ? to_double_exec<true>(rounding) : to_double_exec<false>(rounding);
}

}  // namespace tilewright::sim
