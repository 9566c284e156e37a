#include "layout/draw_svg.h"

#include "base/markup.h"
#include "layout/palette.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

namespace tilewright {

namespace {

constexpr int kMargin = 24;
constexpr int kHeader = 22;  // height of the column headers, width of the row headers adds digits
constexpr int kName = 26;    // line heights of the heading and of the layout under it
constexpr int kTitle = 18;
constexpr double kNameWidth = 9.6, kTitleWidth = 7.3;  // advance of a character
constexpr int kCaptionLine = 17;
constexpr int kCellHeight1 = 22, kCellHeight2 = 32;
constexpr int kMinWidth = 280;
constexpr double kCharWidth = 6.3;   // of the 10.5 px monospaced cell text
constexpr double kProseWidth = 6.3;  // of the 12 px sans-serif captions

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines(1);
  for (const char c : text) {
    if (c == '\n') {
      lines.emplace_back();
    } else {
      lines.back() += c;
    }
  }
  return lines;
}

// Breaks prose into lines of at most `width` characters.
std::vector<std::string> wrap(const std::string& text, std::size_t width) {
  std::vector<std::string> lines;
  std::string line, word;
  const auto flush_word = [&] {
    if (word.empty()) return;
    if (!line.empty() && line.size() + 1 + word.size() > width) {
      lines.push_back(line);
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
    word.clear();
  };
  for (const char c : text) {
    if (c == ' ' || c == '\n') {
      flush_word();
    } else {
      word += c;
    }
  }
  flush_word();
  if (!line.empty()) lines.push_back(line);
  return lines;
}

// Sizes of one drawing on the page.
struct Geometry {
  int cell_width = 30, cell_height = kCellHeight1;
  int row_header = 28, width = 0, height = 0;
  std::vector<std::string> caption;
  int table_top = 0;

  explicit Geometry(const Drawing& drawing) {
    std::size_t longest = 2;
    for (const DrawnCell& cell : drawing.cells) {
      const auto lines = lines_of(cell.text);
      if (lines.size() > 1) cell_height = kCellHeight2;
      for (const std::string& line : lines) longest = std::max(longest, line.size());
    }
    for (const std::string& header : drawing.column_headers)
      longest = std::max(longest, header.size());
    cell_width = std::max(26, static_cast<int>(kCharWidth * static_cast<double>(longest)) + 10);
    std::size_t header = 2;
    for (const std::string& text : drawing.row_headers) header = std::max(header, text.size());
    row_header = static_cast<int>(kCharWidth * static_cast<double>(header)) + 12;
    const int table = row_header + kHeader + drawing.columns() * cell_width;
    const double heading = std::max(kNameWidth * static_cast<double>(drawing.name.size()),
                                    kTitleWidth * static_cast<double>(drawing.title.size()));
    width = std::max({table, kMinWidth, static_cast<int>(heading)});
    const auto characters = static_cast<std::size_t>(width / kProseWidth);
    caption = wrap(drawing.caption + window_note(drawing), characters);
    table_top =
        (drawing.name.empty() ? 0 : kName) + (drawing.title.empty() ? 0 : kTitle) + 2 * kHeader + 4;
    height = table_top + drawing.rows() * cell_height +
             (caption.empty() ? 0 : static_cast<int>(caption.size()) * kCaptionLine + 14);
  }

  static std::string window_note(const Drawing& drawing) {
    if (drawing.rows() == drawing.total_rows && drawing.columns() == drawing.total_columns)
      return {};
    return fmt::format(" Shown: rows {}-{} of {}, columns {}-{} of {}.",
                       drawing.row_headers.front(), drawing.row_headers.back(), drawing.total_rows,
                       drawing.column_headers.front(), drawing.column_headers.back(),
                       drawing.total_columns);
  }
};

void text_at(std::string& out, double x, double y, const char* css, const std::string& text) {
  out += fmt::format("<text x=\"{:g}\" y=\"{:g}\" class=\"{}\">{}</text>\n", x, y, css,
                     escape_markup(text));
}

void draw_headers(std::string& out, const Drawing& drawing, const Geometry& g, int x, int y) {
  const int left = x + g.row_header + kHeader, top = y + g.table_top;
  const double middle_x = left + drawing.columns() * g.cell_width / 2.0;
  const double middle_y = top + drawing.rows() * g.cell_height / 2.0;
  text_at(out, middle_x, top - kHeader - 6, "axis", drawing.column_name);
  out += fmt::format(
      "<text x=\"{0:g}\" y=\"{1:g}\" class=\"axis\" transform=\"rotate(-90 {0:g} "
      "{1:g})\">{2}</text>\n",
      x + 12.0, middle_y, escape_markup(drawing.row_name));
  for (int j = 0; j < drawing.columns(); ++j) {
    text_at(out, left + (j + 0.5) * g.cell_width, top - 7, "head",
            drawing.column_headers[static_cast<std::size_t>(j)]);
  }
  for (int i = 0; i < drawing.rows(); ++i) {
    text_at(out, left - 7, top + (i + 0.5) * g.cell_height + 3.5, "side",
            drawing.row_headers[static_cast<std::size_t>(i)]);
  }
}

void draw_cells(std::string& out, const Drawing& drawing, const Geometry& g, int left, int top) {
  for (int i = 0; i < drawing.rows(); ++i) {
    for (int j = 0; j < drawing.columns(); ++j) {
      const DrawnCell& cell = drawing.at(i, j);
      const int x = left + j * g.cell_width, y = top + i * g.cell_height;
      const std::string color =
          cell.color < 0 ? "blank"
                         : fmt::format("p{}-{}", drawing.num_colors > 8 ? 32 : 8, cell.color);
      out += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" class=\"{}\"/>\n", x,
                         y, g.cell_width, g.cell_height, color);
      const auto lines = lines_of(cell.text);
      const double first =
          y + g.cell_height / 2.0 + 3.7 - 6.0 * static_cast<double>(lines.size() - 1);
      for (std::size_t k = 0; k < lines.size(); ++k) {
        if (!lines[k].empty()) {
          text_at(out, x + g.cell_width / 2.0, first + 12.0 * static_cast<double>(k),
                  k == 0 ? "cell" : "sub", lines[k]);
        }
      }
    }
  }
}

void draw_group_lines(std::string& out, const Drawing& drawing, const Geometry& g, int left,
                      int top) {
  const int right = left + drawing.columns() * g.cell_width,
            bottom = top + drawing.rows() * g.cell_height;
  const auto line = [&](int x1, int y1, int x2, int y2) {
    out += fmt::format("<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" class=\"group\"/>\n", x1, y1,
                       x2, y2);
  };
  for (int i = drawing.row_group; drawing.row_group > 0 && i < drawing.rows();
       i += drawing.row_group) {
    line(left, top + i * g.cell_height, right, top + i * g.cell_height);
  }
  for (int j = drawing.column_group; drawing.column_group > 0 && j < drawing.columns();
       j += drawing.column_group) {
    line(left + j * g.cell_width, top, left + j * g.cell_width, bottom);
  }
  out += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" class=\"frame\"/>\n", left,
                     top, right - left, bottom - top);
}

