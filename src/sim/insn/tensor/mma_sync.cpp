// mma.sync: a warp multiplies matrices in its registers.
#include "sim/insn/lower_forms.h"
#include "sim/insn/memory_operand.h"
#include "sim/insn/sections.h"
#include "sim/insn/tensor/tensor_operands.h"
#include "sim/tensor/converted_multiply.h"
#include "sim/tensor/fragments.h"

#include <array>
#include <charconv>
#include <string>
#include <vector>

namespace tilewright::sim {
namespace {

struct MmaForm {
  TileExtents extents{};
  Type d_type = Type::kF32, a_type = Type::kF16, b_type = Type::kF16;
  std::vector<Row> d, a, b, c;
  BitOperation bits = BitOperation::kXor;
  bool is_saturating = false;
};

constexpr int kMaxWords = 16 * 16;  // of an f64 operand, the largest

const MmaForm& form_of(const Insn& insn) {
  return *static_cast<const MmaForm*>(insn.extra);
}

/// Operands as dense bytes.
struct Tiles {
  alignas(32) std::uint32_t a[kMaxWords];
  alignas(32) std::uint32_t b[kMaxWords];
  alignas(32) std::uint32_t c[16 * 8];
  std::span<const std::byte> a_codes, b_codes;
};

void gather(Warp& warp, const MmaForm& form, Tiles& tiles) {
  const int row_bits = form.a_type == Type::kTf32 ? 32 : bits_of(form.a_type);
  const int words = form.extents.k * row_bits / 32;
  gather_a(warp, form.a, words, tiles.a);
  gather_b(warp, form.b, words, tiles.b);
  tiles.a_codes = std::as_bytes(std::span(tiles.a, std::size_t(form.extents.m * words)));
  tiles.b_codes = std::as_bytes(std::span(tiles.b, std::size_t(form.extents.n * words)));
}

Step mma_float(Warp& warp, const Insn& insn, std::uint32_t /*active*/) {
  const MmaForm& form = form_of(insn);
  Tiles tiles;
  gather(warp, form, tiles);
  const bool is_half = form.d_type == Type::kF16;
  const std::size_t size = std::size_t(form.extents.m * form.extents.n);
  (is_half ? gather_d16 : gather_d32)(warp, form.c, form.extents.n, form.extents.m, tiles.c);
  const FormatSpec& a_format = *tensor_format_of(form.a_type);
  TensorArithmetic arithmetic = tensor_arithmetic(TensorUnit::kMmaSync, a_format, is_half);
  arithmetic.is_exact = warp.grid->options.is_exact_mma;
  const TileOperand a{tiles.a_codes, &a_format};
  const TileOperand b{tiles.b_codes, tensor_format_of(form.b_type)};
  const std::span sums(tiles.c, size);
  if (a_format.bits() == 8) {
    multiply_converted_tile(arithmetic, form.extents, a, b, sums, sums);
  } else {
    multiply_tile(arithmetic, form.extents, a, b, sums, sums);
  }
  (is_half ? scatter_d16 : scatter_d32)(warp, form.d, form.extents.n, form.extents.m, tiles.c);
  return Step::kNext;
}

Step mma_integer(Warp& warp, const Insn& insn, std::uint32_t /*active*/) {
  const MmaForm& form = form_of(insn);
  Tiles tiles;
  gather(warp, form, tiles);
  gather_d32(warp, form.c, form.extents.n, form.extents.m, tiles.c);
  const std::span sums(reinterpret_cast<std::int32_t*>(tiles.c),
                       std::size_t(form.extents.m * form.extents.n));
  const IntegerOperands types = integer_operands(form.a_type, form.b_type);
  if (types.is_bits) {
    multiply_bit_tile(form.extents, tiles.a_codes, tiles.b_codes, form.bits, sums, sums);
  } else {
    multiply_integer_tile(form.extents, {tiles.a_codes, types.a}, {tiles.b_codes, types.b},
                          form.is_saturating, sums, sums);
  }
  scatter_d32(warp, form.d, form.extents.n, form.extents.m, tiles.c);
  return Step::kNext;
}

Step mma_double(Warp& warp, const Insn& insn, std::uint32_t /*active*/) {
  const MmaForm& form = form_of(insn);
  const int m = form.extents.m, n = form.extents.n, k = form.extents.k;
  std::array<double, 16 * 16> a{}, b{};
  std::array<double, 16 * 8> c{};
  for (int lane = 0; lane < kLanes; ++lane) {
    const auto value = [&](const std::vector<Row>& rows, int reg) {
      return warp.row<double>(rows[std::size_t(reg)])[lane];
    };
    for (int reg = 0; reg < static_cast<int>(form.a.size()); ++reg) {
      const auto at = m == 8 ? mma_m8n8k4_f64_operand_element(lane)
                             : mma_a_element(FragmentWidth::k64Bit, lane, reg, 0);
      a[std::size_t(at.row * k + at.col)] = value(form.a, reg);
    }
    for (int reg = 0; reg < static_cast<int>(form.b.size()); ++reg) {
      const auto at = mma_b_element(FragmentWidth::k64Bit, lane, reg, 0);
      b[std::size_t(at.row * k + at.col)] = value(form.b, reg);
    }
    for (int reg = 0; reg < static_cast<int>(form.c.size()); ++reg) {
      const auto at = mma_c_element(lane, reg);
      c[std::size_t(at.row * n + at.col)] = value(form.c, reg);
    }
  }
  const auto sums = std::span(c).first(std::size_t(m * n));
  multiply_f64_tile(form.extents, std::span(a).first(std::size_t(m * k)),
                    std::span(b).first(std::size_t(n * k)), sums, sums);
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int reg = 0; reg < static_cast<int>(form.d.size()); ++reg) {
      const auto at = mma_c_element(lane, reg);
      warp.row<double>(form.d[std::size_t(reg)])[lane] = c[std::size_t(at.row * n + at.col)];
    }
  }
  return Step::kNext;
}

