// Pictures of layouts: what a drawing contains, and how each kind of layout becomes one. draw_svg.h
// and draw_text.h put a drawing on a page or in a terminal.
#pragma once

#include "layout/swizzle.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tilewright {

struct DrawnCell {
  std::string text;  ///< up to two lines; empty: nothing lies here
  int color = -1;    ///< index into the palette; -1: blank
};

/// A table of cells with headers; the part of a larger table from (first_row, first_column) on.
struct Drawing {
  std::string name;                   ///< what it is, in a few words; may be empty
  std::string title;                  ///< the layout itself
  std::string caption;                ///< how to read it, one or two sentences
  std::string row_name, column_name;  ///< what the headers count: "m", "lane", ...
  std::vector<std::string> row_headers, column_headers;
  std::vector<DrawnCell> cells;           ///< row-major
  int total_rows = 0, total_columns = 0;  ///< of the whole table
  int row_group = 0, column_group = 0;    ///< a heavier line after every so many; 0: none
  int num_colors = 32;                    ///< size of the palette the cells index

  int rows() const { return static_cast<int>(row_headers.size()); }
  int columns() const { return static_cast<int>(column_headers.size()); }
  const DrawnCell& at(int row, int column) const {
    return cells[static_cast<std::size_t>(row) * column_headers.size() +
                 static_cast<std::size_t>(column)];
  }
};

/// Half-open part of a table to draw; end -1: to the end.
struct Window {
  int first_row = 0, end_row = -1, first_column = 0, end_column = -1;
};

/// A rank-2 layout as a table of offsets. Cells of the same shared-memory bank share a colour when
/// the width of an element is given, else cells of the same row of 8 offsets do.
Drawing draw_offsets(const ComposedLayout& layout, Window window = {}, int element_bits = 0);

/// A (thread, value) layout as a table of the tile it covers: T = thread, V = value, a colour a
/// thread. The tile is column-major with `rows` rows.
Drawing draw_thread_values(const Layout& tv, std::int64_t rows, std::int64_t columns,
                           Window window = {});

/// How a tile in memory is shown.
struct MemoryView {
  int element_bits = 16;
  int line_bytes = 128;
  int cell_bytes = 16;
  /// Coordinates are shown divided by these: a scale factor stands for a block of elements.
  int row_divisor = 1, column_divisor = 1;
  /// Cells are coloured by their row (0) or column (1), divided by `color_group`, or by what one
  /// cell holds if that is 0; modulo 8.
  int color_mode = 0, color_group = 0;
  std::string row_name = "m", column_name = "k";
};

/// A tile (row, column) -> element offset as it lies in memory: lines of bytes, each cell labelled
/// with the coordinates it holds.
Drawing draw_memory(const ComposedLayout& tile, const MemoryView& view, Window window = {});

/// How a map into Tensor Memory is shown.
struct TmemView {
  int element_bits = 32;
  int lanes = 128;
  std::string i_name = "m", j_name = "n";  ///< letters of the two coordinates
  bool color_by_j = false;                 ///< colours follow j instead of i, modulo 32
};

/// A map (i, j) -> lane * 65536 + column, in elements of `element_bits`, as a table of lanes by
/// 32-bit columns.
Drawing draw_tmem(const Layout& layout, const TmemView& view, Window window = {});

}  // namespace tilewright
