// wmma: matrix products of a warp whose fragments are opaque (wmma_fragment.h).
#include "formats/minifloat.h"
#include "sim/insn/lower_forms.h"
#include "sim/insn/memory/atomic_ops.h"
#include "sim/insn/memory_operand.h"
#include "sim/insn/sections.h"
#include "sim/insn/tensor/tensor_operands.h"
#include "sim/insn/tensor/wmma_fragment.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace tilewright::sim {
namespace {

using namespace wmma;

struct MoveForm {
  Fragment fragment;
  AddressForm address;
  Row stride = kNoRow;  ///< kNoRow: the lines lie side by side
  bool is_row_major = true;
};

const MoveForm& move_of(const Insn& insn) {
  return *static_cast<const MoveForm*>(insn.extra);
}

/// Elements of a line as it is in memory, without padding.
std::uint32_t dense_stride(const MoveForm& form) {
  const TileExtents& e = form.fragment.extents;
  const int columns = form.fragment.part == Part::kA ? e.k : e.n;
  const int rows = form.fragment.part == Part::kB ? e.k : e.m;
  return static_cast<std::uint32_t>(form.is_row_major ? columns : rows);
}

/// Reads or writes the same element, or run of elements, of every lane.
class Mover {
 public:
  Mover(Warp& warp, const Insn& insn, std::uint32_t active, AccessKind kind)
      : warp_(warp), insn_(insn), form_(move_of(insn)), active_(active), kind_(kind) {
    compute_addresses(warp, form_.address, active, base_);
    const std::uint32_t* strides =
        form_.stride == kNoRow ? nullptr : warp.row<std::uint32_t>(form_.stride);
    for (int lane = 0; lane < kLanes; ++lane) {
      strides_[lane] = strides == nullptr ? dense_stride(form_) : strides[lane];
    }
  }

  /// `place(lane)` gives row and column of the first element; bits long.
  template <class PlaceOf>
  const LanePointers& at(PlaceOf&& place, int bits) {
    LaneAddresses addresses;
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const auto [row, column] = place(static_cast<int>(lane));
      const auto line = static_cast<std::uint64_t>(form_.is_row_major ? row : column);
      const auto in_line = static_cast<std::uint64_t>(form_.is_row_major ? column : row);
      addresses[lane] = base_[lane] + (line * strides_[lane] + in_line) *
                                          static_cast<unsigned>(bits_in(form_.fragment.type)) / 8;
    }
    const std::uint64_t filler = addresses[static_cast<std::size_t>(std::countr_zero(active_))];
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      if ((active_ >> lane & 1) == 0) addresses[lane] = filler;
    }
    Access access;
    access.kind = kind_;
    access.bytes = access.align_bytes = static_cast<std::uint32_t>(bits / 8);
    resolve_addresses(warp_, insn_, active_, form_.address.space, access, addresses, pointers_);
    return pointers_;
  }

 private:
  Warp& warp_;
  const Insn& insn_;
  const MoveForm& form_;
  std::uint32_t active_;
  AccessKind kind_;
  LaneAddresses base_{};
  std::array<std::uint64_t, kLanes> strides_{};
  LanePointers pointers_;
};

void write_bits(Warp& warp, Row row, int bits, const std::uint64_t* values, std::uint32_t active) {
  if (bits == 64) return write_row(warp.row<std::uint64_t>(row), values, active);
  std::uint32_t words[kLanes];
  for (int lane = 0; lane < kLanes; ++lane) words[lane] = static_cast<std::uint32_t>(values[lane]);
  write_row(warp.row<std::uint32_t>(row), words, active);
}

/// Row and column in the matrix of element `elem` of a lane's register.
std::pair<int, int> element_at(const Fragment& f, int lane, int reg, int elem) {
  const int per = per_register(f);
  if (f.part == Part::kC) {
    const Place place = sum_place(f, lane, per * reg + elem);
    return {place.line, place.word};
  }
  const Place place = operand_place(f, lane, reg);
  const int k = per * place.word + elem;
  return f.part == Part::kA ? std::pair(place.line, k) : std::pair(k, place.line);
}

