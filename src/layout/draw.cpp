#include "layout/draw.h"

#include "base/error.h"
#include "layout/print.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

namespace tilewright {

namespace {

constexpr std::int64_t kMaxDrawnCells = 1 << 16;

struct Range {
  int begin, end;
};

Range clip(int begin, int end, std::int64_t total, const char* what) {
  const int last = end < 0 ? static_cast<int>(total) : std::min(end, static_cast<int>(total));
  require(begin >= 0 && begin < last, ErrorKind::kInvalidArgument,
          "layout draw: {} {} to {} of {} are none; choose a range inside", what, begin, end,
          total);
  return {begin, last};
}

// Headers, extents and empty cells of a window of a table.
Drawing blank(std::int64_t rows, std::int64_t columns, const Window& window) {
  const Range r = clip(window.first_row, window.end_row, rows, "rows");
  const Range c = clip(window.first_column, window.end_column, columns, "columns");
  const std::int64_t count = std::int64_t{r.end - r.begin} * (c.end - c.begin);
  require(count <= kMaxDrawnCells, ErrorKind::kInvalidArgument,
          "layout draw: {} cells are too many for a picture (at most {}); draw a part with --rows "
          "and --cols",
          count, kMaxDrawnCells);
  Drawing out;
  for (int i = r.begin; i < r.end; ++i) out.row_headers.push_back(std::to_string(i));
  for (int j = c.begin; j < c.end; ++j) out.column_headers.push_back(std::to_string(j));
  out.total_rows = static_cast<int>(rows);
  out.total_columns = static_cast<int>(columns);
  out.cells.resize(static_cast<std::size_t>(count));
  return out;
}

// Calls visit(row, column, cell) for every cell, with positions in the whole table.
template <class Visit>
void for_each_cell(Drawing& drawing, const Window& window, Visit visit) {
  for (int i = 0; i < drawing.rows(); ++i) {
    for (int j = 0; j < drawing.columns(); ++j) {
      visit(window.first_row + i, window.first_column + j,
            drawing.cells[static_cast<std::size_t>(i) * drawing.column_headers.size() +
                          static_cast<std::size_t>(j)]);
    }
  }
}

// The coordinates that lie in one cell of memory.
struct Held {
  int first_row, last_row, first_column, last_column;
};

std::map<std::int64_t, Held> coordinates_by_cell(const ComposedLayout& tile,
                                                 const MemoryView& view) {
  std::map<std::int64_t, Held> cells;
  for (int j = 0; j < size(tile, 1); ++j) {
    for (int i = 0; i < size(tile, 0); ++i) {
      const std::int64_t cell = tile(i, j) * view.element_bits / 8 / view.cell_bytes;
      const int row = i / view.row_divisor, column = j / view.column_divisor;
      Held& held = cells.try_emplace(cell, Held{row, row, column, column}).first->second;
      held.last_row = std::max(held.last_row, row);
      held.last_column = std::max(held.last_column, column);
    }
  }
  return cells;
}

std::string span_text(const std::string& name, int first, int last) {
  return first == last ? fmt::format("{}{}", name, first)
                       : fmt::format("{}{}-{}", name, first, last);
}

}  // namespace

Drawing draw_offsets(const ComposedLayout& layout, Window window, int element_bits) {
  const ComposedLayout table =
      rank(layout) == 2
          ? layout
          : ComposedLayout{layout.swizzle, layout.offset,
                           make_layout(make_layout(make_shape(1), make_stride(0)), layout.layout)};
  Drawing out = blank(size(table, 0), size(table, 1), window);
  out.title = to_string(layout);
  const bool banks = element_bits > 0;
  out.caption =
      banks
          ? "Each cell is the offset of coordinate (row, column); cells of one colour lie in the "
            "same group of four shared-memory banks."
          : "Each cell is the offset of coordinate (row, column); a colour is a run of 8 offsets.";
  out.row_name = "i";
  out.column_name = "j";
  out.num_colors = 8;
  for_each_cell(out, window, [&](int i, int j, DrawnCell& cell) {
    const std::int64_t offset = table(i, j);
    cell.text = std::to_string(offset);
    const std::int64_t group = banks ? offset * element_bits / 8 / 16 : offset / 8;
    cell.color = static_cast<int>(group % 8 < 0 ? group % 8 + 8 : group % 8);
  });
  return out;
}

Drawing draw_thread_values(const Layout& tv, std::int64_t rows, std::int64_t columns,
                           Window window) {
  Drawing out = blank(rows, columns, window);
  out.title = to_string(tv);
  const std::int64_t threads = size(tv, 0), values = size(tv, 1);
  require(threads * values <= kMaxDrawnCells, ErrorKind::kInvalidArgument,
          "layout draw: {} threads with {} values are too many for a picture", threads, values);
  out.caption =
      fmt::format("{} threads with {} values each. T = thread, V = value (register) of the thread.",
                  threads, values);
  out.row_name = "row";
  out.column_name = "column";
  out.num_colors = static_cast<int>(std::min<std::int64_t>(threads, 32));
  std::map<std::int64_t, std::pair<std::int64_t, std::int64_t>> holder;
  for (std::int64_t v = values; v-- > 0;) {
    for (std::int64_t t = threads; t-- > 0;) holder[tv(t, v)] = {t, v};
  }
  for_each_cell(out, window, [&](int i, int j, DrawnCell& cell) {
    const auto found = holder.find(i + rows * j);
    if (found == holder.end()) return;
    cell.text = fmt::format("T{}\nV{}", found->second.first, found->second.second);
    cell.color = static_cast<int>(found->second.first % 32);
  });
  return out;
}

Drawing draw_memory(const ComposedLayout& tile, const MemoryView& view, Window window) {
  require(rank(tile) >= 2, ErrorKind::kInvalidArgument,
          "layout draw: {} has {} mode; a memory picture needs a tile (row, column)",
          to_string(tile), rank(tile));
  const std::int64_t rows = size(tile, 0), columns = size(tile, 1);
  require(rows * columns <= 4 * kMaxDrawnCells, ErrorKind::kInvalidArgument,
          "layout draw: a tile of {} x {} is too large for a picture", rows, columns);
  const std::map<std::int64_t, Held> cells = coordinates_by_cell(tile, view);
  const std::int64_t per_line = view.line_bytes / view.cell_bytes;
  Drawing out = blank(cells.rbegin()->first / per_line + 1, per_line, window);
  out.title = to_string(tile);
  out.row_name = fmt::format("line of {} B", view.line_bytes);
  out.column_name = view.cell_bytes >= 4 ? fmt::format("chunk of {} B ({} banks)", view.cell_bytes,
                                                       view.cell_bytes / 4)
                                         : "byte";
  out.num_colors = 8;
  for_each_cell(out, window, [&](int line, int column, DrawnCell& cell) {
    const auto found = cells.find(line * per_line + column);
    if (found == cells.end()) return;
    const Held& held = found->second;
    cell.text = span_text(view.row_name, held.first_row, held.last_row) + "\n" +
                span_text(view.column_name, held.first_column, held.last_column);
    const bool by_row = view.color_mode == 0;
    const int first = by_row ? held.first_row : held.first_column;
    const int extent =
        by_row ? held.last_row - held.first_row : held.last_column - held.first_column;
    cell.color = first / (view.color_group > 0 ? view.color_group : extent + 1) % 8;
  });
  return out;
}

Drawing draw_tmem(const Layout& layout, const TmemView& view, Window window) {
  const int per_cell = 32 / view.element_bits;
  const Layout table = make_layout(mode(layout, 0), mode(layout, 1));
  std::map<std::pair<int, int>, std::pair<int, int>>
      cells;  // (lane, column) -> the first element in it
  int last_column = 0;
  for (int j = 0; j < size(table, 1); ++j) {
    for (int i = 0; i < size(table, 0); ++i) {
      const std::int64_t cell = table(i, j) / per_cell;
      const auto lane = static_cast<int>(cell >> 16 & 0x7F),
                 column = static_cast<int>(cell & 0x1FF);
      cells.try_emplace({lane, column}, i, j);
      last_column = std::max(last_column, column);
    }
  }
  Drawing out = blank(view.lanes, last_column + 1, window);
  out.title = to_string(layout);
  out.row_name = "lane";
  out.column_name = "column (32 bits)";
  for_each_cell(out, window, [&](int lane, int column, DrawnCell& cell) {
    const auto found = cells.find({lane, column});
    if (found == cells.end()) return;
    const auto [i, j] = found->second;
    cell.text = fmt::format("{}{}\n", view.i_name, i) + span_text(view.j_name, j, j + per_cell - 1);
    cell.color = (view.color_by_j ? j : i) % 32;
  });
  return out;
}

}  // namespace tilewright