void draw_one(std::string& out, const Drawing& drawing, const Geometry& g, int x, int y) {
  const int left = x + g.row_header + kHeader, top = y + g.table_top;
  int baseline = y + 18;
  if (!drawing.name.empty()) {
    text_at(out, x, baseline, "name", drawing.name);
    baseline += kTitle;
  }
  text_at(out, x, baseline, "title", drawing.title);
  draw_headers(out, drawing, g, x, y);
  draw_cells(out, drawing, g, left, top);
  draw_group_lines(out, drawing, g, left, top);
  baseline = top + drawing.rows() * g.cell_height + 24;
  for (const std::string& line : g.caption) {
    text_at(out, x, baseline, "note", line);
    baseline += kCaptionLine;
  }
}

std::string style(const std::vector<Drawing>& drawings) {
  std::string out =
      "<style>\n"
      ".page{fill:#ffffff}\n"
      "text{font-family:'DejaVu Sans Mono',Menlo,Consolas,monospace;fill:#1b1f24}\n"
      ".name{font-family:'DejaVu Sans',Helvetica,Arial,sans-serif;font-size:15px;font-weight:600}\n"
      ".title{font-size:12px;fill:#4b5563}\n"
      ".lead{font-family:'DejaVu Sans',Helvetica,Arial,sans-serif;font-size:17px;font-weight:600}\n"
      ".note{font-family:'DejaVu Sans',Helvetica,Arial,sans-serif;font-size:12px;fill:#4b5563}\n"
      ".axis{font-family:'DejaVu "
      "Sans',Helvetica,Arial,sans-serif;font-size:11px;fill:#6b7280;text-anchor:middle}\n"
      ".head{font-size:10px;fill:#6b7280;text-anchor:middle}\n"
      ".side{font-size:10px;fill:#6b7280;text-anchor:end}\n"
      ".cell{font-size:10.5px;text-anchor:middle}\n"
      ".sub{font-size:10.5px;text-anchor:middle;fill:#3b4350}\n"
      "rect{stroke:#ffffff;stroke-width:1}\n"
      ".blank{fill:#f3f4f6}\n"
      ".group{stroke:#1b1f24;stroke-width:1.4}\n"
      ".frame{fill:none;stroke:#1b1f24;stroke-width:1.4}\n";
  std::set<std::pair<int, int>> used;
  for (const Drawing& drawing : drawings) {
    for (const DrawnCell& cell : drawing.cells) {
      if (cell.color >= 0) used.emplace(drawing.num_colors > 8 ? 32 : 8, cell.color);
    }
  }
  for (const auto& [palette, index] : used) {
    const Rgb rgb = palette_color(index, palette);
    out +=
        fmt::format(".p{}-{}{{fill:#{:02x}{:02x}{:02x}}}\n", palette, index, rgb.r, rgb.g, rgb.b);
  }
  return out + "</style>\n";
}

}  // namespace

std::string to_svg(const std::vector<Drawing>& drawings, const std::string& title) {
  std::vector<Geometry> geometry;
  int width = kMargin, height = 0;
  const int lead = title.empty() ? 0 : 34;
  for (const Drawing& drawing : drawings) {
    geometry.emplace_back(drawing);
    width += geometry.back().width + kMargin;
    height = std::max(height, geometry.back().height);
  }
  height += 2 * kMargin + lead;
  std::string body;
  if (lead > 0) text_at(body, kMargin, kMargin + 16, "lead", title);
  int x = kMargin;
  for (std::size_t i = 0; i < drawings.size(); ++i) {
    draw_one(body, drawings[i], geometry[i], x, kMargin + lead);
    x += geometry[i].width + kMargin;
  }
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
      "{1}\">\n{2}"
      "<rect width=\"{0}\" height=\"{1}\" class=\"page\"/>\n{3}</svg>\n",
      width, height, style(drawings), body);
}

std::string to_svg(const Drawing& drawing) {
  return to_svg(std::vector<Drawing>{drawing}, "");
}

}  // namespace tilewright