/// The elements of a register lie side by side, or each is moved alone.
bool is_contiguous(const MoveForm& form) {
  return form.fragment.part != Part::kC && form.is_row_major == (form.fragment.part == Part::kA);
}

Step load(Warp& warp, const Insn& insn, std::uint32_t active) {
  const MoveForm& form = move_of(insn);
  const Fragment& f = form.fragment;
  Mover mover(warp, insn, active, AccessKind::kRead);
  const int whole = register_bits(f.type);
  const int piece = is_contiguous(form) ? whole : std::min(whole, bits_in(f.type));
  const int distinct = num_distinct(f);
  for (int reg = 0; reg < distinct; ++reg) {
    std::uint64_t values[kLanes] = {};
    for (int at = 0; at < per_register(f) * bits_in(f.type); at += piece) {
      const LanePointers& from =
          mover.at([&](int lane) { return element_at(f, lane, reg, at / bits_in(f.type)); }, piece);
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        std::uint64_t bits = 0;
        std::memcpy(&bits, from.at[lane], static_cast<std::size_t>(piece / 8));
        values[lane] |= bits << at;
      }
    }
    for (std::size_t copy = static_cast<std::size_t>(reg); copy < f.rows.size();
         copy += static_cast<std::size_t>(distinct)) {
      write_bits(warp, f.rows[copy], whole, values, active);
    }
  }
  return Step::kNext;
}

Step store(Warp& warp, const Insn& insn, std::uint32_t active) {
  const Fragment& f = move_of(insn).fragment;
  Mover mover(warp, insn, active, AccessKind::kWrite);
  const int bits = bits_in(f.type), per = per_register(f);
  for (int i = 0; i < num_distinct(f) * per; ++i) {
    const LanePointers& to =
        mover.at([&](int lane) { return element_at(f, lane, i / per, i % per); }, bits);
    const std::byte* const row = warp.row<std::byte>(f.rows[static_cast<std::size_t>(i / per)]);
    const int lane_bytes = register_bits(f.type) / 8;
    for (std::uint32_t rest = active; rest != 0; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      std::memcpy(to.at[static_cast<std::size_t>(lane)],
                  row + lane * lane_bytes + i % per * bits / 8, static_cast<std::size_t>(bits / 8));
    }
  }
  return Step::kNext;
}

struct MmaForm {
  Fragment a, b, c, d;
  BitOperation bits = BitOperation::kXor;
  bool is_saturating = false;
};

const MmaForm& mma_of(const Insn& insn) {
  return *static_cast<const MmaForm*>(insn.extra);
}

constexpr std::size_t kMaxWords = 32 * 16;

/// A as [m][words], B as [n][words].
template <class Word>
void gather_operand(Warp& warp, const Fragment& f, Word* out) {
  for (int reg = 0; reg < num_distinct(f); ++reg) {
    const Word* const row = warp.row<Word>(f.rows[static_cast<std::size_t>(reg)]);
    for (int lane = 0; lane < kLanes; ++lane) {
      const Place place = operand_place(f, lane, reg);
      out[place.line * words_per_line(f) + place.word] = row[lane];
    }
  }
}

/// Calls use(word of [m][n], element of the register, lane) for every sum.
template <class Word, class Use>
void for_each_sum(Warp& warp, const Fragment& f, Use&& use) {
  const int per = per_register(f);
  for (int i = 0; i < num_distinct(f) * per; ++i) {
    Word* const row = warp.row<Word>(f.rows[static_cast<std::size_t>(i / per)]);
    for (int lane = 0; lane < kLanes; ++lane) {
      const Place place = sum_place(f, lane, i);
      use(place.line * f.extents.n + place.word, row[lane], 16 * (i % per));
    }
  }
}

std::span<const std::byte> codes(const Fragment& f, const std::uint32_t* words) {
  const int lines = f.part == Part::kA ? f.extents.m : f.extents.n;
  return std::as_bytes(std::span(words, static_cast<std::size_t>(lines * words_per_line(f))));
}

