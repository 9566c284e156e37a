// Tile products of tcgen05.mma with block scales, and with a scaled accumulator.
#pragma once

#include "sim/tensor/tile_multiply.h"

#include <cstdint>
#include <span>

namespace tilewright::sim {

/// Codes of the scales of both operands: a is m x per_row, b is n x per_row. A scale is for
/// k / per_row consecutive elements.
struct TileScales {
  std::span<const std::uint8_t> a, b;
  int per_row = 1;
  const FormatSpec* format = &kUe8m0;
};

/// As multiply_tile() with every product of a row and a column scaled by both of their scales: what
/// kind mxf8f6f4 does. Every element as dot_add() with a scale exponent gives it, bit for bit; a
/// scale that is no number makes the element NaN.
/// Errors   InvalidArgument as multiply_tile(), and if there is not one ue8m0 scale to a row
void multiply_scaled_tile(const TensorArithmetic& arithmetic, const TileExtents& extents,
                          const TileOperand& a, const TileOperand& b, const TileScales& scales,
                          std::span<const std::uint32_t> c, std::span<std::uint32_t> d,
                          KernelVariant variant = best_variant());

/// Kinds mxf4 and mxf4nvf4: every element as dot_add_block_scaled() gives it. Codes of e2m1 are one
/// to a byte here too; k is a multiple of 16.
/// Errors   InvalidArgument if an operand is not e2m1 or a size does not fit
void multiply_fp4_tile(const TensorArithmetic& arithmetic, const TileExtents& extents,
                       const TileOperand& a, const TileOperand& b, const TileScales& scales,
                       std::span<const std::uint32_t> c, std::span<std::uint32_t> d,
                       KernelVariant variant = best_variant());

/// multiply_tile() of c * 2^-shift (scale-input-d, 0..15), which is not rounded before it is added.
void multiply_tile_onto_scaled(const TensorArithmetic& arithmetic, const TileExtents& extents,
                               const TileOperand& a, const TileOperand& b, int shift,
                               std::span<const std::uint32_t> c, std::span<std::uint32_t> d);

}  // namespace tilewright::sim
