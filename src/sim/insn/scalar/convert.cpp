// cvt in all its forms, and cvt.pack.
#include "sim/insn/lower_forms.h"
#include "sim/insn/scalar/convert_exec.h"
#include "sim/insn/sections.h"

#include <algorithm>

namespace tilewright::sim {
namespace {

/// A packed type: its element and how many of them lie how far apart.
struct Packing {
  Type packed = Type::kNone;
  Type element = Type::kNone;
  int count = 0;
  int slot_bits = 0;
  int min_target = 0;
};

constexpr Packing kPackings[] = {
    {Type::kF16x2, Type::kF16, 2, 16, 53},   {Type::kBf16x2, Type::kBf16, 2, 16, 80},
    {Type::kE4m3x2, Type::kE4m3, 2, 8, 89},  {Type::kE5m2x2, Type::kE5m2, 2, 8, 89},
    {Type::kE2m3x2, Type::kE2m3, 2, 8, 100}, {Type::kE3m2x2, Type::kE3m2, 2, 8, 100},
    {Type::kE2m1x2, Type::kE2m1, 2, 4, 100}, {Type::kUe8m0x2, Type::kUe8m0, 2, 8, 100},
    {Type::kE4m3x4, Type::kE4m3, 4, 8, 100}, {Type::kE5m2x4, Type::kE5m2, 4, 8, 100},
    {Type::kE2m3x4, Type::kE2m3, 4, 8, 100}, {Type::kE3m2x4, Type::kE3m2, 4, 8, 100},
    {Type::kE2m1x4, Type::kE2m1, 4, 4, 100},
};

const Packing* find_packing(Type type) {
  const auto* at = std::ranges::find(kPackings, type, &Packing::packed);
  return at == std::end(kPackings) ? nullptr : at;
}

/// The formats of sm_100 are of its family alone.
void need_format(Lowering& l, const Packing& format, const char* what) {
  const std::string name = what + std::string(name_of(format.packed));
  format.min_target < 100 ? need_target(l, format.min_target, name)
                          : need_family_target(l, format.min_target, name);
}

Type unsigned_type(int bits) {
  switch (bits) {
    case 8:
      return Type::kU8;
    case 16:
      return Type::kU16;
    case 32:
      return Type::kU32;
    default:
      return Type::kU64;
  }
}

/// The low bits of a register that may be wider than what is read of it.
Row narrow_source(Lowering& l, const Operand& operand, int bits) {
  const TypedRow source = l.source_any(operand, bits_type(bits));
  const int actual = bits_of(source.type);
  if (actual == bits) return source.row;
  if (actual < bits || actual > 64) {
    l.fail_at(operand, "a register of type ." + std::string(name_of(source.type)) +
                           " is too narrow or too wide for " + std::to_string(bits) + " bits");
  }
  const Row row = l.scratch(bits_type(bits));
  l.emit(integer_conversion(bits_type(bits), unsigned_type(actual)), {row, source.row});
  return row;
}

/// Where a result goes: the register itself, or a scratch row that is widened into it.
class Target {
 public:
  /// `value` says whether a wider register is filled with the sign or with zeros.
  Target(Lowering& l, int bits, Type value)
      : l_(l), register_(l.destination_any(0, bits_type(bits))), value_(value) {
    const int actual = bits_of(register_.type);
    if (actual < bits || actual > 64) {
      l.fail_at(l.operand(0), "a register of type ." + std::string(name_of(register_.type)) +
                                  " is too narrow or too wide for " + std::to_string(bits) +
                                  " bits");
    }
    row_ = actual == bits ? register_.row : l.scratch(bits_type(bits));
  }
  Row row() const { return row_; }
  void finish() {
    if (row_ == register_.row) return;
    l_.emit(integer_conversion(bits_type(bits_of(register_.type)), value_), {register_.row, row_});
  }