/// fp16 and fp32 sums may be mixed: they are added as the result has them, but for fp32 to fp16.
void gather_sums(Warp& warp, const MmaForm& form, bool is_half, std::uint32_t* sums) {
  for_each_sum<std::uint32_t>(warp, form.c, [&](int at, std::uint32_t word, int shift) {
    if (form.c.type != Type::kF16) {
      sums[at] = word;
      return;
    }
    const auto half = static_cast<std::uint16_t>(word >> shift);
    sums[at] = is_half ? half : std::bit_cast<std::uint32_t>(atomic_ops::half_to_float(half));
  });
}

void scatter_sums(Warp& warp, const MmaForm& form, bool is_half, const std::uint32_t* sums) {
  for_each_sum<std::uint32_t>(warp, form.d, [&](int at, std::uint32_t& word, int shift) {
    if (form.d.type != Type::kF16) {
      word = sums[at];
      return;
    }
    const std::uint32_t half = is_half ? sums[at] : encode(kFp16, std::bit_cast<float>(sums[at]));
    word = (word & ~(0xffffu << shift)) | half << shift;
  });
}

Step mma_float(Warp& warp, const Insn& insn, std::uint32_t /*active*/) {
  const MmaForm& form = mma_of(insn);
  alignas(32) std::uint32_t a[kMaxWords], b[kMaxWords], sums[16 * 16];
  gather_operand(warp, form.a, a);
  gather_operand(warp, form.b, b);
  const bool is_half = form.c.type == Type::kF16 && form.d.type == Type::kF16;
  const TileExtents& e = form.d.extents;
  const std::span all(sums, static_cast<std::size_t>(e.m * e.n));
  gather_sums(warp, form, is_half, sums);
  const FormatSpec& format = *tensor_format_of(form.a.type);
  TensorArithmetic arithmetic = tensor_arithmetic(TensorUnit::kMmaSync, format, is_half);
  arithmetic.is_exact = warp.grid->options.is_exact_mma;
  multiply_tile(arithmetic, e, {codes(form.a, a), &format}, {codes(form.b, b), &format}, all, all);
  scatter_sums(warp, form, is_half, sums);
  return Step::kNext;
}

Step mma_integer(Warp& warp, const Insn& insn, std::uint32_t /*active*/) {
  const MmaForm& form = mma_of(insn);
  alignas(32) std::uint32_t a[kMaxWords], b[kMaxWords];
  std::int32_t sums[16 * 16];
  gather_operand(warp, form.a, a);
  gather_operand(warp, form.b, b);
  for_each_sum<std::int32_t>(warp, form.c,
                             [&](int at, std::int32_t word, int) { sums[at] = word; });
  const TileExtents& e = form.d.extents;
  const std::span all(sums, static_cast<std::size_t>(e.m * e.n));
  const IntegerOperands types = integer_operands(form.a.type, form.b.type);
  if (types.is_bits) {
    multiply_bit_tile(e, codes(form.a, a), codes(form.b, b), form.bits, all, all);
  } else {
    multiply_integer_tile(e, {codes(form.a, a), types.a}, {codes(form.b, b), types.b},
                          form.is_saturating, all, all);
  }
  for_each_sum<std::int32_t>(warp, form.d,
                             [&](int at, std::int32_t& word, int) { word = sums[at]; });
  return Step::kNext;
}

Step mma_double(Warp& warp, const Insn& insn, std::uint32_t /*active*/) {
  const MmaForm& form = mma_of(insn);
  double a[8 * 4], b[8 * 4], sums[8 * 8];
  gather_operand(warp, form.a, a);
  gather_operand(warp, form.b, b);
  for_each_sum<double>(warp, form.c, [&](int at, double value, int) { sums[at] = value; });
  multiply_f64_tile(form.d.extents, a, b, sums, sums);
  for_each_sum<double>(warp, form.d, [&](int at, double& value, int) { value = sums[at]; });
  return Step::kNext;
}

