// Which cells of Tensor Memory tcgen05.ld and st move to and from which registers. Stated from the
// PTX manual and from nothing else, so that it is a second witness beside the layout library.
// Source: PTX ISA, "tcgen05: Data movement shape".
#pragma once

#include "sim/tensor/tensor_memory.h"

#include <cstdint>

namespace tilewright::sim {

enum class TensorMoveShape : std::uint8_t { k32x32b, k16x64b, k16x128b, k16x256b, k16x32bx2 };

/// Registers of a thread for .x1.
constexpr std::uint32_t registers_of(TensorMoveShape shape) {
  switch (shape) {
    case TensorMoveShape::k16x128b:
      return 2;
    case TensorMoveShape::k16x256b:
      return 4;
    default:
      return 1;
  }
}

/// The cell of register r of thread t, relative to the address of the instruction. `half_split`:
/// how many columns further the upper 16 threads go, of .16x32bx2.
///     .32x32b      lane t                  column r
///     .16x64b      lane t/4 + 8 (t%2)      column 2 r + (t/2)%2
///     .16x128b     lane t/4 + 8 (r%2)      column 4 (r/2) + t%4
///     .16x256b     lane t/4 + 8 (r/2%2)    column 8 (r/4) + 2 (t%4) + r%2
///     .16x32bx2    lane t%16               column r + (t/16) half_split
constexpr TensorAddress tensor_move_cell(TensorMoveShape shape, std::uint32_t t, std::uint32_t r,
                                         std::uint32_t half_split = 0) {
  switch (shape) {
    case TensorMoveShape::k32x32b:
      return {t, r};
    case TensorMoveShape::k16x64b:
      return {t / 4 + 8 * (t % 2), 2 * r + t / 2 % 2};
    case TensorMoveShape::k16x128b:
      return {t / 4 + 8 * (r % 2), 4 * (r / 2) + t % 4};
    case TensorMoveShape::k16x256b:
      return {t / 4 + 8 * (r / 2 % 2), 8 * (r / 4) + 2 * (t % 4) + r % 2};
    case TensorMoveShape::k16x32bx2:
      return {t % 16, r + t / 16 * half_split};
  }
  return {};
}

}  // namespace tilewright::sim
