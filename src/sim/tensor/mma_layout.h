// Where tcgen05.mma finds and puts its matrices in Tensor Memory: formulas from the manual and
// nothing else. The lanes of Tensor Memory belong to data paths, so that a row of A and the scales
// of a row or column are read in the lanes (or in the quarter of them) where D's element lies.
// Source: PTX ISA, "tcgen05: Data path layout organization", "Scale factor layouts".
#pragma once

#include <cstdint>

namespace tilewright::sim {

/// What decides the layout.
struct MmaShape {
  int m = 128, n = 8;
  int cta_group = 1;
  bool is_ws = false;
};

/// Rows of D that one CTA has, and columns of B that one CTA's shared memory has.
constexpr int rows_per_cta(const MmaShape& s) {
  return s.m / s.cta_group;
}
constexpr int b_columns_per_cta(const MmaShape& s) {
  return s.n / s.cta_group;
}

/// A cell of 32 bits, relative to the address that the instruction names.
struct TensorPlace {
  int cta = 0;  ///< of the pair
  int lane = 0;
  int column = 0;

  constexpr bool operator==(const TensorPlace&) const = default;
};

/// How often the columns of D are folded: the parts lie side by side in the lanes.
constexpr int column_parts(const MmaShape& s) {
  if (s.is_ws) return 128 / s.m;
  return s.cta_group == 2 && s.m == 128 ? 2 : 1;
}

/// Whether rows leave every other half of a quarter of the lanes empty: one CTA, M = 64, not .ws.
constexpr bool has_half_lanes(const MmaShape& s) {
  return s.m == 64 && !s.is_ws;
}

/// The element of D in a row and column. One element of any type a cell.
///     one CTA   M = 128           lane m                         column n
///               M = 64            lane 32 (m/16) + m%16          column n
///     .ws       M = 32, 64, 128   lane m + M (n / (N/parts))     column n % (N/parts)
///     two CTAs  M = 256           lane m%128, CTA m/128          column n
///               M = 128           lane m%64 + 64 (n / (N/2))     column n % (N/2), CTA m/64
constexpr TensorPlace place_of_d(const MmaShape& s, int row, int column) {
  const int rows = rows_per_cta(s);
  const int width = s.n / column_parts(s);
  const int local = row % rows;
  const int lane = has_half_lanes(s) ? local / 16 * 32 + local % 16 : local;
  return {row / rows, lane + column / width * rows, column % width};
}

/// A's row in Tensor Memory for the columns of one part: its 8 columns of 32 bits hold k packed.
constexpr TensorPlace place_of_a(const MmaShape& s, int row, int part) {
  return place_of_d(s, row, part * (s.n / column_parts(s)));
}

/// The scale number `index` of a row of A or a column of B, counted from byte 0 of the cell at the
/// address named: byte index % 4 of the cell. `per_group` are the columns of a group of 4 scales.
struct ScalePlace {
  int lane = 0;  ///< modulo 32: the same in each quarter of the lanes
  int column = 0;
  int byte = 0;

  constexpr bool operator==(const ScalePlace&) const = default;
};
constexpr ScalePlace place_of_scale(int row, int index, int per_group) {
  return {row % 32, row / 32 + index / 4 * per_group, index % 4};
}

/// Columns that a group of 4 scales takes for so many rows.
constexpr int scale_columns(int rows) {
  return (rows + 31) / 32;
}

/// The row of its CTA's scales that an element of D needs. Rows of A: each CTA holds its own.
/// Columns of B: both hold all, folded like the columns of D.
constexpr int scale_row_of_a(const MmaShape& s, int row) {
  return row % rows_per_cta(s);
}
constexpr int scale_row_of_b(const MmaShape& s, int column) {
  return column % (s.n / column_parts(s));
}

}  // namespace tilewright::sim