struct ShapeName {
  std::string_view name;
  TileExtents extents;
};

TileExtents take_extents(Lowering& l) {
  constexpr ShapeName kShapes[] = {{"m16n16k16", {16, 16, 16}}, {"m32n8k16", {32, 8, 16}},
                                   {"m8n32k16", {8, 32, 16}},   {"m16n16k8", {16, 16, 8}},
                                   {"m8n8k4", {8, 8, 4}},       {"m8n8k32", {8, 8, 32}},
                                   {"m8n8k128", {8, 8, 128}}};
  for (const ShapeName& shape : kShapes) {
    if (l.take(shape.name)) return shape.extents;
  }
  l.fail("expected a shape such as .m16n16k16");
}

/// The k that goes with a type of A and B.
int k_of(Type type) {
  switch (type) {
    case Type::kF16:
    case Type::kBf16:
    case Type::kU8:
    case Type::kS8:
      return 16;
    case Type::kTf32:
      return 8;
    case Type::kF64:
      return 4;
    case Type::kU4:
    case Type::kS4:
      return 32;
    case Type::kB1:
      return 128;
    default:
      return 0;
  }
}

bool is_sum_type(Type type) {
  return type == Type::kF16 || type == Type::kF32 || type == Type::kS32 || type == Type::kF64;
}

/// Whether there are matrices of this part, type and shape.
void check_fragment(Lowering& l, const Fragment& f) {
  const TileExtents& e = f.extents;
  bool is_there = k_of(f.type) == e.k;
  if (f.part == Part::kC) {
    const bool is_small = e.m * e.n == 64;
    is_there = is_sum_type(f.type) && (f.type == Type::kF64) == (e.k == 4) &&
               (!is_small || f.type == Type::kF64 || f.type == Type::kS32) &&
               (f.type != Type::kF16 || e.k == 16) && (f.type != Type::kS32 || e.k >= 16);
  }
  if (!is_there) l.fail("wmma has no such shape for this type");
}

void bind(Lowering& l, Fragment& f, int operand_idx, bool is_destination) {
  const auto elements = l.elements(operand_idx);
  const auto count = static_cast<std::size_t>(num_registers(f));
  if (elements.size() != count) {
    l.fail_at(l.operand(operand_idx), "expected " + std::to_string(count) + " registers, found " +
                                          std::to_string(elements.size()));
  }
  const Type type = f.type == Type::kF64 ? Type::kF64 : Type::kB32;
  for (const Operand& element : elements) {
    f.rows.push_back(is_destination ? l.destination(element, type) : l.source(element, type));
  }
}

void take_sync(Lowering& l) {
  l.take("sync"), l.take("aligned");
}

void lower_move(Lowering& l, MoveForm form, bool is_load) {
  take_sync(l);
  const int layout = l.take_one_of({"row", "col"});
  if (layout < 0) l.fail("expected .row or .col");
  form.is_row_major = layout == 0;
  Fragment& f = form.fragment;
  f.extents = take_extents(l);
  const AddressSpace space = take_space(l);
  f.type = l.type();
  l.finish_modifiers();
  check_fragment(l, f);
  if (bits_in(f.type) < 8 && !is_contiguous(form)) {
    l.fail("matrices of less than 8 bits are loaded by .row as A and by .col as B");
  }
  form.address = address_form(l, is_load ? 1 : 0, space);
  bind(l, f, is_load ? 0 : 1, is_load);
  if (l.has_operand(2)) form.stride = l.source(2, Type::kU32);
  const MoveForm* kept = l.keep(std::move(form));
  Insn& insn = l.emit(is_load ? load : store, {kept->address.base}, 0);
  insn.extra = kept;
  insn.flags |= kAligned | kUsesUndefined | (is_load ? kMemoryRead : kMemoryWrite);
  if (kept->stride != kNoRow) l.also_reads(kept->stride);
  for (const Row row : kept->fragment.rows) is_load ? l.also_writes(row) : l.also_reads(row);
}

