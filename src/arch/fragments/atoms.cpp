#include "arch/fragments/atoms.h"

#include "arch/fragments/block_scales.h"
#include "arch/fragments/matrix_copy.h"
#include "arch/fragments/mma_sync.h"
#include "arch/fragments/smem_tiles.h"
#include "arch/fragments/tmem.h"
#include "arch/fragments/wgmma.h"

#include <algorithm>

#include <fmt/format.h>

namespace tilewright::arch {

namespace {

using Atoms = std::vector<NamedAtom>;

void add_fragment(Atoms& atoms, const std::string& name, const std::string& family,
                  const std::string& summary, const Layout& tv, const IntTuple& tile, int bits,
                  const char* row, const char* column) {
  atoms.push_back({name, family, summary, AtomKind::kThreadValue, tv, tile, bits, row, column, 1});
}

void add_mma(Atoms& atoms, const std::string& name, const std::string& types, const MmaAtom& mma,
             int bits) {
  const auto add = [&](const char* operand, const Layout& tv, std::int64_t rows,
                       std::int64_t columns, int width, const char* row, const char* column) {
    add_fragment(atoms, fmt::format("mma.{}.{}", name, operand), fmt::format("mma.{}", name),
                 fmt::format("mma.sync {}, {}: operand {}", name, types, operand), tv,
                 make_shape(rows, columns), width, row, column);
  };
  add("A", mma.a_tv, mma.m(), mma.k(), bits, "m", "k");
  add("B", mma.b_tv, mma.n(), mma.k(), bits, "n", "k");
  add("C", mma.c_tv, mma.m(), mma.n(), 32, "m", "n");
}

void add_matrix_copies(Atoms& atoms) {
  for (const int matrices : {1, 2, 4}) {
    for (const bool transposed : {false, true}) {
      const std::string form = fmt::format("x{}{}", matrices, transposed ? ".trans" : "");
      add_fragment(
          atoms, "ldmatrix." + form, "ldmatrix",
          fmt::format(
              "registers of ldmatrix and stmatrix .{}: {} 8x8 matrices, one above the other", form,
              matrices),
          matrix_registers(matrices, transposed), make_shape(8 * matrices, 8), 16, "row", "column");
    }
    add_fragment(
        atoms, fmt::format("ldmatrix.x{}.rows", matrices), "ldmatrix",
        fmt::format("whose address each row of ldmatrix and stmatrix .x{} is taken from", matrices),
        matrix_rows(matrices), make_shape(8 * matrices, 8), 16, "row", "column");
  }
}

void add_wgmma(Atoms& atoms) {
  for (int n = 8; n <= 256; n += 8) {
    add_fragment(atoms, fmt::format("wgmma.m64n{}.C", n), "wgmma.m64nN.C",
                 fmt::format("accumulator of wgmma.m64n{}", n), wgmma_c(n), make_shape(64, n), 32,
                 "m", "n");
  }
  add_fragment(atoms, "wgmma.m64k16.A", "wgmma.A", "A of wgmma from registers, 16-bit types",
               kWgmmaA16, make_shape(64, 16), 16, "m", "k");
  add_fragment(atoms, "wgmma.m64k32.A", "wgmma.A", "A of wgmma from registers, 8-bit types",
               kWgmmaA8, make_shape(64, 32), 8, "m", "k");
  add_fragment(atoms, "wgmma.m64k8.A", "wgmma.A", "A of wgmma from registers, tf32", kWgmmaATf32,
               make_shape(64, 8), 32, "m", "k");
}

const char* swizzle_name(SmemSwizzle swizzle) {
  switch (swizzle) {
    case SmemSwizzle::kNone:
      return "none";
    case SmemSwizzle::k32B:
      return "32B";
    case SmemSwizzle::k64B:
      return "64B";
    case SmemSwizzle::k128B:
      return "128B";
    case SmemSwizzle::k128B32BAtom:
      return "128B_32B_atom";
  }
  return "?";
}

// Two atoms along mn and, without a swizzle, two along k: enough to see both strides.
void add_shared_tile(Atoms& atoms, Major major, SmemSwizzle swizzle, int bits) {
  const Layout atom = smem_atom(major, swizzle, bits);
  const bool is_k = major == Major::kK;
  NamedAtom out;
  out.family = fmt::format("smem.{}.{}", is_k ? "K" : "MN", swizzle_name(swizzle));
  out.name = fmt::format("{}.{}bit", out.family, bits);
  out.summary = fmt::format("{}-major operand tile of {}-bit elements in shared memory, {} swizzle",
                            is_k ? "K" : "MN", bits, swizzle_name(swizzle));
  out.kind = AtomKind::kSharedTile;
  const std::int64_t k_atoms = is_k && swizzle != SmemSwizzle::kNone ? 1 : 2;
  out.layout = make_smem_tile(major, swizzle, bits, 2 * size(atom, 0), k_atoms * size(atom, 1));
  out.element_bits = bits;
  out.row_name = "m";
  atoms.push_back(out);
}

void add_shared_tiles(Atoms& atoms) {
  for (const Major major : {Major::kK, Major::kMN}) {
    for (const SmemSwizzle swizzle :
         {SmemSwizzle::kNone, SmemSwizzle::k32B, SmemSwizzle::k64B, SmemSwizzle::k128B}) {
      for (const int bits : {4, 8, 16, 32}) add_shared_tile(atoms, major, swizzle, bits);
    }
  }
  add_shared_tile(atoms, Major::kMN, SmemSwizzle::k128B32BAtom, 32);
}

void add_tmem_access(Atoms& atoms, const char* shape_name, TmemShape shape, int max_num) {
  for (int num = 1; num <= max_num; num *= 2) {
    NamedAtom out;
    out.family = fmt::format("tcgen05.ld.{}", shape_name);
    out.name = fmt::format("{}.x{}", out.family, num);
    out.summary = fmt::format(
        "tcgen05.ld and st .{}.x{}: what one warp moves{}", shape_name, num,
        shape == TmemShape::k16x32bx2 ? ", the upper half of the warp 32 columns further" : "");
    out.kind = AtomKind::kTmemAccess;
    out.layout = tmem_ld(shape, num, 32);
    out.element_bits = kTmemCellBits;
    atoms.push_back(out);
  }
}

void add_tmem(Atoms& atoms, const std::string& name, const std::string& family,
              const std::string& summary, const Layout& layout, int bits, const char* column) {
  atoms.push_back(
      {name, family, summary, AtomKind::kTensorMemory, layout, {}, bits, "m", column, 1});
}

struct RowsForm {
  TmemRows rows;
  const char* name;
  const char* meaning;
  bool has_a;
};
constexpr RowsForm kRowsForms[] = {
    {TmemRows::kM128, "m128", "M = 128, one CTA", true},
    {TmemRows::kM64, "m64", "M = 64, one CTA", true},
    {TmemRows::kM64Ws, "m64ws", "M = 64, .ws", false},
    {TmemRows::kM32Ws, "m32ws", "M = 32, .ws", false},
    {TmemRows::kPairM256, "m256pair", "M = 256, two CTAs", true},
    {TmemRows::kPairM128, "m128pair", "M = 128, two CTAs", true},
};

void add_tensor_memory(Atoms& atoms) {
  add_tmem_access(atoms, "32x32b", TmemShape::k32x32b, 128);
  add_tmem_access(atoms, "16x64b", TmemShape::k16x64b, 128);
  add_tmem_access(atoms, "16x128b", TmemShape::k16x128b, 64);
  add_tmem_access(atoms, "16x256b", TmemShape::k16x256b, 32);
  add_tmem_access(atoms, "16x32bx2", TmemShape::k16x32bx2, 128);
  for (const RowsForm& form : kRowsForms) {
    for (const int n : {64, 128, 256}) {
      add_tmem(
          atoms, fmt::format("tmem.C.{}.n{}", form.name, n), "tmem.C",
          fmt::format("accumulator of tcgen05.mma in Tensor Memory, {}, N = {}", form.meaning, n),
          tmem_c(form.rows, n), 32, "n");
    }
  }
  for (const RowsForm& form : kRowsForms) {
    for (const int bits : {16, 8}) {
      if (!form.has_a) continue;
      add_tmem(atoms, fmt::format("tmem.A.{}.k64.{}bit", form.name, bits), "tmem.A",
               fmt::format("A of tcgen05.mma in Tensor Memory, {}, {}-bit elements, K = 64",
                           form.meaning, bits),
               tmem_a(form.rows, 64, bits), bits, "k");
    }
  }
}

void add_scales(Atoms& atoms) {
  for (const int block : {16, 32}) {
    for (const Major major : {Major::kK, Major::kMN}) {
      NamedAtom out;
      out.family = "sf";
      out.name = fmt::format("sf.{}.{}", major == Major::kK ? "K" : "MN", block);
      out.summary =
          fmt::format("scale factors of blocks of {} along {}: 128 x 4 of them in 512 bytes", block,
                      major == Major::kK ? "K" : "MN");
      out.kind = AtomKind::kScales;
      out.layout = BlockScaledBasicChunk{block, major}.layout();
      out.element_bits = 8;
      out.scale_block = block;
      atoms.push_back(out);
    }
  }
}

}  // namespace

const char* to_string(AtomKind kind) {
  switch (kind) {
    case AtomKind::kThreadValue:
      return "thread-value";
    case AtomKind::kSharedTile:
      return "shared memory";
    case AtomKind::kTensorMemory:
      return "tensor memory";
    case AtomKind::kTmemAccess:
      return "tensor memory access";
    case AtomKind::kScales:
      return "scale factors";
  }
  return "?";
}

const std::vector<NamedAtom>& named_atoms() {
  static const Atoms all = [] {
    Atoms atoms;
    add_mma(atoms, "m16n8k16", "f16 or bf16", kMmaM16N8K16, 16);
    add_mma(atoms, "m16n8k8", "f16 or bf16", kMmaM16N8K8, 16);
    add_mma(atoms, "m16n8k8.tf32", "tf32", kMmaM16N8K8Tf32, 32);
    add_mma(atoms, "m16n8k16.8bit", "e4m3, e5m2, s8 or u8", kMmaM16N8K16Bytes, 8);
    add_mma(atoms, "m16n8k32", "e4m3, e5m2, s8 or u8", kMmaM16N8K32, 8);
    add_matrix_copies(atoms);
    add_wgmma(atoms);
    add_shared_tiles(atoms);
    add_tensor_memory(atoms);
    add_scales(atoms);
    return atoms;
  }();
  return all;
}

const NamedAtom* find_atom(std::string_view name) {
  const auto& atoms = named_atoms();
  const auto found = std::ranges::find(atoms, name, &NamedAtom::name);
  return found == atoms.end() ? nullptr : &*found;
}

namespace {

Drawing draw_shared_tile(const NamedAtom& atom, Window window) {
  const bool is_k_major = atom.layout.layout.stride[0] != 1;
  MemoryView view;
  view.element_bits = atom.element_bits;
  view.color_mode = is_k_major ? 1 : 0;
  view.row_name = atom.row_name;
  view.column_name = atom.column_name;
  Drawing out = draw_memory(atom.layout, view, window);
  out.row_group = 8;
  out.caption = fmt::format(
      "Shared memory, 128 bytes a line. A colour is one 16-byte chunk along {}: where the swizzle "
      "works, eight cells of one colour lie in eight columns of the picture, that is in all 32 "
      "banks.",
      is_k_major ? "k" : "m");
  return out;
}

Drawing draw_scales(const NamedAtom& atom, Window window) {
  MemoryView view;
  view.element_bits = 8;
  view.line_bytes = 16;
  view.cell_bytes = 1;
  const bool blocks_on_k = atom.layout.layout.shape[0] == 32;
  view.column_divisor = blocks_on_k ? atom.scale_block : 1;
  view.row_divisor = blocks_on_k ? 1 : atom.scale_block;
  view.row_name = "m";
  view.column_name = "k";
  view.color_group = 32;
  view.color_mode = blocks_on_k ? 0 : 1;
  Drawing out = draw_memory(atom.layout, view, window);
  out.column_group = 4;
  out.caption = fmt::format(
      "One byte a cell, 16 bytes a line. {} counts elements, {} counts blocks of {}; a colour is "
      "a group of 32 rows, which becomes one column of Tensor Memory.",
      blocks_on_k ? "m" : "k", blocks_on_k ? "k" : "m", atom.scale_block);
  return out;
}

}  // namespace

Drawing draw_atom(const NamedAtom& atom, Window window) {
  Drawing out;
  switch (atom.kind) {
    case AtomKind::kThreadValue:
      out = draw_thread_values(atom.layout.layout, atom.tile.value[0], atom.tile.value[1], window);
      out.row_name = atom.row_name;
      out.column_name = atom.column_name;
      out.row_group = 8;
      out.column_group = 8;
      break;
    case AtomKind::kSharedTile:
      out = draw_shared_tile(atom, window);
      break;
    case AtomKind::kScales:
      out = draw_scales(atom, window);
      break;
    case AtomKind::kTensorMemory:
      out = draw_tmem(atom.layout.layout,
                      {atom.element_bits, kTmemLanes, atom.row_name, atom.column_name}, window);
      out.row_group = 32;
      out.caption = atom.summary + ".";
      break;
    case AtomKind::kTmemAccess:
      out = draw_tmem(atom.layout.layout, {atom.element_bits, 32, "T", "R"}, window);
      out.caption =
          "T = thread of the warp, R = register. Lanes count from the first of the warp's 32.";
      break;
  }
  out.name = atom.name;
  return out;
}

}  // namespace tilewright::arch
