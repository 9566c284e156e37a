// ldmatrix and stmatrix: 8x8 matrices of 16-bit elements between shared memory and registers.
//
// The tile is a stack of N matrices, 8N rows by 8 columns, column-major like every tile here. The
// memory side says which thread's address is used for which row, the register side which thread
// receives which element. Source: PTX ISA, "ldmatrix", "stmatrix".
#pragma once

#include "layout/tiled_copy.h"

namespace tilewright::arch {

/// Memory side: lane 8j + r supplies the address of row r of matrix j, 8 elements from there on.
/// Lanes from 8N on repeat; their addresses are ignored.
constexpr Layout matrix_rows(int matrices) {
  const int rows = 8 * matrices;
  return make_layout(make_shape(make_shape(rows, 32 / rows), 8),
                     make_stride(make_stride(1, 0), rows));
}

/// Register side: element i of register j of lane t is row t/4, column 2*(t%4) + i of matrix j;
/// with .trans row and column change places.
constexpr Layout matrix_registers(int matrices, bool transposed) {
  const int rows = 8 * matrices;
  const IntTuple shape = make_shape(make_shape(4, 8), make_shape(2, matrices));
  return transposed
             ? make_layout(shape, make_stride(make_stride(2, rows), make_stride(1, 8)))
             : make_layout(shape, make_stride(make_stride(2 * rows, 1), make_stride(rows, 8)));
}

/// ldmatrix .x1, .x2, .x4, optionally .trans.
constexpr CopyAtom make_ldmatrix(int matrices, bool transposed = false) {
  return {make_layout(32), matrix_rows(matrices), matrix_registers(matrices, transposed)};
}
/// stmatrix: the same two maps the other way round.
constexpr CopyAtom make_stmatrix(int matrices, bool transposed = false) {
  return {make_layout(32), matrix_registers(matrices, transposed), matrix_rows(matrices)};
}

}  // namespace tilewright::arch