 private:
  Lowering& l_;
  TypedRow register_;
  Type value_;
  Row row_ = kNoRow;
};

/// The rounding modifiers, in the order of take_modes.
enum class Mode : std::int8_t { kNone = -1, kRn, kRz, kRm, kRp, kRna, kRs, kRni, kRzi, kRmi, kRpi };

Mode take_mode(Lowering& l) {
  return static_cast<Mode>(
      l.take_one_of({"rn", "rz", "rm", "rp", "rna", "rs", "rni", "rzi", "rmi", "rpi"}));
}

bool is_integral(Mode mode) {
  return mode >= Mode::kRni;
}

void set_mode(Conversion& conversion, Mode mode) {
  constexpr Rounding kRoundings[] = {Rounding::kNearestEven, Rounding::kTowardZero,
                                     Rounding::kDown,        Rounding::kUp,
                                     Rounding::kNearestAway, Rounding::kStochastic};
  constexpr IntegralRounding kIntegral[] = {IntegralRounding::kNearest, IntegralRounding::kZero,
                                            IntegralRounding::kDown, IntegralRounding::kUp};
  if (is_integral(mode)) {
    conversion.integral = kIntegral[static_cast<int>(mode) - static_cast<int>(Mode::kRni)];
  } else if (mode != Mode::kNone) {
    conversion.encode.rounding = kRoundings[static_cast<int>(mode)];
  }
}

struct Modifiers {
  Mode mode = Mode::kNone;
  bool ftz = false, sat = false, satfinite = false, relu = false;
};

Conversion make_conversion(Type to, Type from, const Modifiers& modifiers) {
  Conversion conversion;
  conversion.to = to;
  conversion.from = from;
  conversion.ftz = modifiers.ftz;
  conversion.sat = modifiers.sat;
  conversion.relu = modifiers.relu;
  if (modifiers.satfinite) conversion.encode.saturation = Saturation::kSaturate;
  set_mode(conversion, modifiers.mode);
  return conversion;
}

/// What the manual demands of the modifiers of a conversion between scalars.
void check_scalar(Lowering& l, Type to, Type from, const Modifiers& m) {
  const bool is_mode_given = m.mode != Mode::kNone;
  const bool narrows =
      is_scalar_float(from) && (storage_bits(to) < storage_bits(from) || to == Type::kTf32 ||
                                (bits_of(to) == 16 && to != from));
  if (is_integer(from) && is_integer(to)) {
    if (is_mode_given) l.fail("integers are converted without rounding");
  } else if (is_integer(to)) {
    if (!is_integral(m.mode)) l.fail("expected .rni, .rzi, .rmi or .rpi");
  } else if (is_integer(from) || narrows) {
    if (!is_mode_given || is_integral(m.mode)) l.fail("expected a rounding such as .rn");
  } else if (to == from) {
    if (is_mode_given && !is_integral(m.mode)) l.fail("expected .rni, .rzi, .rmi or .rpi");
  } else if (is_mode_given) {
    l.fail("a conversion to a wider type is exact: no rounding");
  }
  if (m.mode == Mode::kRna && to != Type::kTf32) l.fail(".rna is for tf32");
  if (m.mode == Mode::kRs) l.fail(".rs is for packed types");
  const bool is_f32_narrowing =
      from == Type::kF32 && (to == Type::kF16 || to == Type::kBf16 || to == Type::kTf32);
  if ((m.relu || m.satfinite) && !is_f32_narrowing)
    l.fail(".relu or .satfinite is not for these types");
  if (m.ftz && from != Type::kF32 && to != Type::kF32) l.fail(".ftz needs .f32");
}

/// 64-bit integers to f64: the one case in which the host rounds.
ExecFn wide_to_double(const Conversion& c) {
  if (c.to != Type::kF64 || bits_of(c.from) != 64 || !is_integer(c.from)) return nullptr;
  return long_to_double(c.encode.rounding, is_signed(c.from));
}

void lower_scalar(Lowering& l, Type to, Type from, const Modifiers& modifiers) {
  const bool is_known = (is_integer(to) || is_scalar_float(to) || to == Type::kTf32) &&
                        (is_integer(from) || is_scalar_float(from));
  if (!is_known || (to == Type::kTf32 && from != Type::kF32)) {
    l.fail("cvt has no form ." + std::string(name_of(to)) + "." + std::string(name_of(from)));
  }
  check_scalar(l, to, from, modifiers);
  if (l.num_operands() != 2) l.fail("expected 2 operands");
  const Conversion conversion = make_conversion(to, from, modifiers);
  const Row source = narrow_source(l, l.operand(1), bits_of(from));
  Target target(l, storage_bits(to), is_integer(to) ? to : unsigned_type(storage_bits(to)));
  const bool is_resize = is_integer(to) && is_integer(from) && !modifiers.sat;
  ExecFn exec = is_resize ? integer_conversion(to, from) : fast_conversion(conversion);
  if (exec == nullptr) exec = wide_to_double(conversion);
  if (exec != nullptr) {
    l.emit(exec, {target.row(), source});
  } else {
    l.emit(run_conversion, {target.row(), source}).extra = l.keep(conversion);
  }
  target.finish();
}

void emit_packed(Lowering& l, const PackedConversion& conversion, const std::vector<Row>& sources,
                 Row d) {
  const ExecFn fast = fast_packed_conversion(conversion);
  const ExecFn exec = fast != nullptr ? fast : run_packed_conversion;
  const auto at = [&sources](std::size_t i) { return sources[i]; };
  const PackedConversion* extra = fast != nullptr ? nullptr : l.keep(conversion);
  switch (sources.size()) {
    case 1:
      l.emit(exec, {d, at(0)}).extra = extra;
      break;
    case 2:
      l.emit(exec, {d, at(0), at(1)}).extra = extra;
      break;
    case 3:
      l.emit(exec, {d, at(0), at(1), at(2)}).extra = extra;
      break;
    default:
      l.emit(exec, {d, at(0), at(1), at(2), at(3), at(4)}).extra = extra;
  }
}

/// From f32 registers, the first of which gives the highest element.
void lower_from_floats(Lowering& l, const Packing& to, PackedConversion& conversion) {
  std::vector<Row> sources;
  int operand = 1;
  if (to.count == 4) {
    const auto elements = l.elements(operand++);
    if (elements.size() != 4) l.fail_at(l.operand(1), "expected a vector of four");
    for (const Operand& element : elements) sources.push_back(l.source(element, Type::kF32));
  } else {
    sources = {l.source(1, Type::kF32), l.source(2, Type::kF32)};
    operand = 3;
  }
  if (conversion.has_random) {
    sources.push_back(l.source(operand++, Type::kB32));
    // the mantissa bits that f32 has more, as many as there are for an element
    const int cut = 23 - format_of(to.element)->mantissa_bits;
    conversion.random_slot_bits = 32 / to.count;
    conversion.random_bits = std::min(cut, conversion.random_slot_bits);
    conversion.element.encode.num_random_bits = conversion.random_bits;
  }
  if (l.num_operands() != operand) l.fail("wrong number of operands");
  Target target(l, conversion.to_bits, unsigned_type(conversion.to_bits));
  emit_packed(l, conversion, sources, target.row());
  target.finish();
}

void check_packed(Lowering& l, const Packing& to, Type from, const Modifiers& m) {
  const bool widens = find_packing(from) != nullptr && to.slot_bits == 16;
  const bool is_scale = to.element == Type::kUe8m0;
  const bool is_half = to.slot_bits == 16;
  if (m.sat || m.ftz) l.fail("packed types take no .sat and no .ftz");
  if (to.count == 4 && m.mode != Mode::kRs) l.fail("four elements are converted with .rs");
  if (m.mode == Mode::kRs) {
    need_specific_target(l, 100, "cvt.rs");
  } else if (is_scale) {
    if (m.mode != Mode::kRz && m.mode != Mode::kRp) l.fail("ue8m0x2 needs .rz or .rp");
  } else if (m.mode != Mode::kRn && !(is_half && !widens && m.mode == Mode::kRz)) {
    l.fail("expected .rn");
  }
  if (!is_half && !is_scale && !m.satfinite) l.fail("expected .satfinite");
}

void lower_packed(Lowering& l, const Packing& to, Type from, const Modifiers& modifiers) {
  check_packed(l, to, from, modifiers);
  need_format(l, to, "cvt to .");
  PackedConversion conversion;
  conversion.num_elements = to.count;
  conversion.to_slot_bits = to.slot_bits;
  conversion.to_bits = to.count * to.slot_bits;
  conversion.has_random = modifiers.mode == Mode::kRs;
  const Packing* source = find_packing(from);
  conversion.element =
      make_conversion(to.element, source == nullptr ? from : source->element, modifiers);
  if (to.slot_bits != 16 && to.element != Type::kUe8m0) {
    conversion.element.encode.saturation = Saturation::kSaturate;
  } else if (!modifiers.satfinite) {
    conversion.element.encode.saturation = Saturation::kNone;
  }
  if (from == Type::kF32) return lower_from_floats(l, to, conversion);
  const bool is_known = source != nullptr && source->count == to.count &&
                        (to.slot_bits == 16) != (source->slot_bits == 16);
  if (!is_known) {
    l.fail("cvt has no form ." + std::string(name_of(to.packed)) + "." +
           std::string(name_of(from)));
  }
  need_format(l, *source, "cvt from .");
  if (l.num_operands() != 2) l.fail("expected 2 operands");
  conversion.from_slot_bits = source->slot_bits;
  conversion.from_bits = source->count * source->slot_bits;
  const Row row = narrow_source(l, l.operand(1), conversion.from_bits);
  Target target(l, conversion.to_bits, unsigned_type(conversion.to_bits));
  emit_packed(l, conversion, {row}, target.row());
  target.finish();
}

void lower_cvt(Lowering& l) {
  Modifiers modifiers;
  modifiers.mode = take_mode(l);
  modifiers.ftz = l.take("ftz");
  modifiers.sat = l.take("sat");
  modifiers.satfinite = l.take("satfinite");
  modifiers.relu = l.take("relu");
  const Type to = l.type();
  const Type from = l.type();
  l.finish_modifiers();
  if (const Packing* packing = find_packing(to)) {
    lower_packed(l, *packing, from, modifiers);
  } else {
    lower_scalar(l, to, from, modifiers);
  }
}

const InsnRow kConvertRows[] = {
    {"cvt",
     "cvt{.rni,.rzi,.rmi,.rpi}{.ftz}{.sat}.type.type d, a; cvt{.rnd}{.ftz}{.sat}.type.type d, a; "
     "cvt.{rn,rz}{.relu}{.satfinite}.{f16,bf16}.f32 d, a; "
     "cvt.{rn,rz}{.relu}{.satfinite}.{f16x2,bf16x2}.f32 d, a, b; "
     "cvt.{rna,rn,rz}{.relu}{.satfinite}.tf32.f32 d, a; "
     "cvt.rn.satfinite{.relu}.{e4m3x2,e5m2x2,e2m3x2,e3m2x2,e2m1x2}.f32 d, a, b; "
     "cvt.rn.satfinite{.relu}.{e4m3x2,e5m2x2}.f16x2 d, a; "
     "cvt.rn{.relu}.f16x2.{e4m3x2,e5m2x2,e2m3x2,e3m2x2,e2m1x2} d, a; "
     "cvt.{rz,rp}{.satfinite}.ue8m0x2.f32 d, a, b; cvt.{rz,rp}{.satfinite}.ue8m0x2.bf16x2 d, a; "
     "cvt.rn.bf16x2.ue8m0x2 d, a; cvt.rs{.relu}{.satfinite}.{f16x2,bf16x2}.f32 d, a, b, random; "
     "cvt.rs{.relu}.satfinite.{e4m3x4,e5m2x4,e2m3x4,e3m2x4,e2m1x4}.f32 d, {a, b, e, f}, random;",
     20, InsnClass::kConvert, lower_cvt},
    {"cvt.pack",
     "cvt.pack.sat.{u16,s16}.s32 d, a, b; cvt.pack.sat.{u8,s8,u4,s4,u2,s2}.s32.b32 d, a, b, c;", 72,
     InsnClass::kConvert, lower_cvt_pack},
};

}  // namespace

const InsnSection& convert_section() {
  static const InsnSection section{"Conversion", kConvertRows};
  return section;
}

}  // namespace tilewright::sim
