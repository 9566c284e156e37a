#include "layout/draw_text.h"

#include "layout/palette.h"

#include <algorithm>

#include <fmt/format.h>

namespace tilewright {

namespace {

// One line per cell: "T0\nV1" becomes "T0 V1".
std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

std::string color_codes(const Rgb& rgb, TextColor color) {
  if (color == TextColor::kTrue) {
    return fmt::format("\x1b[30;48;2;{};{};{}m", rgb.r, rgb.g, rgb.b);
  }
  const auto level = [](std::uint8_t byte) { return (byte * 5 + 127) / 255; };  // the 6x6x6 cube
  return fmt::format("\x1b[30;48;5;{}m", 16 + 36 * level(rgb.r) + 6 * level(rgb.g) + level(rgb.b));
}

std::string padded(const std::string& text, std::size_t width) {
  return fmt::format("{:>{}}", text, width);
}

}  // namespace

std::string to_text(const Drawing& drawing, TextColor color) {
  std::size_t width = 2, header = drawing.row_name.size();
  for (const DrawnCell& cell : drawing.cells) width = std::max(width, one_line(cell.text).size());
  for (const std::string& text : drawing.column_headers) width = std::max(width, text.size());
  for (const std::string& text : drawing.row_headers) header = std::max(header, text.size());

  std::string out = drawing.name.empty() ? "" : drawing.name + "\n";
  out += drawing.title + "\n";
  if (!drawing.caption.empty()) out += drawing.caption + "\n";
  if (drawing.rows() < drawing.total_rows || drawing.columns() < drawing.total_columns) {
    out +=
        fmt::format("Shown: rows {}-{} of {}, columns {}-{} of {}.\n", drawing.row_headers.front(),
                    drawing.row_headers.back(), drawing.total_rows, drawing.column_headers.front(),
                    drawing.column_headers.back(), drawing.total_columns);
  }
  out += "\n" + padded(drawing.row_name, header) + " | " + drawing.column_name + "\n" +
         padded("", header) + " |";
  for (const std::string& text : drawing.column_headers) out += " " + padded(text, width) + " ";
  out += "\n" + std::string(header + 1, '-') + "+" +
         std::string(static_cast<std::size_t>(drawing.columns()) * (width + 2), '-') + "\n";
  for (int i = 0; i < drawing.rows(); ++i) {
    out += padded(drawing.row_headers[static_cast<std::size_t>(i)], header) + " |";
    for (int j = 0; j < drawing.columns(); ++j) {
      const DrawnCell& cell = drawing.at(i, j);
      const bool colored = color != TextColor::kNone && cell.color >= 0;
      if (colored) out += color_codes(palette_color(cell.color, drawing.num_colors), color);
      out += " " + padded(one_line(cell.text), width) + " ";
      if (colored) out += "\x1b[0m";
    }
    out += "\n";
  }
  return out;
}

}  // namespace tilewright