int number_after(std::string_view text, char letter) {
  const std::size_t at = text.find(letter);
  int value = 0;
  if (at != std::string_view::npos) {
    std::from_chars(text.data() + at + 1, text.data() + text.size(), value);
  }
  return value;
}

TileExtents take_extents(Lowering& l) {
  for (const std::string_view modifier : l.syntax().modifiers) {
    if (!modifier.starts_with("m8n8k") && !modifier.starts_with("m16n8k")) continue;
    l.take(modifier);
    return {number_after(modifier, 'm'), number_after(modifier, 'n'), number_after(modifier, 'k')};
  }
  l.fail("expected a shape such as .m16n8k16");
}

/// Bits of k that one instruction may have: A's row is 128 or 256 bits, or less for old shapes.
bool is_legal(const MmaForm& form) {
  const int m = form.extents.m, k = form.extents.k;
  if (form.a_type == Type::kF64) {
    return m == 8 ? k == 4 : k == 4 || k == 8 || k == 16;
  }
  const int row_bits = k * (form.a_type == Type::kTf32 ? 32 : bits_of(form.a_type));
  if (m == 8) return row_bits == 128 && integer_operands(form.a_type, form.b_type).is_integer;
  return row_bits == 128 || row_bits == 256;
}

ExecFn pick(Lowering& l, const MmaForm& form) {
  const bool is_double = form.a_type == Type::kF64 && form.b_type == Type::kF64;
  if (is_double && form.d_type == Type::kF64) return mma_double;
  if (integer_operands(form.a_type, form.b_type).is_integer && form.d_type == Type::kS32) {
    return mma_integer;
  }
  const FormatSpec* a = tensor_format_of(form.a_type);
  const FormatSpec* b = tensor_format_of(form.b_type);
  const bool is_eight = a != nullptr && b != nullptr && a->bits() == 8 && b->bits() == 8;
  const bool has_half = form.a_type == Type::kF16 || is_eight;
  if (a == nullptr || b == nullptr || (form.a_type != form.b_type && !is_eight) ||
      !(form.d_type == Type::kF32 || (form.d_type == Type::kF16 && has_half))) {
    l.fail("mma.sync has no such combination of types");
  }
  return mma_float;
}

std::vector<Row> bind(Lowering& l, int operand_idx, int count, Type type, bool is_destination) {
  const auto elements = l.elements(operand_idx);
  if (static_cast<int>(elements.size()) != count) {
    l.fail_at(l.operand(operand_idx), "expected " + std::to_string(count) + " registers, found " +
                                          std::to_string(elements.size()));
  }
  std::vector<Row> rows;
  for (const Operand& element : elements) {
    rows.push_back(is_destination ? l.destination(element, type) : l.source(element, type));
  }
  return rows;
}

void lower_mma(Lowering& l) {
  MmaForm form;
  if (!l.take_prefix("sp").empty()) l.refuse("sparse mma is not simulated");
  l.take("sync"), l.take("aligned");
  form.extents = take_extents(l);
  if (!l.take("row") || !l.take("col")) {
    l.fail("expected .row.col; other orders, of Volta's m8n8k4, are not simulated");
  }
  if (!l.take_prefix("kind::").empty()) need_family_target(l, 100, "mma.sync with .kind");
  form.is_saturating = l.take("satfinite");
  if (l.take("and")) form.bits = BitOperation::kAnd;
  l.take("xor"), l.take("popc");
  form.d_type = l.type();
  form.a_type = l.type();
  form.b_type = l.type();
  if (l.type() != form.d_type) l.fail("the types of c and d differ");
  if (form.a_type == Type::kF64) l.take("rn");
  l.finish_modifiers();
  const ExecFn exec = pick(l, form);
  if (!is_legal(form)) {
    l.fail("mma.sync has no such shape for these types, or it is Volta's and not simulated");
  }
  const bool is_double = form.a_type == Type::kF64;
  const int operand_bits = is_double ? 64 : form.a_type == Type::kTf32 ? 32 : bits_of(form.a_type);
  const int per_register = (is_double ? 64 : 32) / operand_bits;
  const int num_d = form.extents.m * 8 / 32 / (form.d_type == Type::kF16 ? 2 : 1);
  const Type operand = is_double ? Type::kF64 : Type::kB32;
  const Type sum = is_double ? Type::kF64 : Type::kB32;
  form.d = bind(l, 0, num_d, sum, true);
  form.a = bind(l, 1, form.extents.m * form.extents.k / 32 / per_register, operand, false);
  form.b = bind(l, 2, 8 * form.extents.k / 32 / per_register, operand, false);
  form.c = bind(l, 3, num_d, sum, false);
  const MmaForm* kept = l.keep(std::move(form));
  Insn& insn = l.emit(exec, {}, 0);
  insn.extra = kept;
  insn.flags |= kAligned | kTensor | kUsesUndefined;
  for (const Row row : kept->d) l.also_writes(row);
  for (const auto* rows : {&kept->a, &kept->b, &kept->c}) {
    for (const Row row : *rows) l.also_reads(row);
  }
}

const InsnRow kMmaSyncRows[] = {
    {"mma",
     "mma.sync.aligned.shape.row.col{.satfinite}{.op.popc}.dtype.atype.btype.ctype d, a, b, c;", 80,
     InsnClass::kTensor, lower_mma},
};

}  // namespace

const InsnSection& mma_sync_section() {
  static const InsnSection section{"Warp-level matrix multiply", kMmaSyncRows};
  return section;
}

}  // namespace tilewright::sim
