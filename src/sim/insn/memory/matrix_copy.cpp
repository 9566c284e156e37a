// ldmatrix, stmatrix, movmatrix: 8x8 matrices between shared memory and fragments.
#include "sim/insn/lower_forms.h"
#include "sim/insn/memory_operand.h"
#include "sim/insn/sections.h"

#include <array>
#include <string>

namespace tilewright::sim {
namespace {

/// How the 16 elements of a row lie in its 16 bytes of shared memory.
enum class Elements : std::uint8_t {
  kWords,  ///< no bytes at all, or bytes
  k4Bits,  ///< .b4x16_p64: in 8 bytes, and 8 of padding
  k6Bits,  ///< .b6x16_p32: in 12 bytes, and 4 of padding
};

struct MatrixForm {
  AddressForm address;
  Elements elements = Elements::kWords;
  int num_registers = 1;
  int num_address_lanes = 8;
  std::array<Row, 4> rows{};
};

const MatrixForm& matrix_form_of(const Insn& insn) {
  return *static_cast<const MatrixForm*>(insn.extra);
}

/// Resolves the 16-byte rows; lanes beyond those that give addresses may hold anything.
void resolve_rows(Warp& warp, const Insn& insn, const MatrixForm& form, AccessKind kind,
                  LanePointers& pointers) {
  const std::uint32_t lanes =
      form.num_address_lanes == kLanes ? kAllLanes : (1u << form.num_address_lanes) - 1;
  Access access;
  access.kind = kind;
  access.bytes = access.align_bytes = 16;
  resolve(warp, insn, lanes, form.address, access, pointers);
}

/// A row as it gets into registers: each element in the low bits of a byte.
struct MatrixRow {
  std::uint8_t bytes[16];
};
MatrixRow row_at(const std::byte* from, Elements elements) {
  MatrixRow row;
  std::memcpy(row.bytes, from, sizeof row.bytes);
  if (elements == Elements::kWords) return row;
  const unsigned bits = elements == Elements::k4Bits ? 4 : 6;
  const MatrixRow packed = row;
  for (unsigned i = 0; i < 16; ++i) {
    const unsigned at = i * bits / 8, shift = i * bits % 8;
    const unsigned both = packed.bytes[at] | packed.bytes[at + 1] << 8;
    row.bytes[i] = static_cast<std::uint8_t>(both >> shift & ((1u << bits) - 1));
  }
  return row;
}

/// Lane 4g + q gets word q of row g: the rows one after the other.
Step load_plain(Warp& warp, const Insn& insn, std::uint32_t active) {
  const MatrixForm& form = matrix_form_of(insn);
  LanePointers pointers;
  resolve_rows(warp, insn, form, AccessKind::kRead, pointers);
  for (int j = 0; j < form.num_registers; ++j) {
    std::uint32_t words[kLanes];
    for (int g = 0; g < 8; ++g) {
      const MatrixRow row = row_at(pointers.at[8 * j + g], form.elements);
      std::memcpy(words + 4 * g, row.bytes, sizeof row.bytes);
    }
    write_row(warp.row<std::uint32_t>(form.rows[j]), words, active);
  }
  return Step::kNext;
}

/// Lane 4g + q gets elements g of rows 2q and 2q + 1.
void transpose(const std::uint16_t (&rows)[8][8], std::uint32_t* words) {
  for (int lane = 0; lane < kLanes; ++lane) {
    const int g = lane / 4, q = lane % 4;
    words[lane] = rows[2 * q][g] | static_cast<std::uint32_t>(rows[2 * q + 1][g]) << 16;
  }
}

Step load_transposed(Warp& warp, const Insn& insn, std::uint32_t active) {
  const MatrixForm& form = matrix_form_of(insn);
  LanePointers pointers;
  resolve_rows(warp, insn, form, AccessKind::kRead, pointers);
  for (int j = 0; j < form.num_registers; ++j) {
    std::uint16_t rows[8][8];
    std::uint32_t words[kLanes];
    for (int r = 0; r < 8; ++r) std::memcpy(rows[r], pointers.at[8 * j + r], 16);
    transpose(rows, words);
    write_row(warp.row<std::uint32_t>(form.rows[j]), words, active);
  }
  return Step::kNext;
}

/// m16n16 of bytes: lanes 16j + r give row r of matrix j; register 2j + h of lane 4g + q gets
/// element g + 8h of rows 4q to 4q + 3. The manual only draws it; people have measured it on
/// sm_120, and the byte shuffles after it in CUTLASS's copy atoms say the same.
Step load_bytes_transposed(Warp& warp, const Insn& insn, std::uint32_t active) {
  const MatrixForm& form = matrix_form_of(insn);
  LanePointers pointers;
  resolve_rows(warp, insn, form, AccessKind::kRead, pointers);
  MatrixRow rows[kLanes];
  for (int i = 0; i < form.num_address_lanes; ++i) {
    rows[i] = row_at(pointers.at[i], form.elements);
  }
  for (int j = 0; j < form.num_registers; ++j) {
    std::uint32_t words[kLanes];
    for (int lane = 0; lane < kLanes; ++lane) {
      const int g = lane / 4, q = lane % 4;
      std::uint32_t word = 0;
      for (int e = 0; e < 4; ++e) {
        const std::uint32_t value = rows[16 * (j / 2) + 4 * q + e].bytes[g + 8 * (j % 2)];
        word |= value << (8 * e);
      }
      words[lane] = word;
    }
    write_row(warp.row<std::uint32_t>(form.rows[j]), words, active);
  }
  return Step::kNext;
}

Step store_plain(Warp& warp, const Insn& insn, std::uint32_t /*active*/) {
  const MatrixForm& form = matrix_form_of(insn);
  LanePointers pointers;
  resolve_rows(warp, insn, form, AccessKind::kWrite, pointers);
  for (int j = 0; j < form.num_registers; ++j) {
    const auto* words = warp.row<std::uint32_t>(form.rows[j]);
    for (int g = 0; g < 8; ++g) std::memcpy(pointers.at[8 * j + g], words + 4 * g, 16);
  }
  return Step::kNext;
}

Step store_transposed(Warp& warp, const Insn& insn, std::uint32_t /*active*/) {
  const MatrixForm& form = matrix_form_of(insn);
  LanePointers pointers;
  resolve_rows(warp, insn, form, AccessKind::kWrite, pointers);
  for (int j = 0; j < form.num_registers; ++j) {
    const auto* words = warp.row<std::uint32_t>(form.rows[j]);
    std::uint16_t rows[8][8];
    for (int lane = 0; lane < kLanes; ++lane) {
      const int g = lane / 4, q = lane % 4;
      rows[2 * q][g] = static_cast<std::uint16_t>(words[lane]);
      rows[2 * q + 1][g] = static_cast<std::uint16_t>(words[lane] >> 16);
    }
    for (int r = 0; r < 8; ++r) std::memcpy(pointers.at[8 * j + r], rows[r], 16);
  }
  return Step::kNext;
}

/// m16n8 of bytes: byte e of lane 4g + q goes to row 2q + e % 2, place g + 8 * (e / 2).
Step store_bytes_transposed(Warp& warp, const Insn& insn, std::uint32_t /*active*/) {
  const MatrixForm& form = matrix_form_of(insn);
  LanePointers pointers;
  resolve_rows(warp, insn, form, AccessKind::kWrite, pointers);
  for (int j = 0; j < form.num_registers; ++j) {
    const auto* words = warp.row<std::uint32_t>(form.rows[j]);
    for (int lane = 0; lane < kLanes; ++lane) {
      const int g = lane / 4, q = lane % 4;
      for (int e = 0; e < 4; ++e) {
        pointers.at[8 * j + 2 * q + e % 2][g + 8 * (e / 2)] =
            static_cast<std::byte>(words[lane] >> (8 * e));
      }
    }
  }
  return Step::kNext;
}

struct Shape {
  int count = 1;  ///< of matrices
  bool is_transposed = false;
  bool is_bytes = false;
  bool is_wide = false;  ///< m8n16, of fewer bits in memory
  Elements elements = Elements::kWords;
};

/// .b16, .b8 or .b8x16.b4x16_p64
void take_elements(Lowering& l, Shape& shape) {
  if (l.take("b8x16")) {
    const int packing = l.take_one_of({"b4x16_p64", "b6x16_p32"});
    if (packing < 0) l.fail("expected .b4x16_p64 or .b6x16_p32");
    shape.elements = packing == 0 ? Elements::k4Bits : Elements::k6Bits;
    if (!shape.is_bytes && !shape.is_wide) l.fail("expected .m8n16 or .m16n16");
    return;
  }
  const Type type = l.type();
  if (shape.is_wide || type != (shape.is_bytes ? Type::kB8 : Type::kB16)) {
    l.fail("wrong type for this shape");
  }
}

Shape take_shape(Lowering& l, std::string_view byte_shape, int max_byte_count) {
  Shape shape;
  if (!l.take("sync") || !l.take("aligned")) l.fail("expected .sync.aligned");
  const int count = l.take_one_of({"x1", "x2", "x4"});
  if (count < 0) l.fail("expected .x1, .x2 or .x4");
  shape.count = 1 << count;
  shape.is_transposed = l.take("trans");
  shape.is_bytes = l.take(byte_shape);
  shape.is_wide = !shape.is_bytes && l.take("m8n16");
  if (!shape.is_bytes && !shape.is_wide && !l.take("m8n8")) {
    l.fail("expected .m8n8 or ." + std::string(byte_shape));
  }
  take_elements(l, shape);
  if (shape.is_bytes && (l.module().target < 100 || !shape.is_transposed)) {
    l.fail("matrices of bytes need .trans and .target sm_100a");
  }
  if (shape.is_wide && (l.module().target < 100 || shape.is_transposed)) {
    l.fail(".m8n16 needs .target sm_100a and takes no .trans");
  }
  if (shape.is_bytes && shape.count > max_byte_count) l.fail("too many matrices of bytes");
  return shape;
}

void emit(Lowering& l, ExecFn exec, MatrixForm form, int vector_idx, int address_idx,
          AddressSpace space, bool is_load) {
  if (space != AddressSpace::kSharedCta && space != AddressSpace::kGeneric) {
    l.fail("matrices are loaded from and stored to .shared::cta");
  }
  form.address = address_form(l, address_idx, space);
  const auto elements = l.elements(vector_idx);
  if (static_cast<int>(elements.size()) != form.num_registers) {
    l.fail_at(l.operand(vector_idx),
              "expected " + std::to_string(form.num_registers) + " registers");
  }
  for (std::size_t j = 0; j < elements.size(); ++j) {
    form.rows[j] =
        is_load ? l.destination(elements[j], Type::kB32) : l.source(elements[j], Type::kB32);
  }
  const MatrixForm* kept = l.keep(form);
  Insn& insn = l.emit(exec, {kept->address.base}, 0);
  insn.extra = kept;
  insn.flags |= kAligned | kUsesUndefined | (is_load ? kMemoryRead : kMemoryWrite);
  for (int j = 0; j < kept->num_registers; ++j) {
    is_load ? l.also_writes(kept->rows[j]) : l.also_reads(kept->rows[j]);
  }
}

void lower_ldmatrix(Lowering& l) {
  const Shape shape = take_shape(l, "m16n16", 2);
  if (shape.is_bytes || shape.elements != Elements::kWords) {
    need_family_target(l, 100, "ldmatrix of 8 bits and fewer");
  }
  const AddressSpace space = take_space(l);
  l.finish_modifiers();
  MatrixForm form;
  form.num_registers = shape.is_bytes ? 2 * shape.count : shape.count;
  form.num_address_lanes = (shape.is_bytes ? 16 : 8) * shape.count;
  form.elements = shape.elements;
  emit(l,
       shape.is_bytes        ? load_bytes_transposed
       : shape.is_transposed ? load_transposed
                             : load_plain,
       form, 0, 1, space, true);
}

void lower_stmatrix(Lowering& l) {
  const Shape shape = take_shape(l, "m16n8", 4);
  if (shape.is_bytes) need_family_target(l, 100, "stmatrix of .b8");
  if (shape.elements != Elements::kWords) l.fail("stmatrix stores .b16 or .b8");
  const AddressSpace space = take_space(l);
  l.finish_modifiers();
  MatrixForm form;
  form.num_registers = shape.count;
  form.num_address_lanes = 8 * shape.count;
  emit(l,
       shape.is_bytes        ? store_bytes_transposed
       : shape.is_transposed ? store_transposed
                             : store_plain,
       form, 1, 0, space, false);
}

Step movmatrix(Warp& warp, const Insn& insn, std::uint32_t active) {
  std::uint16_t rows[8][8];
  std::uint32_t words[kLanes];
  std::memcpy(rows, warp.row<std::uint32_t>(insn.op[1]), sizeof rows);
  transpose(rows, words);
  write_row(warp.row<std::uint32_t>(insn.op[0]), words, active);
  return Step::kNext;
}

void lower_movmatrix(Lowering& l) {
  for (const char* modifier : {"sync", "aligned", "m8n8", "trans", "b16"}) {
    if (!l.take(modifier)) l.fail("expected .sync.aligned.m8n8.trans.b16");
  }
  l.finish_modifiers();
  l.emit(movmatrix, {l.destination(0, Type::kB32), l.source(1, Type::kB32)}).flags |= kAligned;
}

const InsnRow kMatrixCopyRows[] = {
    {"ldmatrix",
     "ldmatrix.sync.aligned.{m8n8,m16n16}.{x1,x2,x4}{.trans}{.shared{::cta}}.{b16,b8} r, [p]; "
     "ldmatrix.sync.aligned.{m8n16,m16n16}.{x1,x2,x4}{.trans}{.shared{::cta}}.b8x16.{b4x16_p64,"
     "b6x16_p32} r, [p];",
     75, InsnClass::kLoad, lower_ldmatrix},
    {"stmatrix",
     "stmatrix.sync.aligned.{m8n8,m16n8}.{x1,x2,x4}{.trans}{.shared{::cta}}.{b16,b8} [p], r;", 90,
     InsnClass::kStore, lower_stmatrix},
    {"movmatrix", "movmatrix.sync.aligned.m8n8.trans.b16 d, a;", 75, InsnClass::kShuffle,
     lower_movmatrix},
};

}  // namespace

const InsnSection& matrix_copy_section() {
  static const InsnSection section{"Matrix loads and stores", kMatrixCopyRows};
  return section;
}

}  // namespace tilewright::sim