void lower_load(Lowering& l) {
  constexpr Part kParts[] = {Part::kA, Part::kB, Part::kC};
  const int part = l.take_one_of({"a", "b", "c"});
  if (part < 0) l.fail("expected .a, .b or .c");
  MoveForm form;
  form.fragment.part = kParts[part];
  lower_move(l, std::move(form), true);
}

void lower_store(Lowering& l) {
  if (!l.take("d")) l.fail("expected .d");
  lower_move(l, {}, false);
}

/// .dtype.ctype with fp16 operands, else .dtype.atype.btype.ctype
void take_types(Lowering& l, MmaForm& form) {
  form.d.type = l.type();
  form.a.type = l.type();
  form.b.type = l.optional_type();
  if (form.b.type == Type::kNone) {
    form.c.type = form.a.type;
    form.a.type = form.b.type = Type::kF16;
    return;
  }
  form.c.type = l.type();
}

ExecFn pick(Lowering& l, const MmaForm& form) {
  const Type a = form.a.type, c = form.c.type, d = form.d.type;
  if (a == Type::kF64 && form.b.type == a && c == a && d == a) return mma_double;
  if (integer_operands(a, form.b.type).is_integer && c == Type::kS32 && d == c) return mma_integer;
  const auto is_float = [&](Type type) {
    return type == Type::kF32 || (type == Type::kF16 && a == Type::kF16);
  };
  const bool has_format = a == Type::kF16 || a == Type::kBf16 || a == Type::kTf32;
  if (!has_format || form.b.type != a || !is_float(c) || !is_float(d)) {
    l.fail("wmma.mma has no such combination of types");
  }
  return mma_float;
}

void lower_mma(Lowering& l) {
  MmaForm form;
  take_sync(l);
  // In which way the operands were loaded: their fragments do not tell.
  if (l.take_one_of({"row", "col"}) < 0 || l.take_one_of({"row", "col"}) < 0) {
    l.fail("expected two layouts such as .row.col");
  }
  if (l.take("and")) form.bits = BitOperation::kAnd;
  l.take("xor"), l.take("popc");
  form.is_saturating = l.take("satfinite");
  const TileExtents extents = take_extents(l);
  l.take("rn");
  take_types(l, form);
  l.finish_modifiers();
  form.a.part = Part::kA, form.b.part = Part::kB;
  const ExecFn exec = pick(l, form);
  for (Fragment* f : {&form.d, &form.a, &form.b, &form.c}) {
    f->extents = extents;
    check_fragment(l, *f);
  }
  bind(l, form.d, 0, true);
  bind(l, form.a, 1, false);
  bind(l, form.b, 2, false);
  bind(l, form.c, 3, false);
  const MmaForm* kept = l.keep(std::move(form));
  Insn& insn = l.emit(exec, {}, 0);
  insn.extra = kept;
  insn.flags |= kAligned | kTensor | kUsesUndefined;
  for (const Row row : kept->d.rows) l.also_writes(row);
  for (const Fragment* f : {&kept->a, &kept->b, &kept->c}) {
    for (const Row row : f->rows) l.also_reads(row);
  }
}

const InsnRow kWmmaRows[] = {
    {"wmma.load",
     "wmma.load.{a,b,c}.sync.aligned.{row,col}.shape{.global,.shared{::cta}}.type r, [p]{, "
     "stride};",
     70, InsnClass::kLoad, lower_load},
    {"wmma.store",
     "wmma.store.d.sync.aligned.{row,col}.shape{.global,.shared{::cta}}.type [p], r{, stride};", 70,
     InsnClass::kStore, lower_store},
    {"wmma.mma",
     "wmma.mma{.op.popc}.sync.aligned.{row,col}.{row,col}.shape.dtype{.atype.btype}.ctype"
     "{.satfinite} d, a, b, c;",
     70, InsnClass::kTensor, lower_mma},
};

}  // namespace

const InsnSection& wmma_section() {
  static const InsnSection section{"Warp-level matrix multiply: wmma", kWmmaRows};
  return section;
}

}  // namespace tilewright::sim
