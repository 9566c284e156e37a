#include "cli/demo/gallery.h"

#include "arch/fragments/atoms.h"
#include "arch/fragments/tmem.h"
#include "base/file.h"
#include "layout/divide_product.h"
#include "layout/draw_svg.h"
#include "layout/parse.h"

#include <filesystem>

#include <fmt/format.h>

namespace tilewright::cli {

namespace {

Drawing atom(const char* name, Window window = {}) {
  return arch::draw_atom(*arch::find_atom(name), window);
}

Drawing named(Drawing drawing, std::string name, std::string caption) {
  drawing.name = std::move(name);
  drawing.caption = std::move(caption);
  return drawing;
}

Picture strides() {
  return {"01-strides.svg",
          "A layout is a shape and a stride",
          "The same 4 x 8 coordinates under three strides. Nothing moves; what changes is which "
          "offset a coordinate "
          "means. The third nests its first mode: rows 0 and 1 are neighbours, rows 2 and 3 come "
          "16 later.",
          {named(draw_offsets(parse_layout("(4,8):(1,4)")), "column-major", ""),
           named(draw_offsets(parse_layout("(4,8):(8,1)")), "row-major", ""),
           named(draw_offsets(parse_layout("((2,2),8):((1,16),2)")), "nested", "")}};
}

Picture divide() {
  const Layout matrix = parse_layout("(8,8):(8,1)");
  const Layout tiles = zipped_divide(matrix, make_tiler(4, 2));
  Drawing before = named(draw_offsets(matrix), "the matrix", "Row-major, 8 x 8.");
  before.row_group = 4;
  before.column_group = 2;
  Drawing after = named(
      draw_offsets(tiles), "divided by <4,2>",
      "zipped_divide: column t is tile t, top to bottom and then left to right; its rows are the 8 "
      "elements of the tile.");
  after.row_name = "element of the tile";
  after.column_name = "tile";
  return {"02-divide.svg",
          "Dividing a matrix into tiles",
          "Tiling is an operation of the algebra: the matrix composed with a tile and with the "
          "complement of the tile. "
          "local_tile fixes the column of the right-hand table, local_partition its row.",
          {before, after}};
}

Picture mma_operands() {
  return {"03-mma-sync.svg",
          "mma.sync m16n8k16: who holds what",
          "One warp, 16-bit operands. T is the thread, V its value; a colour is a thread. Four "
          "threads (a quad) share a "
          "row of A and of C, and that is why a row-wise softmax needs exactly two shuffles.",
          {atom("mma.m16n8k16.A"), atom("mma.m16n8k16.B"), atom("mma.m16n8k16.C")}};
}

Picture ldmatrix() {
  return {"04-ldmatrix.svg",
          "ldmatrix: rows by address, fragments by register",
          "Left: lane T supplies the address of a row of eight elements. Middle: what arrives, "
          "register by register, is "
          "the mma.sync fragment. Right: with .trans the same rows arrive transposed.",
          {atom("ldmatrix.x2.rows"), atom("ldmatrix.x2"), atom("ldmatrix.x2.trans")}};
}

Picture wgmma_c() {
  return {"05-wgmma-c.svg",
          "The accumulator of wgmma.m64nN",
          "((4,8,4),(2,2,N/8)):((128,1,16),(64,8,512)) for N = 64. Thread bits walk along N "
          "(stride 128) and along M "
          "(strides 1 and 16), value bits likewise: a stride below M = 64 moves down a column, any "
          "other moves to "
          "another column. That test is what layout_acc_mn and reduction_target_n are made of. "
          "Shown is the first warp.",
          {atom("wgmma.m64n64.C", {0, 16, 0, 24})}};
}

Picture wgmma_a() {
  return {"06-wgmma-a.svg",
          "A from registers: 16-bit and 8-bit",
          "The 16-bit fragment is the accumulator's, eight columns by eight: P can be handed to "
          "the second product as "
          "it is. The 8-bit fragment gives a thread four neighbouring k, the accumulator only two: "
          "the keys have to be "
          "renumbered, or lanes have to exchange.",
          {atom("wgmma.m64k16.A", {0, 16, 0, 16}), atom("wgmma.m64k32.A", {0, 16, 0, 16})}};
}

Picture fp8_permutation() {
  // The accumulator's columns in the order in which the 8-bit operand wants them.
  const Layout c = arch::find_atom("wgmma.m64n16.C")->layout.layout;
  Drawing before =
      named(draw_thread_values(c, 64, 16, {0, 8, 0, 16}), "the accumulator, keys in order", "");
  Drawing after = before;
  constexpr int kSlotKeys[16] = {0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15};
  for (int row = 0; row < 8; ++row) {
    for (int slot = 0; slot < 16; ++slot) {
      after.cells[static_cast<std::size_t>(row * 16 + slot)] = before.at(row, kSlotKeys[slot]);
    }
  }
  for (int slot = 0; slot < 16; ++slot)
    after.column_headers[static_cast<std::size_t>(slot)] = std::to_string(kSlotKeys[slot]);
  after.name = "the same registers, keys renumbered";
  after.column_name = "key that each slot stands for";
  before.column_name = "key";
  before.column_group = after.column_group = 4;
  after.caption =
      "Every thread now holds four neighbouring slots, which is what the 8-bit A operand asks for. "
      "The rows "
      "of V are put in the same order; a sum over keys does not mind.";
  return {"07-fp8-keys.svg",
          "FP8: sixteen keys renumbered, nothing exchanged",
          "`tilewright layout handoff --from wgmma.m64n64.C --to wgmma.m64k32.A` finds this "
          "permutation.",
          {before, after}};
}

Picture swizzles() {
  return {"08-swizzles.svg",
          "Swizzled operand tiles in shared memory",
          "Eight rows of a K-major tile of 16-bit elements, as they lie in memory: 128 bytes a "
          "line, 16 bytes a cell. "
          "A colour is a 16-byte chunk of k. Without the swizzle a colour would fill a column, and "
          "reading one chunk of "
          "eight rows would ask the same four banks eight times.",
          {atom("smem.K.32B.16bit", {0, 4, 0, 8}), atom("smem.K.64B.16bit", {0, 8, 0, 8}),
           atom("smem.K.128B.16bit", {0, 8, 0, 8})}};
}

Picture mn_major() {
  return {"09-mn-major.svg",
          "MN-major: V without a transpose",
          "The other orientation under the 128 B swizzle: 64 values of m in a line, k from line to "
          "line. This is V in "
          "attention: stored with the head dimension contiguous, which for P x V is the N mode.",
          {atom("smem.MN.128B.16bit", {0, 16, 0, 8})}};
}

Picture banks() {
  const ComposedLayout plain = parse_composed_layout("(8,64):(64,1)");
  const ComposedLayout swizzled = parse_composed_layout("Sw<3,3,3> o 0 o (8,64):(64,1)");
  const auto picture = [](const ComposedLayout& tile, const char* name, const char* caption) {
    MemoryView view;
    view.color_mode = 1;
    return named(draw_memory(tile, view), name, caption);
  };
  return {"10-banks.svg",
          "Eight rows, one chunk: eight conflicts or none",
          "ldmatrix reads the chunk k0-7 of eight rows at once. On the left all eight lie in banks "
          "0-3, on the right "
          "each in other banks: 8 passes against 1. `tilewright layout banks` counts them.",
          {picture(plain, "plain rows of 128 bytes", "k0-7 fills the first column: 8 passes."),
           picture(swizzled, "128 B swizzle", "k0-7 runs down the diagonal: 1 pass.")}};
}

Picture tmem_access() {
  return {"11-tcgen05-ld.svg",
          "tcgen05.ld: three ways to read Tensor Memory",
          "T = thread, R = register. With 32x32b a thread owns a lane, so a row-wise softmax needs "
          "no shuffle at all; "
          "16x256b hands out the quads that mma.sync users know.",
          {atom("tcgen05.ld.32x32b.x8", {0, 16, 0, 8}), atom("tcgen05.ld.16x64b.x4", {0, 16, 0, 8}),
           atom("tcgen05.ld.16x256b.x1", {0, 16, 0, 8})}};
}

Picture tmem_handoff() {
  const Window window = {0, 6, 0, 12};
  Drawing written =
      draw_tmem(arch::tmem_c(arch::TmemRows::kM128, 128), {32, 128, "m", "n", true}, window);
  Drawing read =
      draw_tmem(arch::tmem_a(arch::TmemRows::kM128, 128, 16), {16, 128, "m", "k", true}, window);
  return {"12-tmem-handoff.svg",
          "Accumulator and operand do not share places in Tensor Memory",
          "Both tables show the same lanes and columns. The first MMA leaves one 32-bit value a "
          "column; the second reads "
          "two 16-bit elements a column. Where P is stored in the accumulator's places, column 8 "
          "is read as k = 16 and "
          "17. The cure: the thread that owns the lane packs two values to a register and stores "
          "half as many columns.",
          {named(written, "as written: the accumulator", "A colour is a column n."),
           named(read, "as read: A, 16-bit", "A colour is the first k of the cell.")}};
}

Picture scales() {
  return {"13-scale-factors.svg",
          "Block scales: 128 rows and 4 blocks in 512 bytes",
          "The atom ((32,4),(16,4)):((16,4),(0,1)). A line of 16 bytes becomes one lane of Tensor "
          "Memory, its four "
          "words four columns; a colour is a group of 32 rows. The stride of 0 says that sixteen "
          "elements share a scale.",
          {atom("sf.K.16", {0, 16, 0, 16})}};
}

}  // namespace

const std::vector<Picture>& gallery() {
  static const std::vector<Picture> pictures = {
      strides(),     divide(),          mma_operands(), ldmatrix(), wgmma_c(),
      wgmma_a(),     fp8_permutation(), swizzles(),     mn_major(), banks(),
      tmem_access(), tmem_handoff(),    scales()};
  return pictures;
}

std::string write_gallery(const std::string& folder, bool with_index) {
  std::filesystem::create_directories(folder);
  std::string html =
      "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>Tilewright: "
      "layouts</title>\n"
      "<style>body{font:16px/1.5 'DejaVu "
      "Sans',Helvetica,Arial,sans-serif;color:#1b1f24;max-width:1440px;"
      "margin:40px auto;padding:0 24px}figure{margin:32px 0;overflow-x:auto}img{max-width:none}"
      "h2{margin-top:48px}code{font-family:'DejaVu Sans "
      "Mono',monospace;font-size:.9em;background:#f3f4f6}</style>\n"
      "<h1>Layouts of tensor-core operands</h1>\n";
  for (const Picture& picture : gallery()) {
    write_file(folder + "/" + picture.file, to_svg(picture.drawings, ""));
    html += fmt::format("<h2>{}</h2>\n<p>{}</p>\n<figure><img src=\"{}\" alt=\"{}\"></figure>\n",
                        picture.title, picture.explanation, picture.file, picture.title);
  }
  const std::string index = folder + "/index.html";
  if (with_index) write_file(index, html + "</html>\n");
  return index;
}

}  // namespace tilewright::cli
