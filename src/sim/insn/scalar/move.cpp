// mov with packing and unpacking, selp, slct.
#include "sim/insn/lower_forms.h"
#include "sim/insn/scalar/float_ops.h"
#include "sim/insn/scalar/predicate_ops.h"
#include "sim/insn/sections.h"

namespace tilewright::sim {
namespace {

template <class T>
T same(T a) {
  return a;
}

template <class T>
ExecFn copy_exec() {
  return lanes<same<T>>;
}

ExecFn copy_exec(int bits) {
  switch (bits) {
    case 8:
      return copy_exec<std::uint8_t>();
    case 16:
      return copy_exec<std::uint16_t>();
    case 32:
      return copy_exec<std::uint32_t>();
    case 64:
      return copy_exec<std::uint64_t>();
    default:
      return copy_exec<Bits128>();
  }
}

/// op: d, a, b, c, d; the first part is the least significant.
template <class Whole, class Part, int kParts>
Step run_pack(Warp& warp, const Insn& insn, std::uint32_t active) {
  alignas(64) Part values[kLanes][kParts];
  for (int k = 0; k < kParts; ++k) {
    const Part* part = warp.row<Part>(insn.op[static_cast<std::size_t>(k) + 1]);
    for (int lane = 0; lane < kLanes; ++lane) values[lane][k] = part[lane];
  }
  static_assert(sizeof values == kLanes * sizeof(Whole));
  if (active == kAllLanes) {
    std::memcpy(warp.row<Whole>(insn.op[0]), values, sizeof values);
  } else {
    blend(warp.row<Whole>(insn.op[0]), reinterpret_cast<const Whole*>(values), active);
  }
  return Step::kNext;
}

/// op: the parts, then the whole.
template <class Whole, class Part, int kParts>
Step run_unpack(Warp& warp, const Insn& insn, std::uint32_t active) {
  alignas(64) Part values[kLanes][kParts];
  std::memcpy(values, warp.row<Whole>(insn.op[kParts]), sizeof values);
  for (int k = 0; k < kParts; ++k) {
    alignas(64) Part part[kLanes];
    for (int lane = 0; lane < kLanes; ++lane) part[lane] = values[lane][k];
    blend(warp.row<Part>(insn.op[static_cast<std::size_t>(k)]), part, active);
  }
  return Step::kNext;
}

struct VectorMove {
  int whole_bits, num_parts;
  ExecFn pack, unpack;
};
constexpr VectorMove kVectorMoves[] = {
    {16, 2, run_pack<std::uint16_t, std::uint8_t, 2>, run_unpack<std::uint16_t, std::uint8_t, 2>},
    {32, 2, run_pack<std::uint32_t, std::uint16_t, 2>, run_unpack<std::uint32_t, std::uint16_t, 2>},
    {32, 4, run_pack<std::uint32_t, std::uint8_t, 4>, run_unpack<std::uint32_t, std::uint8_t, 4>},
    {64, 2, run_pack<std::uint64_t, std::uint32_t, 2>, run_unpack<std::uint64_t, std::uint32_t, 2>},
    {64, 4, run_pack<std::uint64_t, std::uint16_t, 4>, run_unpack<std::uint64_t, std::uint16_t, 4>},
    {128, 2, run_pack<Bits128, std::uint64_t, 2>, run_unpack<Bits128, std::uint64_t, 2>},
    {128, 4, run_pack<Bits128, std::uint32_t, 4>, run_unpack<Bits128, std::uint32_t, 4>},
};

const VectorMove& find_vector_move(Lowering& l, int bits, std::size_t num_parts) {
  for (const VectorMove& move : kVectorMoves) {
    if (move.whole_bits == bits && move.num_parts == static_cast<int>(num_parts)) return move;
  }
  l.fail("mov of " + std::to_string(bits) + " bits has no form with " + std::to_string(num_parts) +
         " parts");
}

void lower_pack(Lowering& l, Type type) {
  const auto parts = l.elements(1);
  const VectorMove& move = find_vector_move(l, bits_of(type), parts.size());
  const Type part_type = bits_type(move.whole_bits / move.num_parts);
  const Row d = l.destination(0, type);
  const Row a = l.source(parts[0], part_type);
  const Row b = l.source(parts[1], part_type);
  if (move.num_parts == 2) {
    l.emit(move.pack, {d, a, b});
  } else {
    l.emit(move.pack, {d, a, b, l.source(parts[2], part_type), l.source(parts[3], part_type)});
  }
}

void lower_unpack(Lowering& l, Type type) {
  const auto parts = l.elements(0);
  const VectorMove& move = find_vector_move(l, bits_of(type), parts.size());
  const Type part_type = bits_type(move.whole_bits / move.num_parts);
  const Row whole = l.source(1, type);
  const Row a = l.destination(parts[0], part_type);
  const Row b = l.destination(parts[1], part_type);
  if (move.num_parts == 2) {
    l.emit(move.unpack, {a, b, whole}, 2);
  } else {
    const Row c = l.destination(parts[2], part_type);
    const Row d = l.destination(parts[3], part_type);
    l.emit(move.unpack, {a, b, c, d, whole}, 4);
  }
}

std::uint32_t same_mask(std::uint32_t mask) {
  return mask;
}
std::uint32_t other_mask(std::uint32_t mask) {
  return ~mask;
}

void lower_mov(Lowering& l) {
  const Type type = l.type();
  l.take("unified");  // of addresses of unified textures, which there are none of
  l.finish_modifiers();
  if (l.num_operands() != 2) l.fail("mov takes two operands");
  if (type == Type::kPred) {
    const Row d = l.destination(0, type);
    const auto [p, is_negated] = l.source_predicate(1);
    const ExecFn exec = is_negated ? on_masks<other_mask, 1> : on_masks<same_mask, 1>;
    l.emit(exec, {d, p}).insn_class = InsnClass::kPredicate;
    return;
  }
  const int bits = bits_of(type);
  if (bits < 8 || bits > 128) refuse_type(l, type);
  if (l.operand(0).kind == OperandKind::kVector) return lower_unpack(l, type);
  if (l.operand(1).kind == OperandKind::kVector) return lower_pack(l, type);
  const Row d = l.destination(0, type);
  l.emit(copy_exec(bits), {d, l.source(1, type)});
}

/// op: d, a, b, p; small: 1 if p is negated.
template <class T>
Step run_selp(Warp& warp, const Insn& insn, std::uint32_t active) {
  const std::uint32_t p = warp.predicate(insn.op[3]) ^ (insn.small != 0 ? kAllLanes : 0);
  const T* a = warp.row<T>(insn.op[1]);
  const T* b = warp.row<T>(insn.op[2]);
  T* d = warp.row<T>(insn.op[0]);
  if (active == kAllLanes) {
    select_lanes(d, p, a, b);
    return Step::kNext;
  }
  alignas(64) T values[kLanes];
  select_lanes(values, p, a, b);
  blend(d, values, active);
  return Step::kNext;
}

void lower_selp(Lowering& l) {
  const Type type = l.type();
  l.finish_modifiers();
  const Row d = l.destination(0, type);
  const Row a = l.source(1, type);
  const Row b = l.source(2, type);
  const auto [p, is_negated] = l.source_predicate(3);
  const ExecFn exec =
      for_integer(bits_type(bits_of(type)), []<class T>() -> ExecFn { return run_selp<T>; });
  if (exec == nullptr) refuse_type(l, type);
  l.emit(exec, {d, a, b, p}).small = is_negated ? 1 : 0;
}

template <class T>
T select_by_sign(T a, T b, std::int32_t c) {
  return c >= 0 ? a : b;
}
template <class T, bool kFtz>
T select_by_float(T a, T b, float c) {
  return floating::input<kFtz>(c) >= 0 ? a : b;
}

void lower_slct(Lowering& l) {
  const bool ftz = l.take("ftz");
  const Type type = l.type();
  const Type by = l.type();
  if (by != Type::kS32 && by != Type::kF32) refuse_type(l, by);
  if (ftz && by != Type::kF32) l.fail(".ftz needs a selector of type .f32");
  const ExecFn exec = for_integer(bits_type(bits_of(type)), [=]<class T>() -> ExecFn {
    if (by == Type::kS32) return lanes<select_by_sign<T>>;
    return ftz ? lanes<select_by_float<T, true>> : lanes<select_by_float<T, false>>;
  });
  if (exec == nullptr) refuse_type(l, type);
  l.finish_modifiers();
  const Row d = l.destination(0, type);
  l.emit(exec, {d, l.source(1, type), l.source(2, type), l.source(3, by)});
}

const InsnRow kMoveRows[] = {
    {"mov",
     "mov.type d, a; type: pred b16 b32 b64 b128 u16 u32 u64 s16 s32 s64 f32 f64; "
     "mov.{b16,b32,b64,b128} d, {a, b{, c, d}}; mov.{b16,b32,b64,b128} {a, b{, c, d}}, d;",
     20, InsnClass::kMove, lower_mov},
    {"selp", "selp.{b,u,s,f}{16,32,64} d, a, b, p;", 20, InsnClass::kMove, lower_selp},
    {"slct", "slct{.ftz}.{b,u,s,f}{16,32,64}.{s32,f32} d, a, b, c;", 20, InsnClass::kMove,
     lower_slct},
};

}  // namespace

const InsnSection& move_section() {
  static const InsnSection section{"Moves and selection", kMoveRows};
  return section;
}

}  // namespace tilewright::sim
