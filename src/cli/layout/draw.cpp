// tilewright layout draw: a layout as a coloured table in the terminal, or as SVG.

#include "base/error.h"
#include "base/file.h"
#include "cli/layout/layout.h"
#include "cli/tool/command.h"
#include "layout/draw_svg.h"

#include <memory>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

namespace tilewright::cli {

namespace {

struct DrawArguments {
  std::string layout, kind, rows, columns, svg;
  std::vector<std::int64_t> tile;
  int bits = 0;
};

Drawing draw(const DrawArguments& args) {
  const auto [first_row, end_row] = read_range(args.rows);
  const auto [first_column, end_column] = read_range(args.columns);
  arch::DrawnAs as;
  as.kind = args.kind;
  if (args.tile.size() == 2) {
    as.tile_rows = args.tile[0];
    as.tile_columns = args.tile[1];
  }
  as.element_bits = args.bits;
  as.window = {first_row, end_row, first_column, end_column};
  return arch::draw_layout(read_layout(args.layout), as);
}

nlohmann::json drawing_to_json(const Drawing& drawing) {
  nlohmann::json rows = nlohmann::json::array();
  for (int i = 0; i < drawing.rows(); ++i) {
    nlohmann::json row = nlohmann::json::array();
    for (int j = 0; j < drawing.columns(); ++j) row.push_back(drawing.at(i, j).text);
    rows.push_back(row);
  }
  return {{"name", drawing.name},
          {"layout", drawing.title},
          {"caption", drawing.caption},
          {"row_headers", drawing.row_headers},
          {"column_headers", drawing.column_headers},
          {"cells", rows}};
}

void run_draw(const DrawArguments& args, const Context& context) {
  const Drawing drawing = draw(args);
  if (!args.svg.empty()) {
    write_file(args.svg, to_svg(drawing));
    if (!context.json) {
      print(fmt::format("wrote {}: {} x {} cells\n", args.svg, drawing.rows(), drawing.columns()));
      return;
    }
  }
  if (context.json) {
    print_json(drawing_to_json(drawing));
  } else {
    print(to_text(drawing, context.text_color()));
  }
}

}  // namespace

void add_layout_draw(CLI::App& layout, Context& context) {
  CLI::App* command = layout.add_subcommand("draw", "draw a layout in the terminal or as SVG");
  auto args = std::make_shared<DrawArguments>();
  command->add_option("layout", args->layout, "a layout, or a name that `layout atoms` lists")
      ->required();
  command
      ->add_option("--as", args->kind, "how to read it: offsets, tv, memory or tmem; names know it")
      ->check(quiet(CLI::IsMember({"auto", "offsets", "tv", "memory", "tmem"})))
      ->type_name("KIND");
  command->add_option("--rows", args->rows, "rows to draw, BEGIN:END or a count")
      ->type_name("RANGE");
  command->add_option("--cols", args->columns, "columns to draw, BEGIN:END or a count")
      ->type_name("RANGE");
  command->add_option("--tile", args->tile, "for tv: rows and columns of the tile")
      ->expected(2)
      ->type_name("ROWS COLUMNS");
  command->add_option("--bits", args->bits, "width of an element; for offsets: colour by bank")
      ->check(quiet(CLI::IsMember({4, 8, 16, 32})))
      ->type_name("4|8|16|32");
  command->add_option("--svg", args->svg, "write SVG to this file")->type_name("FILE");
  command->footer(
      "Examples:\n"
      "  tilewright layout draw wgmma.m64n64.C --rows 16 --cols 32\n"
      "  tilewright layout draw smem.K.128B.16bit --svg swizzle.svg\n"
      "  tilewright layout draw '(8,8):(8,1)'\n"
      "  tilewright layout draw '((4,8),(2,2)):((32,1),(16,8))' --as tv --tile 16 8\n"
      "  tilewright layout draw 'Sw<3,3,3> o 0 o (8,64):(64,1)' --as memory --bits 16");
  command->callback([args, &context] { run_draw(*args, context); });
}

}  // namespace tilewright::cli
